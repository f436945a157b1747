/**
 * Authenticates a request by its client certificate or, if the front door checks tokens, by its
 * token. As in kcp's front proxy, a valid certificate takes precedence. If the front door checks
 * tokens, a request with neither is refused.
 */
import type { IncomingMessage } from 'node:http';
import { withAuthenticated, type Caller } from '../domain/caller.js';
import { isHeaderValue } from '../domain/base/http-header.js';
import { InvalidToken, type TokenReader, type TokenUser } from '../tokens/token-user.js';
import { bearerTokenOf } from './bearer-token.js';
import { asHeaderValue, type Identity } from './forwarded-headers.js';
import { identityOf, passedGroups, type GroupRules } from './identity.js';

export type AuthenticatorParts = Readonly<{
  groups: GroupRules;
  /** Undefined: backends check tokens. */
  tokens: TokenReader | undefined;
  refused: (error: InvalidToken) => void;
}>;

export class Authenticator {
  readonly #parts: AuthenticatorParts;

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
  }

  /**
   * `untrusted`: no CA vouches for the certificate, the token is refused, or the front door checks
   * tokens and the request has neither. Undefined: the backend authenticates the request.
   */
  async identityOf(caller: Caller, request: IncomingMessage): Promise<Identity | 'untrusted' | undefined> {
    const { groups, tokens } = this.#parts;
    const byCertificate = identityOf(caller, request, groups);
    if (tokens === undefined || (byCertificate !== undefined && byCertificate !== 'untrusted')) return byCertificate;
    const token = bearerTokenOf(request.headers);
    return token === undefined ? 'untrusted' : this.#identityOfToken(token, tokens);
  }

  async #identityOfToken(token: string, tokens: TokenReader): Promise<Identity | 'untrusted' | undefined> {
    try {
      const user = await tokens.read(token);
      if (user === undefined) throw new InvalidToken('nobody knows the token');
      return user === 'backend' ? undefined : identityOfUser(user, this.#parts.groups);
    } catch (error) {
      if (!(error instanceof InvalidToken)) throw error;
      this.#parts.refused(error);
      return 'untrusted';
    }
  }
}

/**
 * Empty groups are left out, because servers that read the header ignore them. Throws InvalidToken
 * if a header cannot carry a value of the token (IDENTITY-1).
 */
function identityOfUser({ user, groups, extra }: TokenUser, rules: GroupRules): Identity {
  const named = groups.filter((group) => group !== '');
  if (![user, ...named, ...Object.values(extra).flat()].every(isHeaderValue))
    throw new InvalidToken('an HTTP header cannot carry the user of the token');
  const passed = passedGroups(withAuthenticated(user, named), rules);
  const values = Object.entries(extra).map(([key, texts]) => [key, texts.map(asHeaderValue)] as const);
  return { user: asHeaderValue(user), groups: passed.map(asHeaderValue), extra: Object.fromEntries(values), isByToken: true };
}
