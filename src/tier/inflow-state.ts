/** What the receiving half of a link is made of: where it stands, what happens to it, and what it asks for (inflow.ts decides). */
import type { ServedType } from '../domain/catalogue.js';
import type { Claim, ShardState } from '../domain/claim.js';
import type { Refusal } from '../domain/errors.js';
import type { StoredObject } from '../domain/object.js';
import type { Incarnation, Push, PushOutcome } from '../domain/push.js';
import type { Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { LinkSide } from '../domain/side.js';
import type { Slice } from '../domain/slice.js';
import type { ByeReason } from '../frames/bye.js';
import type { Credit, Frame, FrameLimits, FrameOf, PushedKey } from '../frames/frame.js';
import type { OpenSlices } from './open-slices.js';

export type InflowState = Readonly<{
  /** The number the next mutation must have. */
  next: number;
  /** Slices that are in the middle of something; all others are told by changes. */
  slices: OpenSlices;
  unsettled: Credit;
}>;

/** Frames that are numbered. */
export type NumberedFrame = FrameOf<'put' | 'delete' | 'begin' | 'end' | 'progress' | 'digest'>;

/** What one frame asks of the store. `last`: the number that may be acknowledged when it is settled. */
export type LinkWork = Readonly<{ pushes: readonly Push[]; slice: Slice | undefined; last: number; mutations: number; bytes: number }>;

export type InflowEvent =
  | Readonly<{ kind: 'frame'; frame: NumberedFrame | FrameOf<'claim'> }>
  /** In the order of their numbers. */
  | Readonly<{ kind: 'settled'; work: LinkWork; outcomes: readonly PushOutcome[] }>
  | Readonly<{ kind: 'claimed'; claim: Claim; outcome: PushOutcome }>
  /** A type is gone, and with it the objects of these slices. */
  | Readonly<{ kind: 'dropped'; slices: readonly Slice[] }>
  /** Types were declared: one that was not known may be. */
  | Readonly<{ kind: 'declared' }>;

export type InflowEffect =
  | Readonly<{ kind: 'send'; frame: Frame }>
  | Readonly<{ kind: 'push'; work: LinkWork }>
  | Readonly<{ kind: 'claim'; claim: Claim }>
  /** The shard has come to the other end, with what is held of it here: the other end must know, to let go of what does not cross. */
  | Readonly<{ kind: 'hold'; shard: ShardName }>
  /** The shard is nobody's now: its objects go. */
  | Readonly<{ kind: 'clear'; shard: ShardName }>
  /** The other end has not heard of the claim that has the shard. */
  | Readonly<{ kind: 'answer'; shard: ShardName }>
  /** The shard is at home here, and the other end has it by a way that is no more: this claim is to reach all caches. */
  | Readonly<{ kind: 'raise'; claim: Claim }>
  /** Two sides claim the shard with one rank. */
  | Readonly<{ kind: 'conflict'; claim: Claim; holder: ShardState }>
  /** The type of this frame may be declared by what is not settled yet: bring the frame again once it is. */
  | Readonly<{ kind: 'again'; frame: NumberedFrame }>
  | Readonly<{ kind: 'refused'; slice: Slice; key: PushedKey; refusal: Refusal }>
  | Readonly<{ kind: 'parked'; slice: Slice }>
  /** A claim that the policies do not let this side make, or from too far ahead: is a clock wrong? */
  | Readonly<{ kind: 'uncovered'; shard: ShardName }>
  | Readonly<{ kind: 'differs'; slice: Slice }>
  | Readonly<{ kind: 'bye'; reason: ByeReason; message: string; retryAfterMs: number | undefined }>;

/** What a step looks at besides its state. */
export type InflowContext = Readonly<{
  /** The side this comes from. */
  from: LinkSide;
  /** Whether the policies let this side claim the shard. */
  hearsClaim: (shard: ShardName) => boolean;
  /** One further ahead would keep every successor out for as long. */
  incarnationMax: Incarnation;
  takes: (slice: Slice) => boolean;
  /** Whether the policy of this end alone lets an object in, as far as it does not ask for its canonical path. */
  accepts: (object: Pick<StoredObject, 'key' | 'body'>) => boolean;
  /** Whether anything is known here of the slice. */
  holds: (slice: Slice) => boolean;
  /** Whether all of the slice has come from the other end, and changes since: a digest tells nothing of one that is not. */
  isInStep: (slice: Slice) => boolean;
  /** The type that a shard's objects are of, as it is declared now. */
  typeOf: (resource: Resource, shard: ShardName) => ServedType | undefined;
  credit: Credit;
  limits: FrameLimits;
  systemClusters: ReadonlySet<string>;
}>;
