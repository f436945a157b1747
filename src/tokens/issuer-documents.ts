/** Fetches what an issuer publishes about itself. */
import { itemsOf, type Members } from '../domain/members.js';
import { askJson } from './json-over-tls.js';

/** `ca`: PEM; undefined: the authorities that Node trusts. */
export type IssuerAddress = Readonly<{ url: string; discoveryUrl: string | undefined; ca: string | undefined }>;

const wellKnown = '/.well-known/openid-configuration';
const keysMax = 100;

/**
 * The key set (RFC 7517) that the issuer's configuration names. Throws an error whose message says
 * what is wrong, for the log.
 */
export async function fetchKeys({ url, discoveryUrl, ca }: IssuerAddress): Promise<Members> {
  const access = { ca };
  const { issuer, jwks_uri: keysUrl } = await askJson(discoveryUrl ?? `${url.replace(/\/$/, '')}${wellKnown}`, access);
  if (issuer !== url) throw new Error(`the configuration is of another issuer: ${String(issuer).slice(0, 256)}`);
  if (typeof keysUrl !== 'string' || !URL.canParse(keysUrl) || new URL(keysUrl).protocol !== 'https:')
    throw new Error('the configuration names no https URL of keys');
  const set = await askJson(keysUrl, access);
  // Bounded, because every key is tried for a token that names none.
  if (itemsOf(set['keys']).length > keysMax) throw new Error(`${keysUrl} has more than ${keysMax} keys`);
  return set;
}
