/** The body of an answer, of which its reader takes nothing for a while: what comes meanwhile is gathered, and counted. */
import type { Readable } from 'node:stream';
import { GatheredBytes } from '../domain/gathered-bytes.js';
import type { Room } from '../domain/room.js';

/** Where what is unread counts. */
export type UnreadRoom = Pick<Room, 'tryTake' | 'give'>;

const uncounted: UnreadRoom = Object.freeze({ tryTake: () => true, give: () => {} });

/**
 * Gathers the pieces of a body that come while its reader has not taken those before them, and ends the body where there is no room for more. To be called before
 * the first of them can have come; the reader takes what there is, never a number of bytes.
 */
export function gatherUnread(body: Readable, room: UnreadRoom = uncounted): void {
  const push = body.push.bind(body);
  const read = body.read.bind(body);
  const readOn = body._read.bind(body);
  const unread = new GatheredBytes();
  let isWhole = false;
  // To Node, who reads as `readable` says is paused, too.
  const isPaused = (): boolean => body.isPaused() && body.listenerCount('readable') === 0;
  body.push = (piece: Uint8Array | null) => {
    if (unread.bytes === 0 && (piece === null || (body.readableLength === 0 && !isPaused()))) return push(piece);
    isWhole ||= piece === null;
    if (piece === null || body.destroyed) return false;
    if (room.tryTake(piece.length)) unread.add(piece);
    else body.destroy();
    return body.readableLength + unread.bytes < body.readableHighWaterMark;
  };
  body.read = (size?: number) => {
    // Node asks for nothing when it looks whether there is more to read. What flows is handed over within `push`, until its reader pauses.
    while (size !== 0 && unread.bytes > 0 && body.readableLength === 0 && !isPaused()) {
      const piece = unread.shift();
      room.give(piece?.length ?? 0);
      push(piece);
    }
    if (isWhole && unread.bytes === 0) {
      isWhole = false;
      push(null);
    }
    return read(size) as unknown;
  };
  // Node sees only what is in its own buffer, and would ask the other end for more.
  body._read = (size) => {
    if (unread.bytes < body.readableHighWaterMark) readOn(size);
  };
  body.once('close', () => {
    room.give(unread.bytes);
    unread.take();
  });
}
