/** The parts of a memory store, and the bounds that a test may narrow. */
import { queueLimits } from './queue-limits.js';
import type { Digest } from '../../src/domain/digest.js';
import type { Key } from '../../src/domain/key.js';
import type { Body } from '../../src/domain/object.js';
import type { Clock } from '../../src/domain/ports.js';
import type { QueueLimits } from '../../src/store/sqlite/mutation-queue.js';
import type { MemoryPageLimits } from './memory-snapshot.js';

export type MemoryStoreParts = Readonly<{
  clock: Clock;
  /** Runs a task after everything this turn still brings. */
  soon: (task: () => void) => void;
  /** Gives [0, 1). */
  random: () => number;
  /** Where many stores hold the same bodies, a cache of digests saves most of the hashing. */
  digestOf?: (key: Key, body: Body) => Digest;
}>;

export type MemoryStoreOptions = Readonly<{
  /** How long the disk takes for a commit; 0: until the next turn. */
  commitMs: number;
  queue: QueueLimits;
  page: MemoryPageLimits;
  /** What `compact` leaves when no revision is given. */
  historyChangesMax: number;
  tombstonesMax: number;
  snapshotHoldMs: number;
}>;

const mebibyte = 1024 * 1024;

export const memoryStoreOptions: MemoryStoreOptions = {
  commitMs: 0,
  queue: queueLimits,
  page: { rowsMax: 500, bytesMax: mebibyte / 4 },
  historyChangesMax: 1_000_000,
  tombstonesMax: 1_000_000,
  snapshotHoldMs: 60_000,
};
