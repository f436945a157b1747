/** The options of the etcd engine. */
import type { EngineLimits } from '../store-options.js';
import type { EtcdClientOptions } from './client.js';
import type { WindowLimits } from './history-window.js';

/** `prefix`: the prefix of all keys of the cache, such as `/cache`. */
export type EtcdOptions = EtcdClientOptions & Readonly<{ prefix: string }>;

export type EtcdLimits = EngineLimits &
  Readonly<{
    history: WindowLimits;
    /** Revisions of history that a start reads, so that watches of other servers resume here. */
    resumedRevisionsMax: number;
    /** How often the leader checks for unfinished work of other servers. */
    dutiesIntervalMs: number;
  }>;
