/** What the receiving half of a link is made of: where it stands, what happens to it, and what it asks for (link-receiver-step.ts decides). */
import type { ServedType } from '../domain/catalogue.js';
import type { Refusal } from '../domain/errors.js';
import type { StoredObject } from '../domain/object.js';
import type { Push, PushOutcome } from '../domain/push.js';
import type { Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { Neighbour } from '../domain/via.js';
import type { Slice } from '../domain/slice.js';
import type { ByeReason } from '../frames/bye.js';
import type { Credit, Frame, FrameLimits, FrameOf, PushedKey } from '../frames/frame.js';
import type { LackingObjects } from '../sender/lacking-objects.js';
import type { OpenSlices } from './open-slices.js';

export type LinkReceiverState = Readonly<{
  /** The number the next mutation must have. */
  next: number;
  /** Slices that are in the middle of something; all others are told by changes. */
  slices: OpenSlices;
  /** What was refused of slices since they began: one of which something is lacking is not current, whatever `end` says. */
  lacking: LackingObjects;
  unsettled: Credit;
}>;

/** Frames that are numbered. */
export type NumberedFrame = FrameOf<'put' | 'delete' | 'begin' | 'end' | 'progress' | 'digest' | 'report'>;

/**
 * What one frame asks of the store. `last`: the number that may be acknowledged when it is settled. `report`: what holds from then on. `compares`: a
 * begin that is answered with a summary then.
 */
export type LinkWork = Readonly<{
  pushes: readonly Push[];
  slice: Slice | undefined;
  last: number;
  mutations: number;
  bytes: number;
  report?: FrameOf<'report'>;
  compares: boolean;
}>;

export type LinkReceiverEvent =
  /** `isHeld`: of an end, nothing may be removed at it. */
  | Readonly<{ kind: 'frame'; frame: NumberedFrame; isHeld?: boolean }>
  /** In the order of their numbers. */
  | Readonly<{ kind: 'settled'; work: LinkWork; outcomes: readonly PushOutcome[] }>
  /** A type is gone, and with it the objects of these slices. */
  | Readonly<{ kind: 'dropped'; slices: readonly Slice[] }>
  /** Types were declared: one that was not known may be. */
  | Readonly<{ kind: 'declared' }>;

export type LinkReceiverEffect =
  | Readonly<{ kind: 'send'; frame: Frame }>
  | Readonly<{ kind: 'push'; work: LinkWork }>
  /** The type of this frame may be declared by what is not settled yet: bring the frame again once it is. */
  | Readonly<{ kind: 'again'; frame: NumberedFrame }>
  | Readonly<{ kind: 'refused'; slice: Slice; key: PushedKey; refusal: Refusal }>
  | Readonly<{ kind: 'parked'; slice: Slice }>
  /** What is held of the slice is to be told, by the number of its begin. */
  | Readonly<{ kind: 'summarise'; slice: Slice; sequence: number }>
  | Readonly<{ kind: 'differs'; slice: Slice }>
  /** Everything that was sent before it can be read here. */
  | Readonly<{ kind: 'reported'; report: FrameOf<'report'> }>
  | Readonly<{ kind: 'bye'; reason: ByeReason; message: string; retryAfterMs: number | undefined }>;

/** What a step looks at besides its state. */
export type LinkReceiverContext = Readonly<{
  /** The side this comes from. */
  from: Neighbour;
  takes: (slice: Slice) => boolean;
  /** Whether the policy of this end alone lets an object in. */
  accepts: (object: Pick<StoredObject, 'key' | 'body'>) => boolean;
  /** Whether anything is known here of the slice. */
  holds: (slice: Slice) => boolean;
  /** Whether much of it is to be removed once that is confirmed. */
  isHeld: (slice: Slice) => boolean;
  /** The type that a shard's objects are of, as it is declared now. */
  typeOf: (resource: Resource, shard: ShardName) => ServedType | undefined;
  credit: Credit;
  limits: FrameLimits;
  systemClusters: ReadonlySet<string>;
}>;
