/** The options of the etcd engine. */
import type { Log } from '../../diagnostics/log.js';
import type { KeptNames } from '../../domain/kept-names.js';
import type { Clock } from '../../domain/ports.js';
import type { StoreObserver } from '../../domain/store-port.js';
import type { QueueLimits } from '../mutation-queue.js';
import type { EtcdClientOptions } from './client.js';
import type { WindowLimits } from './history-window.js';
import type { SnapshotLimits } from './snapshot.js';

/** `prefix`: the prefix of all keys of the cache, such as `/cache`. */
export type EtcdOptions = EtcdClientOptions & Readonly<{ prefix: string }>;

export type EtcdLimits = Readonly<{
  queue: QueueLimits;
  history: WindowLimits;
  snapshot: SnapshotLimits;
  snapshotHoldMs: number;
  recentBytesMax: number;
  /** Revisions of history that a start reads, so that watches of other servers can resume here. */
  resumedRevisionsMax: number;
  /** How often the leader checks for what other servers have left undone. */
  dutiesIntervalMs: number;
  keptNames: KeptNames;
}>;

export type EtcdParts = Readonly<{
  log: Log;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  observe: StoreObserver;
}>;
