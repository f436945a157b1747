/**
 * Takes what plain writers wrote for everything there is, once they have been quiet for a while: over plain HTTP nobody tells an
 * end. Until then the slices of their shards count as not synced, and other caches do not forget what was not stated.
 *
 * Bound: a look at every slice of plain shards, every `lookIntervalMs`.
 */
import type { Log } from '../diagnostics/log.js';
import type { Clock, PushLane, Pushes } from '../domain/ports.js';
import type { ShardState } from '../domain/claim.js';
import type { KnownShards } from './known-shards.js';

export type PlainWritersParts = Readonly<{ pushes: Pushes; known: KnownShards; clock: Clock; log: Log }>;

const lookIntervalMs = 1_000;

export class PlainWriters {
  readonly #parts: PlainWritersParts;
  readonly #quietMs: number;
  readonly #lane: PushLane;
  readonly #startedMs: number;
  #cancel: () => void;
  #isClosed = false;

  constructor(parts: PlainWritersParts, { quietMs }: Readonly<{ quietMs: number }>) {
    this.#parts = parts;
    this.#quietMs = quietMs;
    this.#lane = parts.pushes.lane();
    this.#startedMs = parts.clock.now();
    this.#cancel = this.#lookLater();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #lookLater(): () => void {
    return this.#parts.clock.after(lookIntervalMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    const quiet = [...this.#parts.known.shards].filter((state) => this.#isDue(state));
    const outcomes = quiet.length === 0 ? [] : await this.#lane.push(quiet.map(({ shard }) => ({ kind: 'assume', shard })));
    quiet.forEach(({ shard }, i) => {
      if (outcomes[i]?.kind === 'unchanged') this.#parts.log.info('shard.assumed-stated', { shard });
    });
    if (!this.#isClosed) this.#cancel = this.#lookLater();
  }

  #isDue({ shard, side, plain, incarnation }: ShardState): boolean {
    if (!plain || side !== 'local') return false;
    const slices = [...this.#parts.known.slicesOf(shard)];
    if (slices.every(({ stated }) => stated === incarnation)) return false;
    const lastMs = Math.max(this.#startedMs, ...slices.map(({ changedMs }) => changedMs));
    return this.#parts.clock.now() - lastMs >= this.#quietMs;
  }
}
