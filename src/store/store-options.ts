/** The limits and parts that both engines need. */
import type { Log } from '../diagnostics/log.js';
import type { KeptNames } from '../domain/kept-names.js';
import type { Clock } from '../domain/ports.js';
import type { StoreObserver } from '../domain/store-port.js';
import type { QueueLimits } from './mutation-queue.js';

export type SnapshotLimits = Readonly<{ rowsMax: number; bytesMax: number }>;

export type EngineLimits = Readonly<{
  queue: QueueLimits;
  snapshot: SnapshotLimits;
  snapshotHoldMs: number;
  recentBytesMax: number;
  keptNames: KeptNames;
}>;

export type StoreParts = Readonly<{
  log: Log;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  observe: StoreObserver;
}>;
