import type { CanonicalPath } from './cluster.js';
import type { Refusal } from './errors.js';
import type { Key } from './key.js';
import type { Body } from './object.js';
import type { Resource } from './resource.js';
import type { Revision } from './revision.js';
import type { ShardName } from './shard.js';
import type { Slice } from './slice.js';

/**
 * When a pusher started, in milliseconds since 1970. Of two pushers that claim one shard the higher wins. A tombstone has one too,
 * so that an old process of a removed shard stays out.
 */
export type Incarnation = number;

/**
 * What a pusher asks in the name of its shard, already admitted. It says how things are, whatever was there: it names no
 * revision, and what is so already is no change. All that have an incarnation but `claim` are fenced by it, in queue order.
 *
 *   claim ── begin ── state … state keep … ── end ── state, retract …         end removes what was not stated since begin
 */
export type Push =
  /** Takes the shard for this incarnation, unless a higher one has it or it was removed. */
  | Readonly<{ kind: 'claim'; shard: ShardName; incarnation: Incarnation }>
  /** The slice is about to be stated as a whole. Until `end` it counts as not stated. */
  | Readonly<{ kind: 'begin'; slice: Slice; incarnation: Incarnation }>
  /** The key holds this. */
  | Readonly<{ kind: 'state'; key: Key; body: Body; path: CanonicalPath | undefined; incarnation: Incarnation }>
  /** The key holds what it did, or nothing: within a statement it is not among the unstated. */
  | Readonly<{ kind: 'keep'; key: Key; incarnation: Incarnation }>
  /** The key holds nothing. */
  | Readonly<{ kind: 'retract'; key: Key; incarnation: Incarnation }>
  /** Everything of the slice was stated. What was there at `begin` and was not stated since is removed, in steps. */
  | Readonly<{ kind: 'end'; slice: Slice; incarnation: Incarnation }>
  /** Something of the slice was lost on the way: it counts as not stated. */
  | Readonly<{ kind: 'doubt'; slice: Slice; incarnation: Incarnation }>
  /**
   * Removes what a shard holds, in steps. `fence`: it is a tombstone from now on, with an incarnation above all it had. The one
   * kind that comes from an operator, and is not fenced itself.
   */
  | Readonly<{ kind: 'clear'; shard: ShardName; fence: boolean; nowMs: number }>
  /**
   * Removes what every shard holds of a type, in steps, but for what is written or stated meanwhile. Its slices count as
   * never stated, so those that then hold nothing are forgotten. It comes from the server itself and is not fenced.
   */
  | Readonly<{ kind: 'drop'; resource: Resource }>;

/** What became of a push, durable and published. */
export type PushOutcome =
  | Readonly<{ kind: 'written'; revision: Revision }>
  /** It was so already, or it is of the kinds that change no object. */
  | Readonly<{ kind: 'unchanged' }>
  /** The shard is another's, or was removed. Nothing was done. */
  | Readonly<{ kind: 'fenced'; holder: Incarnation; removed: boolean }>
  /** An `end` without its `begin`, which a failed commit took along. */
  | Readonly<{ kind: 'unbegun' }>
  /** An `end`, a `clear` or a `drop` is through; that many objects were removed. */
  | Readonly<{ kind: 'swept'; removed: number }>
  /** Nothing was decided or stored: the disk took nothing, or the store is closing. */
  | Readonly<{ kind: 'unavailable'; refusal: Refusal }>;

/** What the store knows of a shard that ever claimed or was removed. */
export type ShardState = Readonly<{ shard: ShardName; incarnation: Incarnation; removed: boolean }>;

/** What the store knows of a slice that holds objects or was ever stated. */
export type SliceState = Readonly<{
  slice: Slice;
  objects: number;
  /** Of their bodies. */
  bytes: number;
  /** When it changed last, in milliseconds since 1970; 0 when it never did. */
  changedMs: number;
  /** The incarnation that stated it in full and has told all changes since; 0 when none has. */
  stated: Incarnation;
  /** Whether it was ever stated in full. */
  synced: boolean;
}>;
