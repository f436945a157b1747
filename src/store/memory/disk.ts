/**
 * What a memory store has on its disk: everything it has acknowledged, and nothing else. It outlives the store, as a disk does; one store
 * at a time is open on it.
 *
 *   blank ─▶ store ─crash─▶ the same disk ─▶ store               a process that dies
 *                 └─copy─▶ older disk ─▶ store                   a backup that is restored
 *                                   blank ─▶ store               a disk that was lost: another cache
 */
import type { ShardState } from '../../domain/claim.js';
import type { LinkState } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import type { Neighbour } from '../../domain/via.js';
import { nextEpoch, nextNonce, type Epoch, type EpochParts } from '../epochs.js';
import { newCacheId } from '../cache-id.js';
import { MemoryLog } from './log.js';
import { MemoryPaths } from './paths.js';
import { MemorySlices } from './slices.js';

type Contents = Pick<MemoryDisk, 'cacheId' | 'epochs' | 'log' | 'slices' | 'paths' | 'shards' | 'links' | 'resources'>;

export class MemoryDisk {
  readonly cacheId: string;
  readonly epochs: Epoch[];
  readonly log: MemoryLog;
  readonly slices: MemorySlices;
  readonly paths: MemoryPaths;
  readonly shards: Map<ShardName, ShardState>;
  readonly links: Map<Neighbour, LinkState>;
  /** Every type that was ever pushed or written, in that order; removals go by it. */
  readonly resources: Map<string, number>;

  private constructor(contents: Contents) {
    this.cacheId = contents.cacheId;
    this.epochs = contents.epochs;
    this.log = contents.log;
    this.slices = contents.slices;
    this.paths = contents.paths;
    this.shards = contents.shards;
    this.links = contents.links;
    this.resources = contents.resources;
  }

  /** An empty disk of a new cache. `random` gives [0, 1). */
  static blank(random: () => number): MemoryDisk {
    return new MemoryDisk({
      cacheId: newCacheId(random),
      epochs: [],
      log: new MemoryLog(),
      slices: new MemorySlices(),
      paths: new MemoryPaths(),
      shards: new Map(),
      links: new Map(),
      resources: new Map(),
    });
  }

  /** A copy of the present state. Bodies are shared, because nobody changes them. */
  copy(): MemoryDisk {
    return new MemoryDisk({
      cacheId: this.cacheId,
      epochs: [...this.epochs],
      log: new MemoryLog(this.log),
      slices: new MemorySlices(this.slices),
      paths: new MemoryPaths(this.paths),
      shards: new Map(this.shards),
      links: new Map(this.links),
      resources: new Map(this.resources),
    });
  }

  /** As every start does. An epoch without writes is dropped, because nobody can hold a resourceVersion of it. */
  beginEpoch(parts: EpochParts): void {
    const firstRevision = this.log.revision + 1;
    const last = this.epochs.at(-1);
    if (last?.firstRevision === firstRevision && this.epochs.length > 1) this.epochs.pop();
    this.epochs.push({ epoch: nextEpoch(last?.epoch ?? 0, parts), firstRevision, nonce: nextNonce(parts) });
  }
}
