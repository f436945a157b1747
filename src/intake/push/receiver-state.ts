/** A receiver's state, its events, and the context that each step reads (receiver-step.ts). */
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import type { LackingObjects } from '../../domain/slices/lacking-objects.js';
import type { StoredObject } from '../../domain/object.js';
import type { Push, PushOutcome, Speaker } from '../../domain/push.js';
import type { Resource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import type { Credit, FrameLimits, FrameOf } from '../../frames/frame.js';
import type { ReceiverSlices } from './receiver-slices.js';

export type ReceiverState = Readonly<{
  next: number;
  slices: ReceiverSlices;
  /**
   * Objects that this end refused since the last begin of their slice. A slice that lacks objects
   * is not current, even after its `end`. For links only.
   */
  lacking: LackingObjects;
  undecided: Credit;
}>;

/**
 * A pusher sends the first seven. A link sends all but clusterBegin, clusterEnd and clusterKeep.
 */
export type NumberedFrame = FrameOf<
  'put' | 'delete' | 'begin' | 'end' | 'clusterBegin' | 'clusterEnd' | 'clusterKeep' | 'progress' | 'digest' | 'report'
>;

/**
 * The work of one frame for the store, or for the receiver itself. Once it is decided, `last` is
 * acknowledged (0: no frame caused the work), and `report` takes effect. With `compares`, the
 * receiver then answers the begin with a summary.
 */
export type Work = Readonly<{
  pushes: readonly Push[];
  slice: Slice | undefined;
  last: number;
  mutations: number;
  bytes: number;
  report?: FrameOf<'report'>;
  compares: boolean;
}>;

export type ReceiverEvent =
  /** `isRemovalHeld`: the `end` may remove nothing (held-removals.ts). */
  | Readonly<{ kind: 'frame'; frame: NumberedFrame; isRemovalHeld?: boolean }>
  /** Decided work arrives in the order of its numbers. */
  | Readonly<{ kind: 'decided'; work: Work; outcomes: readonly PushOutcome[] }>
  | Readonly<{ kind: 'dropped'; slices: readonly Slice[] }>
  | Readonly<{ kind: 'declared' }>
  /** All slices that the sender has, as `formatSlice` texts. */
  | Readonly<{ kind: 'named'; slices: ReadonlySet<string> }>;

/** The rules for everything that this cache receives, whoever sends it. */
export type IntakeRules = Readonly<{
  /** The present declaration of the type of a shard's objects. */
  typeOf: (resource: Resource, shard: ShardName) => ServedType | undefined;
  credit: Credit;
  limits: FrameLimits;
  systemClusters: ReadonlySet<string>;
}>;

export type ReceiverContext = IntakeRules &
  Readonly<{
    by: Speaker;
    covers: (slice: Slice) => boolean;
    /** Whether this end's policy alone accepts an object. */
    accepts: (object: Pick<StoredObject, 'key' | 'body'>) => boolean;
    /** Whether the store knows anything of the slice. */
    holds: (slice: Slice) => boolean;
    /** Whether a large removal of the slice waits for the operator. */
    hasHeldRemoval: (slice: Slice) => boolean;
  }>;
