/**
 * Tokens of an OpenID Connect issuer. Its keys are fetched when the front door opens, and again for
 * a token that no known key has signed. They are fetched at most once in `askAgainMs`, so that
 * clients cannot cause more requests. While the issuer is unreachable, the known keys remain in
 * use.
 */
import { createLocalJWKSet, type CompactVerifyGetKey, type JSONWebKeySet } from 'jose';
import type { Log } from '../diagnostics/log.js';
import { itemsOf, type Members } from '../domain/base/members.js';
import type { Clock } from '../domain/ports.js';
import { userOfClaims, type IssuerRules } from './issuer-claims.js';
import { fetchJson } from './json-over-tls.js';
import { claimedIssuer, verifiedClaims } from './jwt.js';
import { InvalidToken, type TokenReader, type TokenUser } from './token-user.js';

export type Issuer = IssuerAddress & IssuerRules;

type Parts = Readonly<{ clock: Clock; log: Log }>;

const askAgainMs = 10_000;

export class IssuerTokens implements TokenReader {
  readonly #issuer: Issuer;
  readonly #parts: Parts;
  #keys: CompactVerifyGetKey | undefined;
  #askedAtMs = -Infinity;
  #asking: Promise<void> | undefined;

  constructor(issuer: Issuer, parts: Parts) {
    this.#issuer = issuer;
    this.#parts = parts;
    void this.#askForKeys();
  }

  async read(token: string): Promise<TokenUser | undefined> {
    if (claimedIssuer(token) !== this.#issuer.url) return undefined;
    return userOfClaims(await this.#claims(token), this.#issuer, this.#parts.clock.wallMs());
  }

  /**
   * Fetches the keys again if no known key verifies the token. A known key with the token's key id
   * does not prevent that: the issuer may reuse an id.
   */
  async #claims(token: string): Promise<Members> {
    const known = this.#keys;
    let refusal = new InvalidToken('the keys of the issuer are not known');
    try {
      if (known !== undefined) return await this.#verified(token, known);
    } catch (error) {
      if (!(error instanceof InvalidToken)) throw error;
      refusal = error;
    }
    await this.#askForKeys();
    if (this.#keys === undefined || this.#keys === known) throw refusal;
    return this.#verified(token, this.#keys);
  }

  async #verified(token: string, keys: CompactVerifyGetKey): Promise<Members> {
    const keyFor: CompactVerifyGetKey = ({ kid, ...header }, input) =>
      keys({ ...header, ...(kid !== '' && { kid }) } as typeof header, input);
    return verifiedClaims(token, { keyFor, algorithms: this.#issuer.algorithms });
  }

  /**
   * Resolves when the request for the keys has ended, or at once if it is too early for another
   * one.
   */
  async #askForKeys(): Promise<void> {
    const { clock } = this.#parts;
    if (this.#asking === undefined && clock.now() - this.#askedAtMs >= askAgainMs) {
      this.#askedAtMs = clock.now();
      this.#asking = this.#ask().finally(() => (this.#asking = undefined));
    }
    await this.#asking;
  }

  async #ask(): Promise<void> {
    const { url } = this.#issuer;
    try {
      this.#keys = createLocalJWKSet((await fetchKeys(this.#issuer)) as unknown as JSONWebKeySet);
    } catch (error) {
      this.#parts.log.warn('issuer.unavailable', { issuer: url, error });
    }
  }
}

/** `ca`: PEM; undefined: the authorities that Node trusts. */
type IssuerAddress = Readonly<{ url: string; discoveryUrl: string | undefined; ca: string | undefined }>;

const wellKnown = '/.well-known/openid-configuration';
const keysMax = 100;

/**
 * Fetches the key set (RFC 7517) that the issuer's configuration names. Throws an error for the
 * log.
 */
async function fetchKeys({ url, discoveryUrl, ca }: IssuerAddress): Promise<Members> {
  const access = { ca };
  const { issuer, jwks_uri: keysUrl } = await fetchJson(discoveryUrl ?? `${url.replace(/\/$/, '')}${wellKnown}`, access);
  if (issuer !== url) throw new Error(`the configuration is of another issuer: ${String(issuer).slice(0, 256)}`);
  if (typeof keysUrl !== 'string' || !URL.canParse(keysUrl) || new URL(keysUrl).protocol !== 'https:')
    throw new Error('the configuration names no https URL of keys');
  const set = await fetchJson(keysUrl, access);
  // Bounded, because every key is tried for a token that names no key.
  if (itemsOf(set['keys']).length > keysMax) throw new Error(`${keysUrl} has more than ${keysMax} keys`);
  return set;
}
