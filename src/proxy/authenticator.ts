/**
 * Who asks: by certificate or, where tokens are checked here, by token. As kcp's front proxy: a certificate that is good counts first, and where tokens are checked,
 * who shows neither is refused.
 */
import type { IncomingMessage } from 'node:http';
import { withAuthenticated, type Caller } from '../domain/caller.js';
import { isHeaderValue } from '../domain/header-value.js';
import { InvalidToken, type TokenReader, type TokenUser } from '../tokens/token-user.js';
import { bearerTokenOf } from './bearer-token.js';
import { asHeaderValue, type Identity } from './forwarded-headers.js';
import { identityOf } from './identity.js';
import { passedGroups, type GroupRules } from './passed-groups.js';

export type AuthenticatorParts = Readonly<{
  groups: GroupRules;
  /** Undefined: backends check tokens. */
  tokens: TokenReader | undefined;
  /** Why a token was refused. */
  refused: (error: InvalidToken) => void;
}>;

export class Authenticator {
  readonly #parts: AuthenticatorParts;

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
  }

  /** `untrusted`: nobody vouches for who asks, or nothing was shown where tokens are checked. Undefined: the backend finds out. */
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

/** An empty group is none, as it is for whoever reads the header. Throws InvalidToken where a header cannot carry what a token says (IDENTITY-1). */
function identityOfUser({ user, groups, extra }: TokenUser, rules: GroupRules): Identity {
  const named = groups.filter((group) => group !== '');
  if (![user, ...named, ...Object.values(extra).flat()].every(isHeaderValue))
    throw new InvalidToken('no header can carry what the token says');
  const passed = passedGroups(withAuthenticated(user, named), rules);
  const values = Object.entries(extra).map(([key, texts]) => [key, texts.map(asHeaderValue)] as const);
  return { user: asHeaderValue(user), groups: passed.map(asHeaderValue), extra: Object.fromEntries(values), isByToken: true };
}
