/**
 * Chunks of the change log, shared by all links of this cache. Links at the same position, such as
 * those of children that reconnect, read the log once.
 *
 *   child 1, at 40 ──▶ chunk 40–90 ──▶ chunk 90–140 …    both get the same arrays, so what crosses
 *   child 2, at 40 ──▶      "              "             is computed once (filtered-changes.ts)
 *
 * L1 If a chunk leaves out a change that a link wants, the link reads a chunk of its own.
 *
 * Bound: `chunksMax` chunks, kept for `keptMs`. A chunk exceeds a megabyte by at most one revision.
 */
import type { Clock } from '../../domain/ports.js';
import type { History, LogChunk } from '../../domain/store-port.js';
import type { Key } from '../../domain/key.js';
import type { Revision } from '../../domain/revision.js';

type Range = Readonly<{ after: Revision; upTo: Revision }>;
/**
 * `leftOut`: for each shard with changes that the reader did not want, the key of one such change.
 */
type Kept = Readonly<{ chunk: LogChunk; leftOut: readonly Key[] }>;

export type LogChunksParts = Readonly<{ history: Pick<History, 'everyChange'>; clock: Pick<Clock, 'after'> }>;

const chunksMax = 8;
const keptMs = 2_000;

export class LogChunks implements Pick<History, 'everyChange'> {
  readonly #parts: LogChunksParts;
  /** By the revision after which the chunk begins. */
  readonly #kept = new Map<Revision, Promise<Kept>>();
  #isToForget = false;

  constructor(parts: LogChunksParts) {
    this.#parts = parts;
  }

  async *everyChange({ after, upTo }: Range, isWanted: (key: Key) => boolean): AsyncGenerator<LogChunk> {
    for (let position = after; position < upTo;) {
      const chunk = await this.#chunk({ after: position, upTo }, isWanted);
      position = chunk.upTo;
      yield chunk;
    }
  }

  async #chunk(range: Range, isWanted: (key: Key) => boolean): Promise<LogChunk> {
    const before = this.#kept.get(range.after);
    if (before !== undefined) {
      const { chunk, leftOut } = await before;
      if (chunk.upTo <= range.upTo && !leftOut.some(isWanted)) return chunk;
    }
    const reading = this.#read(range, isWanted);
    this.#keep(range.after, reading);
    return (await reading).chunk;
  }

  async #read(range: Range, isWanted: (key: Key) => boolean): Promise<Kept> {
    const leftOut = new Map<string, Key>();
    const wants = (key: Key): boolean => {
      const isIn = isWanted(key);
      if (!isIn) leftOut.set(key.shard, key);
      return isIn;
    };
    for await (const chunk of this.#parts.history.everyChange(range, wants)) return { chunk, leftOut: [...leftOut.values()] };
    return { chunk: { changes: [], upTo: range.upTo }, leftOut: [] };
  }

  #keep(after: Revision, reading: Promise<Kept>): void {
    this.#kept.delete(after);
    this.#kept.set(after, reading);
    // The caller that asked for the chunk gets the error; the next caller reads again.
    reading.catch(() => this.#kept.delete(after));
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= chunksMax) break;
      this.#kept.delete(oldest);
    }
    if (this.#isToForget) return;
    this.#isToForget = true;
    this.#parts.clock.after(keptMs, () => {
      this.#isToForget = false;
      this.#kept.clear();
    });
  }
}
