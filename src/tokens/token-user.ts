/** Whom a bearer token names, and how its readers answer. */
import { CacheError } from '../domain/errors.js';

/** `extra`: what Kubernetes knows of a user beside that, by its keys. */
export type TokenUser = Readonly<{ user: string; groups: readonly string[]; extra: Readonly<Record<string, readonly string[]>> }>;

/** `backend`: who gets the request checks the token. */
export type TokenReading = TokenUser | 'backend' | undefined;

export interface TokenReader {
  /** Undefined: the token is none of those that this reader knows. Throws InvalidToken for one that is, and does not hold, or cannot be checked now. */
  read(token: string): Promise<TokenReading>;
}

/** Its message has nothing of the token. */
export class InvalidToken extends CacheError {}

/** The `extra` of a token that has an id, by which audit logs find it. */
export function credentialOf(id: unknown): TokenUser['extra'] {
  return typeof id === 'string' && id !== '' ? { 'authentication.kubernetes.io/credential-id': [`JTI=${id}`] } : {};
}

/** Asks each reader until one knows the token. Throws the InvalidToken of the last one that refused it, if none does. */
export function readerOf(readers: readonly TokenReader[]): TokenReader {
  return {
    read: async (token) => {
      let refusal: InvalidToken | undefined;
      for (const reader of readers) {
        try {
          const found = await reader.read(token);
          if (found !== undefined) return found;
        } catch (error) {
          if (!(error instanceof InvalidToken)) throw error;
          refusal = error;
        }
      }
      if (refusal !== undefined) throw refusal;
      return undefined;
    },
  };
}
