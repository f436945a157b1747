/**
 * Decides when a plain writer's objects count as all objects of its shard, because plain HTTP sends
 * no `end`. Until then, the slices of these shards count as not synced, and other caches keep
 * objects that these slices lack.
 *
 *   quiet for quietMs            everything counts as written
 *   never quiet for so long      everything counts as written after writingMsMax, because kcp
 *                                writes all it has within its first minute
 *   a type that appears later    counts as written at once, because its shard does already
 *
 * Bound: one check of each slice of plain shards every `checkIntervalMs`.
 */
import type { Log } from '../../diagnostics/log.js';
import type { Clock } from '../../domain/ports.js';
import type { PushLane, Writer } from '../../domain/store-port.js';
import type { ShardState } from '../../domain/claim.js';
import type { ShardName } from '../../domain/shard.js';
import type { PublishedState } from '../../domain/published-state.js';
import { lastChangeMs } from './plain-writes.js';

/** `runningSinceMs`: see RunningSince. `isLeader`: only the leading server of the store decides. */
export type AssumedSyncsParts = Readonly<{
  writer: Pick<Writer, 'lane'>;
  known: PublishedState;
  clock: Clock;
  log: Log;
  runningSinceMs: () => number;
  isLeader: () => boolean;
}>;

const checkIntervalMs = 1_000;
const writingMsMax = 300_000;

export class AssumedSyncs {
  readonly #parts: AssumedSyncsParts;
  readonly #quietMs: number;
  readonly #lane: PushLane;
  /** When this server first saw each shard that does not count as written yet. */
  readonly #writing = new Map<ShardName, number>();
  #cancel: () => void;
  #isClosed = false;

  constructor(parts: AssumedSyncsParts, { quietMs }: Readonly<{ quietMs: number }>) {
    this.#parts = parts;
    this.#quietMs = quietMs;
    this.#lane = parts.writer.lane();
    this.#cancel = this.#checkLater();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #checkLater(): () => void {
    return this.#parts.clock.after(checkIntervalMs, () => void this.#check());
  }

  async #check(): Promise<void> {
    const quiet = this.#parts.isLeader() ? [...this.#parts.known.shards].filter((state) => this.#isDue(state)) : [];
    const outcomes = quiet.length === 0 ? [] : await this.#lane.push(quiet.map(({ shard }) => ({ kind: 'assume', shard })));
    quiet.forEach(({ shard }, i) => {
      if (outcomes[i]?.kind === 'unchanged') this.#parts.log.info('shard.assumed-synced', { shard });
    });
    if (!this.#isClosed) this.#cancel = this.#checkLater();
  }

  #isDue({ shard, via, plain, term }: ShardState): boolean {
    const slices = plain && via === 'local' ? [...this.#parts.known.slicesOf(shard)] : [];
    const unsynced = slices.filter(({ syncedTerm }) => syncedTerm !== term);
    if (unsynced.length === 0) {
      this.#writing.delete(shard);
      return false;
    }
    if (unsynced.length < slices.length) return true;
    const nowMs = this.#parts.clock.now();
    const sinceMs = this.#writing.get(shard) ?? nowMs;
    this.#writing.set(shard, sinceMs);
    const lastMs = Math.max(this.#parts.runningSinceMs(), lastChangeMs(slices, nowMs));
    return nowMs - lastMs >= this.#quietMs || nowMs - sinceMs >= writingMsMax;
  }
}
