/** Where the agent gives its slices: the part of a sender that it needs, so that a test can take its place. */
import type { Slice } from '../domain/slice.js';
import type { SliceSource } from '../sender/source.js';

export interface SliceSink {
  /** `after`: the cache can accept this slice only when that one was synced. */
  add(slice: Slice, source: SliceSource, options?: Readonly<{ after?: Slice }>): void;
  /** Nothing more of the slice is sent. What the cache holds of it stays until the cache removes it. */
  withdraw(slice: Slice): void;
  /** Whether all slices of the shard were added: while they are, the cache removes what it holds of any other. */
  complete(isComplete: boolean): void;
}
