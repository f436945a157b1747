/** What a receiver is made of: where it stands, what happens to it, and what it looks at (receiver-step.ts decides). */
import type { ServedType } from '../domain/catalogue.js';
import type { LackingObjects } from '../domain/lacking-objects.js';
import type { StoredObject } from '../domain/object.js';
import type { Push, PushOutcome, Speaker } from '../domain/push.js';
import type { Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import type { Credit, FrameLimits, FrameOf } from '../frames/frame.js';
import type { ReceiverSlices } from './receiver-slices.js';

export type ReceiverState = Readonly<{
  /** The number the next mutation must have. */
  next: number;
  slices: ReceiverSlices;
  /** What was refused of slices since they began: one of which something is lacking is not current, whatever `end` says. Of links alone. */
  lacking: LackingObjects;
  unsettled: Credit;
}>;

/** Frames that are numbered. A pusher sends the first six, a link all but the fifth and the sixth. */
export type NumberedFrame = FrameOf<
  'put' | 'delete' | 'begin' | 'end' | 'clusterBegin' | 'clusterEnd' | 'clusterKeep' | 'progress' | 'digest' | 'report'
>;

/**
 * What a frame asks of the store, or the receiver itself. `last`: the number that may be acknowledged when it is settled; 0 where no frame asks.
 * `report`: what holds from then on. `compares`: a begin that is answered with a summary then.
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
  /** `isHeld`: of an end, nothing may be removed at it. */
  | Readonly<{ kind: 'frame'; frame: NumberedFrame; isHeld?: boolean }>
  /** In the order of their numbers. */
  | Readonly<{ kind: 'settled'; work: Work; outcomes: readonly PushOutcome[] }>
  /** A type is gone, and with it the objects of these slices. */
  | Readonly<{ kind: 'dropped'; slices: readonly Slice[] }>
  /** Types were declared: one that was not known may be. */
  | Readonly<{ kind: 'declared' }>
  /** The sender has no slices but these, each by its text. */
  | Readonly<{ kind: 'named'; slices: ReadonlySet<string> }>;

/** What holds for all that is received at this cache, whoever sends it. */
export type IntakeRules = Readonly<{
  /** The type that a shard's objects are of, as it is declared now. */
  typeOf: (resource: Resource, shard: ShardName) => ServedType | undefined;
  credit: Credit;
  limits: FrameLimits;
  /** Logical clusters that are taken although their name begins with `system:`. */
  systemClusters: ReadonlySet<string>;
}>;

/** What a step looks at besides its state. */
export type ReceiverContext = IntakeRules &
  Readonly<{
    by: Speaker;
    takes: (slice: Slice) => boolean;
    /** Whether the policy of this end alone lets an object in. */
    accepts: (object: Pick<StoredObject, 'key' | 'body'>) => boolean;
    /** Whether anything is known here of the slice. */
    holds: (slice: Slice) => boolean;
    /** Whether much of it is to be removed once that is confirmed. */
    isHeld: (slice: Slice) => boolean;
  }>;
