import type { PushedKey, PushedObject } from '../frames/frame.js';

/**
 * What a source reports on its slice, in order: a full sync first, then changes. A source that lost its place tells a
 * full sync again, from `begin`; a `begin` without an `end` means nothing was left out on purpose.
 *
 *   begin put … put end  put delete put …  begin put … end  …
 */
export type Outgoing =
  | Readonly<{ kind: 'begin'; revision: string }>
  | Readonly<{ kind: 'put'; version: string; object: PushedObject }>
  | Readonly<{ kind: 'delete'; key: PushedKey }>
  | Readonly<{ kind: 'end'; revision: string }>;

/** Where the objects of one slice come from. */
export interface SliceSource {
  /** Whether what it reads from is there. */
  readonly connected: boolean;
  /**
   * Begins with a full sync. Asked for the next batch only when there is room for it, so that a slow cache slows the
   * source and costs no memory. Goes on until `signal` is aborted; it deals with its own troubles.
   */
  open(signal: AbortSignal): AsyncIterable<readonly Outgoing[]>;
}
