/**
 * Limits the interim responses (1xx) to a request. A server may send a few. Node would keep each
 * one of an endless series in memory.
 */
import { CacheError } from '../errors.js';

type Request = Readonly<{ on: (event: string, listener: () => void) => unknown }>;

/** A server that reports progress sends an interim response every few seconds. */
const interimMax = 100;

/** Calls `end` once there are more than `interimMax` interim responses. */
export function limitInterim(request: Request, end: (error: CacheError) => void): void {
  let count = 0;
  // Node emits `information` over HTTP/1.1 and `headers` over HTTP/2.
  for (const event of ['information', 'headers'])
    request.on(event, () => {
      count += 1;
      if (count > interimMax) end(new CacheError(`the server sent more than ${interimMax} interim responses instead of its answer`));
    });
}
