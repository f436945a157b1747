/**
 * Long lists as gzip, for clients that accept it, as those of Go do unless told otherwise. Each piece is deflated by itself, on Node's thread pool,
 * and once for all who are sent the very same piece:
 *
 *   header │ blocks of piece 1 │ blocks of piece 2 │ … │ last, empty block │ checksum and length of all
 *
 * The blocks of a piece end on a byte and look back to nothing before it, so any pieces make one stream. What a piece was deflated to lives
 * as long as the piece.
 */
import { promisify } from 'node:util';
import { constants, crc32, deflateRaw } from 'node:zlib';
import type { Room } from '../domain/room.js';
import { appended, shiftOf, type Checksum } from './crc32-appended.js';

type Deflated = Readonly<{ blocks: Uint8Array; plain: Checksum }>;

const deflate = promisify<Uint8Array, { level: number; finishFlush: number; chunkSize: number }, Buffer>(deflateRaw);
const settings = { level: constants.Z_BEST_SPEED, finishFlush: constants.Z_SYNC_FLUSH, chunkSize: 64 * 1024 };
/** Deflated, no name or time, fastest, from no system in particular (RFC 1952). */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff]);
const lastBlock = Buffer.from([3, 0]);
const trailerBytes = 8;

export class Gzip {
  readonly #deflated = new WeakMap<Uint8Array, Promise<Deflated>>();

  /** Gives back the room of each piece once it is deflated, and takes room for what comes of it. */
  async *stream(pieces: AsyncIterable<Uint8Array>, room: Pick<Room, 'add' | 'give'>): AsyncGenerator<readonly Uint8Array[]> {
    let all: Checksum = { crc: 0, length: 0, shift: shiftOf(0) };
    let opening: readonly Uint8Array[] = [header];
    room.add(header.length);
    for await (const piece of oneAhead(pieces)) {
      const { blocks, plain } = await this.#of(piece);
      room.add(blocks.length);
      room.give(piece.length);
      yield [...opening, blocks];
      opening = [];
      all = appended(all, plain);
    }
    const trailer = Buffer.alloc(trailerBytes);
    trailer.writeUInt32LE(all.crc, 0);
    trailer.writeUInt32LE(all.length % 2 ** 32, 4);
    room.add(lastBlock.length + trailer.length);
    yield [...opening, lastBlock, trailer];
  }

  #of(piece: Uint8Array): Promise<Deflated> {
    const known = this.#deflated.get(piece);
    if (known !== undefined) return known;
    const deflating = deflated(piece);
    this.#deflated.set(piece, deflating);
    return deflating;
  }
}

async function deflated(piece: Uint8Array): Promise<Deflated> {
  const blocks = await deflate(piece, settings);
  return { blocks, plain: { crc: crc32(piece), length: piece.length, shift: shiftOf(piece.length) } };
}

/** Reads the next one while the one before is being deflated and sent. */
async function* oneAhead<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  const reading = items[Symbol.asyncIterator]();
  try {
    for (let next = reading.next(); ;) {
      const { done, value } = await next;
      if (done === true) return;
      next = reading.next();
      // Whoever asks for it gets the error.
      next.catch(() => {});
      yield value;
    }
  } finally {
    await reading.return?.();
  }
}
