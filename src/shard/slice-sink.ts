/**
 * The receiver of the agent's slices: the part of a sender that the agent needs. Tests replace it.
 */
import type { Slice } from '../domain/slice.js';
import type { SliceSource } from '../sender/source.js';

export interface SliceSink {
  /** `after`: the cache can accept this slice only once that one was synced. */
  add(slice: Slice, source: SliceSource, options?: Readonly<{ after?: Slice }>): void;
  /** Stops sending the slice. The cache keeps its objects until it removes the slice itself. */
  withdraw(slice: Slice): void;
  /**
   * Whether all slices of the shard were added. While they are, the cache removes its other slices
   * of the shard.
   */
  complete(isComplete: boolean): void;
}
