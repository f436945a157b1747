/**
 * Bytes from one end to the other, at the pace of the one that takes them. One that takes nothing for `stallMsMax` is ended: while it does not, nobody reads
 * from the other end, and would notice that it has gone.
 */
import type { IncomingMessage } from 'node:http';
import { constants } from 'node:http2';
import type { Duplex, Readable, Writable } from 'node:stream';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { isHttp2 } from '../http/transport.js';

const stallMsMax = 30_000;

/** One that breaks off takes its request along, because the backend must not take it for whole. `passed`: called with the length of each part. */
export function pourBody(body: IncomingMessage, into: Writable, clock: Clock, passed: (bytes: number) => void): void {
  const end = (why: string): void => void into.destroy(new CacheError(why));
  const broken = (): void => end('the client has broken off');
  body.on('data', (chunk: Buffer) => passed(chunk.length));
  pace(body, into, clock, () => end('the server takes nothing of the request'));
  // Node tells of an end in the middle of the frame that brings it, when nobody can tell yet what kind of end it is.
  body.once('end', () => setImmediate(() => (isWhole(body) ? into.end() : broken())));
  for (const event of ['error', 'aborted']) body.once(event, broken);
  into.once('close', () => body.resume());
}

/** One way of a connection that is no HTTP any more. */
export function passAlong(from: Duplex, to: Duplex, clock: Clock): void {
  pace(from, to, clock, () => to.destroy());
  from.once('end', () => to.end());
}

function pace(from: Readable, to: Writable, clock: Clock, stalled: () => void): void {
  let cancel = (): void => {};
  to.once('close', () => cancel());
  from.on('data', (chunk: Buffer) => {
    if (to.write(chunk) || to.destroyed) return;
    from.pause();
    cancel = clock.after(stallMsMax, stalled);
    to.once('drain', () => {
      cancel();
      from.resume();
    });
  });
}

/** To be asked a turn after its end. Of HTTP/2 a stream that its client has reset ends as if it were whole, and is said to be closed only after that. */
function isWhole(body: IncomingMessage): boolean {
  if (!isHttp2(body)) return body.complete;
  const { stream } = body;
  return !stream.destroyed && stream.state.state === constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE;
}
