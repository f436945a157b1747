/**
 * Answers each `begin` with `compares`: sends a summary of this cache's objects of the slice.
 * Slices are summed up one after another.
 *
 *   begin, compares ──▶ in the store ──▶ snapshot, page by page ──▶ summary    one page a turn
 *
 * Objects that arrive between the begin and the snapshot do no harm. The other end sends them in
 * order, and putting an object twice changes nothing.
 *
 * Bounds: the last begin of each slice. A begin costs the other end nothing, so reading takes at
 * most half of the time.
 */
import { Refused } from '../../domain/errors.js';
import { pause } from '../../domain/base/promises.js';
import type { Clock } from '../../domain/ports.js';
import type { Store } from '../../domain/store-port.js';
import { scopeOfSlice } from '../../domain/scope.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import { Summary } from '../../domain/slices/summary.js';
import type { FrameConnection } from '../../frames/frame-connection.js';

export type SummariesParts = Readonly<{
  store: Pick<Store, 'objects' | 'revisions'>;
  connection: Pick<FrameConnection, 'send' | 'terminate'>;
  clock: Clock;
  turn: () => Promise<void>;
}>;

const none = new Uint8Array();

type Asked = Readonly<{ slice: Slice; sequence: number }>;

export class Summaries {
  readonly #parts: SummariesParts;
  readonly #asked = new Map<string, Asked>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(parts: SummariesParts) {
    this.#parts = parts;
  }

  add(slice: Slice, sequence: number): void {
    this.#asked.set(formatSlice(slice), { slice, sequence });
    // An error cuts the connection, as an error of the receiving half does.
    this.#running ??= this.#run().catch(() => this.#parts.connection.terminate());
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { connection, clock } = this.#parts;
    const { signal } = this.#stop;
    for (const [name, { slice, sequence }] of this.#asked) {
      this.#asked.delete(name);
      const beganMs = clock.now();
      const digests = await this.#summaryOf(slice);
      if (signal.aborted) break;
      connection.send({ kind: 'summary', slice, sequence, digests });
      await pause(clock, clock.now() - beganMs, signal);
    }
    this.#running = undefined;
  }

  /** Returns no digests if the snapshot was held for too long. */
  async #summaryOf(slice: Slice): Promise<Uint8Array> {
    const { store, turn } = this.#parts;
    const summary = new Summary();
    try {
      for await (const objects of snapshotPages(store.objects.snapshot(scopeOfSlice(slice), store.revisions.published))) {
        if (this.#stop.signal.aborted) return none;
        summary.add(objects);
        await turn();
      }
      return summary.digests();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return none;
    }
  }
}
