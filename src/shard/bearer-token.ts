import { CacheError } from '../domain/errors.js';

/**
 * The Authorization header for a token. Throws CacheError, without the token, if no header can
 * carry it; `what` names its source.
 */
export function formatBearer(token: string, what: string): string {
  if (token === '') throw new CacheError(`${what} is empty`);
  if (!/^[\x21-\x7e]+$/.test(token)) throw new CacheError(`${what} has characters that no HTTP header can carry`);
  return `Bearer ${token}`;
}
