/** What becomes of a body that is not read to its end, because the answer is known before. */
import type { Http2ServerResponse } from 'node:http2';
import type { Context } from 'koa';
import { deferred } from '../domain/deferred.js';
import type { Clock } from '../domain/ports.js';

const drainMs = 500;

/**
 * What still comes of a body that nobody wants is read and dropped for a moment: bytes that lie unread when a connection of HTTP/1.1
 * closes take the answer with them.
 */
export async function drainBody({ req }: Context, clock: Clock): Promise<void> {
  if (req.httpVersionMajor !== 1 || req.complete || req.destroyed) return;
  const { promise, resolve } = deferred<void>();
  const cancel = clock.after(drainMs, resolve);
  for (const end of ['end', 'close']) req.once(end, resolve);
  req.resume();
  await promise;
  cancel();
}

/** What is left of a body that was not read to its end is not waited for. */
export function abandonBody({ req, res }: Context): void {
  if (req.httpVersionMajor === 1) {
    if (!req.complete) res.setHeader('connection', 'close');
    return;
  }
  const { stream } = res as unknown as Http2ServerResponse;
  if (!stream.endAfterHeaders && !stream.readableEnded) stream.once('finish', () => stream.close());
}
