/**
 * Limits the interim responses (1xx) to a request. Nobody here waits for them, and a server may
 * send a few. Node would keep each one in memory if a server never stopped.
 */
import { CacheError } from '../errors.js';

/** A request of Node, over HTTP/1.1 or HTTP/2. */
type Request = Readonly<{ on: (event: string, listener: () => void) => unknown }>;

/** Servers that report the progress of a request send one every few seconds. */
const interimMax = 100;

/** Calls `end` once there are more than `interimMax`. */
export function limitInterim(request: Request, end: (error: CacheError) => void): void {
  let count = 0;
  // Node emits `information` over HTTP/1.1 and `headers` over HTTP/2.
  for (const event of ['information', 'headers'])
    request.on(event, () => {
      count += 1;
      if (count > interimMax) end(new CacheError('the server does not begin its answer'));
    });
}
