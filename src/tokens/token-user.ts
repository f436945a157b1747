/** The user that a bearer token names, and the interface of token readers. */
import { CacheError } from '../domain/errors.js';

/** `extra`: the extra fields of a Kubernetes user, by key. */
export type TokenUser = Readonly<{ user: string; groups: readonly string[]; extra: Readonly<Record<string, readonly string[]>> }>;

/** `backend`: the server that receives the request checks the token. */
export type TokenReading = TokenUser | 'backend' | undefined;

export interface TokenReader {
  /**
   * Undefined: this reader does not know the token. Throws InvalidToken if it knows the token and
   * the token is not valid, or cannot be checked now.
   */
  read(token: string): Promise<TokenReading>;
}

/** Its message quotes nothing of the token. */
export class InvalidToken extends CacheError {}

/** The `extra` that carries the token's id, by which audit logs identify it. */
export function credentialOf(id: unknown): TokenUser['extra'] {
  return typeof id === 'string' && id !== '' ? { 'authentication.kubernetes.io/credential-id': [`JTI=${id}`] } : {};
}

/**
 * Asks each reader until one knows the token. If none does, it throws the last InvalidToken that a
 * reader threw.
 */
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
