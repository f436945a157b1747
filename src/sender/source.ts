import type { ClusterName } from '../domain/cluster.js';
import type { PushedKey, PushedObject } from '../frames/frame.js';

/**
 * What a source sends of its slice, in order: a full sync first, then changes. A source that lost its place sends a
 * full sync again, from `begin`. A `begin` without an `end` removes nothing.
 *
 *   begin put … put end  put delete put …  begin put … end  …
 *
 * It may also sync single logical clusters, whose objects are then sent as a whole: in a full sync, and after it. Their syncs may overlap, each with
 * each and with changes. At a `clusterEnd` the cache removes what was not sent of that logical cluster, at `end` what was not sent of any that is not under way.
 *
 *   begin  clusterBegin a  put …  clusterBegin b  put …  clusterEnd a  put …  clusterEnd b  end  put …  clusterBegin a  put …  clusterEnd a
 */
export type Outgoing =
  | Readonly<{ kind: 'begin'; revision: string }>
  | Readonly<{ kind: 'put'; version: string; object: PushedObject }>
  | Readonly<{ kind: 'delete'; key: PushedKey }>
  | Readonly<{ kind: 'end'; revision: string }>
  | Readonly<{ kind: 'clusterBegin'; cluster: ClusterName }>
  | Readonly<{ kind: 'clusterEnd'; cluster: ClusterName }>
  /** It has not begun, because it cannot be read: the `end` that follows removes nothing of it, and the slice is not whole until its `clusterEnd`. */
  | Readonly<{ kind: 'clusterKeep'; cluster: ClusterName }>;

/** Where the objects of one slice come from. */
export interface SliceSource {
  /** Whether the source is connected to what it reads from. */
  readonly connected: boolean;
  /** Since when something waits to be asked for, of a source that reads ahead; on the sender's clock. */
  readonly waitingSinceMs?: number | undefined;
  /**
   * Begins with a full sync. It is asked for the next batch only when there is room for it, so that a slow cache slows the
   * source and costs no memory. Goes on until `signal` is aborted; it handles its own failures.
   */
  open(signal: AbortSignal): AsyncIterable<readonly Outgoing[]>;
}
