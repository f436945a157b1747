/**
 * The observable state of a sender, and how its run ends. Times are milliseconds since 1970, ages
 * milliseconds.
 */
import type { Slice } from '../domain/slice.js';
import type { Credit } from '../frames/frame.js';
import type { FinalReason } from './reconnect.js';

export type SenderState = Readonly<{
  connection: SenderConnection;
  /** In the order in which they were added. */
  slices: readonly SliceProgress[];
  /**
   * Sent and not acknowledged, over all slices. Never exceeds the cache's credit, except for a
   * single object larger than the credit.
   */
  unacknowledged: Credit;
  /**
   * Objects and deletions that a cache has made durable since the sender was created, over all
   * slices, withdrawn slices included. A resync counts its objects again.
   */
  pushed: number;
  /** Refused objects since the sender was created, over all slices, withdrawn slices included. */
  refused: number;
  /** Age of the oldest mutation of a source that no cache has acknowledged; 0 if there is none. */
  lagMs: number;
  reconnects: number;
}>;

export type SenderConnection =
  /** `run` has not been called yet, or is over. */
  | Readonly<{ kind: 'idle' }>
  /** No welcome has arrived yet. */
  | Readonly<{ kind: 'connecting'; url: string; sinceMs: number }>
  /** Another pusher has the shard; this sender waits at the cache until that pusher disconnects. */
  | Readonly<{ kind: 'standby'; url: string; sinceMs: number }>
  /** `epoch`: the life of the cache's store, from one of its starts to the next. */
  | Readonly<{ kind: 'connected'; url: string; sinceMs: number; cacheId: string; epoch: number }>
  /** `message`: how the last connection ended. `url`: the next URL. */
  | Readonly<{ kind: 'waiting'; url: string; untilMs: number; message: string }>;

export type SliceProgress = Readonly<{
  slice: Slice;
  /**
   * waiting: the source is not read, because no cache is connected, a slice that must be synced
   * first is not, or the resync waits. A resync waits after a refused sync or a failed source, and
   * if the cache asks for one again and again.
   *
   * syncing: the cache has not acknowledged the full sync yet.
   *
   * synced: the whole slice is durable at the cache, except for unacknowledged mutations.
   */
  phase: 'waiting' | 'syncing' | 'synced';
  connected: boolean;
  /** Objects sent since the last begin. */
  objects: number;
  unacknowledged: Credit;
  /** Objects that the cache refused, or that are too large for it. */
  refused: number;
  /**
   * Age of the oldest mutation of its source that no cache has acknowledged; 0 if there is none.
   */
  lagMs: number;
  /** The slice is synced, and each refused object has been accepted or deleted since. */
  whole: boolean;
}>;

/**
 * stopped: the signal of `run` was aborted.
 *
 * refused: the cache refuses this sender, and reconnecting would not help. `fenced`: another pusher
 * took the shard later, or the shard was removed. `forbidden`: the certificate does not speak for
 * the shard. `unsupported`: there is no common protocol version.
 */
export type SenderEnd = Readonly<{ kind: 'stopped' }> | Readonly<{ kind: 'refused'; reason: FinalReason; message: string }>;
