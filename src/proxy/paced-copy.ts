/**
 * Copies bytes from a sender to a receiver, at the receiver's pace. While the receiver accepts
 * nothing, the copy reads nothing, and cannot notice that the sender has closed. So it ends a
 * receiver that accepts nothing for `stallMsMax`.
 */
import type { IncomingMessage } from 'node:http';
import { constants } from 'node:http2';
import type { Duplex, Readable, Writable } from 'node:stream';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { isHttp2 } from '../http/transport.js';

const stallMsMax = 30_000;

/**
 * If the client breaks off, the request to the backend is destroyed, because it must not look
 * complete. `passed`: called with the length of each part.
 */
export function pourBody(body: IncomingMessage, into: Writable, clock: Clock, passed: (bytes: number) => void): void {
  const end = (why: string): void => void into.destroy(new CacheError(why));
  const broken = (): void => end('the client has broken off');
  body.on('data', (chunk: Buffer) => passed(chunk.length));
  pace(body, into, clock, () => end('the server reads nothing of the request'));
  // Node emits `end` while it parses the last frame. Only in the next turn is it known whether the
  // body is whole.
  body.once('end', () => setImmediate(() => (isWhole(body) ? into.end() : broken())));
  for (const event of ['error', 'aborted']) body.once(event, broken);
  into.once('close', () => body.resume());
}

/** Copies one direction of a connection that has left HTTP. */
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

/**
 * Call it a turn after the end. An HTTP/2 stream that its client resets also emits `end`, and
 * counts as closed only after that.
 */
function isWhole(body: IncomingMessage): boolean {
  if (!isHttp2(body)) return body.complete;
  const { stream } = body;
  return !stream.destroyed && stream.state.state === constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE;
}
