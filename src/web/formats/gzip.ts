/**
 * Sends long lists as gzip to clients that accept it; Go's clients do so by default. Each piece is
 * deflated by itself, on Node's thread pool, and once for all requests that send the same piece:
 *
 *   header │ blocks of piece 1 │ … │ last, empty block │ checksum and length of all
 *
 * Each piece ends on a byte boundary and has no back-references to an earlier piece, so any pieces
 * can be concatenated. The deflated bytes are cached as long as the piece itself lives.
 */
import { promisify } from 'node:util';
import { constants, crc32, deflateRaw } from 'node:zlib';
import { entryOf } from '../../domain/base/entry-of.js';
import type { MemoryReservation } from '../../domain/base/memory-reservation.js';

type Deflated = Readonly<{ blocks: Uint8Array; plain: Checksum }>;

const deflate = promisify<Uint8Array, { level: number; finishFlush: number; chunkSize: number }, Buffer>(deflateRaw);
const settings = { level: constants.Z_BEST_SPEED, finishFlush: constants.Z_SYNC_FLUSH, chunkSize: 64 * 1024 };
/** RFC 1952: deflated, no name, no time, fastest, unknown system. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff]);
const lastBlock = Buffer.from([3, 0]);
const trailerBytes = 8;

export class Gzip {
  readonly #deflated = new WeakMap<Uint8Array, Promise<Deflated>>();

  /** For each piece, reserves memory for the deflated bytes and releases the piece's memory. */
  async *stream(
    pieces: AsyncIterable<Uint8Array>,
    memory: Pick<MemoryReservation, 'add' | 'release'>,
  ): AsyncGenerator<readonly Uint8Array[]> {
    let all: Checksum = { crc: 0, length: 0, shift: shiftOf(0) };
    let opening: readonly Uint8Array[] = [header];
    memory.add(header.length);
    for await (const piece of oneAhead(pieces)) {
      const { blocks, plain } = await entryOf(this.#deflated, piece, () => deflated(piece));
      memory.add(blocks.length);
      memory.release(piece.length);
      yield [...opening, blocks];
      opening = [];
      all = appended(all, plain);
    }
    const trailer = Buffer.alloc(trailerBytes);
    trailer.writeUInt32LE(all.crc, 0);
    trailer.writeUInt32LE(all.length % 2 ** 32, 4);
    memory.add(lastBlock.length + trailer.length);
    yield [...opening, lastBlock, trailer];
  }
}

async function deflated(piece: Uint8Array): Promise<Deflated> {
  const blocks = await deflate(piece, settings);
  return { blocks, plain: { crc: crc32(piece), length: piece.length, shift: shiftOf(piece.length) } };
}

/** Reads the next item while the one before it is deflated and sent. */
async function* oneAhead<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  const reading = items[Symbol.asyncIterator]();
  try {
    for (let next = reading.next(); ;) {
      const { done, value } = await next;
      if (done === true) return;
      next = reading.next();
      // The consumer still gets the error when it awaits this item.
      next.catch(() => {});
      yield value;
    }
  } finally {
    await reading.return?.();
  }
}

type Checksum = Readonly<{
  crc: number;
  length: number;
  /** x^8n, where n is `length`. */
  shift: number;
}>;

const modulus = 0xedb88320;
const one = 0x80000000;
const x8 = 0x00800000;

/**
 * Computes the CRC-32 of two concatenated texts from the checksum of each, as zlib's
 * `crc32_combine` does. Appending n bytes multiplies the checksum of the first text by x^8n. The
 * factors are polynomials over GF(2) modulo CRC-32's polynomial, with the coefficient of x^0 in the
 * highest bit.
 */
export function appended(first: Checksum, second: Checksum): Checksum {
  return {
    crc: (product(second.shift, first.crc) ^ second.crc) >>> 0,
    length: first.length + second.length,
    shift: product(first.shift, second.shift),
  };
}

/** x^8n, by squaring. */
export function shiftOf(bytes: number): number {
  let [shift, power] = [one, x8];
  for (let left = bytes; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) shift = product(shift, power);
    power = product(power, power);
  }
  return shift;
}

function product(a: number, b: number): number {
  let sum = 0;
  for (let [bit, shifted] = [one, b]; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) sum ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ modulus;
  }
  return sum >>> 0;
}
