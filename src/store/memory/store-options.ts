/** The parts of a memory store, and the bounds that a test may narrow. */
import type { Digest } from '../../domain/digest.js';
import type { KeptNames } from '../../domain/kept-names.js';
import type { Key } from '../../domain/key.js';
import type { Body } from '../../domain/object.js';
import type { Clock } from '../../domain/ports.js';
import type { QueueLimits } from '../mutation-queue.js';
import type { MemoryPageLimits } from './snapshot.js';

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
  keptNames: KeptNames;
}>;

const mebibyte = 1024 * 1024;

/** Those of a server, but for what lanes share. */
export const memoryStoreOptions: MemoryStoreOptions = {
  commitMs: 0,
  queue: {
    mutationsMax: 10_000,
    bytesMax: 64 * mebibyte,
    pushMutationsMax: 1_024,
    pushBytesMax: 16 * mebibyte,
    batchMutationsMax: 512,
    batchBytesMax: 8 * mebibyte,
    sharedDivisor: 1,
  },
  page: { rowsMax: 500, bytesMax: mebibyte / 4 },
  historyChangesMax: 1_000_000,
  tombstonesMax: 1_000_000,
  snapshotHoldMs: 60_000,
  keptNames: new Map(),
};
