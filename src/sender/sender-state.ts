/** What can be seen of a sender while it runs, and how its run ends. Times are milliseconds since 1970, ages milliseconds. */
import type { Slice } from '../domain/slice.js';
import type { Credit } from '../frames/frame.js';
import type { FinalReason } from './reconnect.js';

export type SenderState = Readonly<{
  connection: SenderConnection;
  /** In the order in which they were added. */
  slices: readonly SliceProgress[];
  /** Sent and not acknowledged, of all slices; never above the cache's credit, but for one object that alone is larger. */
  unacknowledged: Credit;
  /** Objects and deletions that a cache has made durable, of all slices, withdrawn ones included, since the sender was made. A resync counts its objects again. */
  pushed: number;
  /** Objects that were refused, of all slices, withdrawn ones included, since the sender was made. */
  refused: number;
  /** How old the oldest is that a source sent and no cache acknowledged; 0 when there is none. */
  lagMs: number;
  /** How often it has come back since it was made, after a connection ended or was not made. */
  reconnects: number;
}>;

export type SenderConnection =
  /** `run` was not called yet, or is over. */
  | Readonly<{ kind: 'idle' }>
  /** Until the cache's welcome. */
  | Readonly<{ kind: 'connecting'; url: string; sinceMs: number }>
  /** Another has the shard, and this one waits at the cache until that is gone. */
  | Readonly<{ kind: 'standby'; url: string; sinceMs: number }>
  /** `epoch`: the life of the cache's store, from one of its starts to the next. */
  | Readonly<{ kind: 'connected'; url: string; sinceMs: number; cacheId: string; epoch: number }>
  /** `message`: how the last connection ended. `url`: the next one. */
  | Readonly<{ kind: 'waiting'; url: string; untilMs: number; message: string }>;

export type SliceProgress = Readonly<{
  slice: Slice;
  /**
   * waiting: its source is not read, because no cache is connected, the slice it comes after is not synced, or its resync has to
   * wait: its sync was refused, its source broke, or the cache asks for it again and again.
   * syncing: its full sync is not acknowledged yet.
   * synced: the cache has all of it, durably, but for what is not acknowledged.
   */
  phase: 'waiting' | 'syncing' | 'synced';
  /** Whether its source is connected to what it reads from. */
  connected: boolean;
  /** How many objects were sent since the last begin. */
  objects: number;
  /** Sent and not acknowledged. */
  unacknowledged: Credit;
  /** Objects that were refused by the cache, or are too large for it. */
  refused: number;
  /** How old the oldest is that its source sent and no cache acknowledged; 0 when there is none. */
  lagMs: number;
  /** It is synced, and every object of it that was refused has been accepted since, or is gone. */
  whole: boolean;
}>;

/**
 * stopped: the signal of `run` was aborted.
 * refused: the cache refuses this sender, and coming back would change nothing. `fenced`: another that came later has the
 * shard, or it was removed; `forbidden`: the certificate does not speak for it; `unsupported`: no common protocol version.
 */
export type SenderEnd = Readonly<{ kind: 'stopped' }> | Readonly<{ kind: 'refused'; reason: FinalReason; message: string }>;
