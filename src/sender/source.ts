import type { ClusterName } from '../domain/cluster.js';
import type { PushedKey, PushedObject } from '../frames/frame.js';

/**
 * A mutation that a source reports for its slice. The source first reports a full sync, then
 * changes. If the source loses its place, it reports another full sync, from `begin`. A `begin`
 * without an `end` removes nothing.
 *
 *  begin put … put end  put delete put …  begin put … end  …
 *
 * A source may also sync single logical clusters, within a full sync and after it. Such a sync
 * reports all objects of the logical cluster. These syncs may overlap with each other and with
 * changes. At a `clusterEnd` the cache removes objects of that logical cluster that were not
 * reported. At `end` it removes unreported objects of all logical clusters that are not being
 * synced.
 *
 *  begin  clusterBegin a  put …  clusterBegin b  put …  clusterEnd a  put …  clusterEnd b  end
 *  put …  clusterBegin a  put …  clusterEnd a
 */
export type Outgoing =
  | Readonly<{ kind: 'begin'; revision: string }>
  | Readonly<{ kind: 'put'; version: string; object: PushedObject }>
  | Readonly<{ kind: 'delete'; key: PushedKey }>
  | Readonly<{ kind: 'end'; revision: string }>
  | Readonly<{ kind: 'clusterBegin'; cluster: ClusterName }>
  | Readonly<{ kind: 'clusterEnd'; cluster: ClusterName }>
  /**
   * The source cannot read the logical cluster. The `end` that follows removes none of its objects,
   * and the slice is not whole until the `clusterEnd` of that logical cluster.
   */
  | Readonly<{ kind: 'clusterKeep'; cluster: ClusterName }>;

export interface SliceSource {
  /** Whether the source is connected to what it reads from. */
  readonly connected: boolean;
  /**
   * For a source that reads ahead: since when a batch has been waiting for a request, on the
   * sender's clock.
   */
  readonly waitingSinceMs?: number | undefined;
  /**
   * Starts with a full sync. The sender asks for the next batch only while there is credit, so that
   * a slow cache slows the source and costs no memory. The source continues until `signal` is
   * aborted, and handles its own failures; if it ends or throws, the sender resyncs the slice.
   */
  open(signal: AbortSignal): AsyncIterable<readonly Outgoing[]>;
}
