/** Answers with a 1xx before the answer, which nobody here waits for. A server may send a few; of one that does not stop, Node would keep each in memory. */
import { CacheError } from './errors.js';

/** A request of Node's, over HTTP/1.1 or HTTP/2. */
type Request = Readonly<{ on: (event: string, listener: () => void) => unknown }>;

/** Servers that show the progress of a request send one every few seconds. */
const interimMax = 100;

/** Calls `end` when there are too many of them. */
export function limitInterim(request: Request, end: (error: CacheError) => void): void {
  let count = 0;
  // Node's name for them over HTTP/1.1, and over HTTP/2.
  for (const event of ['information', 'headers'])
    request.on(event, () => {
      count += 1;
      if (count > interimMax) end(new CacheError('the server does not begin its answer'));
    });
}
