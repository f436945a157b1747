/** The options of the SQLite engine. */
import type { Log } from '../../diagnostics/log.js';
import type { KeptNames } from '../../domain/kept-names.js';
import type { Clock } from '../../domain/ports.js';
import type { StoreObserver } from '../../domain/store-port.js';
import type { HistoryLimits } from '../compactor.js';
import type { QueueLimits } from '../mutation-queue.js';
import type { SnapshotLimits } from './snapshot.js';

export type StoreLimits = Readonly<{
  queue: QueueLimits;
  history: HistoryLimits;
  snapshot: SnapshotLimits;
  snapshotHoldMs: number;
  recentBytesMax: number;
  /** A start after an unclean end does not check a database larger than this. */
  startCheckBytesMax: number;
  keptNames: KeptNames;
}>;

export type StoreParts = Readonly<{
  log: Log;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  observe: StoreObserver;
}>;
