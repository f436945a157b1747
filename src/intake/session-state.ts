/** What a session is made of: where it stands, what happens to it, and what it asks for (session.ts decides). */
import type { ServedType } from '../domain/catalogue.js';
import type { Arrival } from '../domain/claim.js';
import type { Refusal } from '../domain/errors.js';
import type { Term, Push, PushOutcome } from '../domain/push.js';
import type { Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import type { ByeReason } from '../frames/bye.js';
import type { Credit, Frame, FrameLimits, PushedKey, SliceFreshness } from '../frames/frame.js';

/** `stale`: it must be resynced. `objects`: put since `begin`. */
export type SliceProgress = Readonly<{ slice: Slice; phase: 'synced' | 'syncing' | 'stale'; objects: number }>;

export type OpenSession = Readonly<{
  phase: 'open';
  shard: ShardName;
  process: string;
  term: Term;
  /** The number the next mutation must have. */
  next: number;
  slices: ReadonlyMap<string, SliceProgress>;
  unsettled: Credit;
}>;

export type SessionState =
  | Readonly<{ phase: 'greeting' }>
  | Readonly<{ phase: 'coming'; shard: ShardName; process: string }>
  | OpenSession
  | Readonly<{ phase: 'ended' }>;

/** What one frame asks of the store. `last`: the number that may be acknowledged when it is settled. */
export type Work = Readonly<{ pushes: readonly Push[]; slice: Slice; last: number; mutations: number; bytes: number }>;

export type SessionEvent =
  | Readonly<{ kind: 'frame'; frame: Frame }>
  /** What the store has made of it; `synced`: slices of the shard that this term has synced, if all that it was acknowledged is here. */
  | Readonly<{ kind: 'decided'; outcome: PushOutcome; synced: readonly Slice[]; cacheId: string; epoch: number }>
  /** A type is gone, and what was synced of it. */
  | Readonly<{ kind: 'dropped'; resource: Resource }>
  /** In the order of their numbers. */
  | Readonly<{ kind: 'settled'; work: Work; outcomes: readonly PushOutcome[] }>;

export type SessionEffect =
  /** The pusher comes for its shard. `position`: up to where it was acknowledged; '' when it does not know. */
  | (Omit<Arrival, 'nowMs'> & Readonly<{ kind: 'acquire'; takesOver: boolean; position: string }>)
  | Readonly<{ kind: 'send'; frame: Frame }>
  | Readonly<{ kind: 'push'; work: Work }>
  /** The type of this frame may be declared by what is not settled yet: bring the frame again once it is. */
  | Readonly<{ kind: 'again'; frame: Frame }>
  | Readonly<{ kind: 'refused'; slice: Slice; key: PushedKey | undefined; refusal: Refusal }>
  | Readonly<{ kind: 'freshness'; freshness: readonly SliceFreshness[] }>
  /** The shard has these slices and no other, each by its text. */
  | Readonly<{ kind: 'types'; named: ReadonlySet<string> }>
  | Readonly<{ kind: 'bye'; reason: ByeReason; message: string; retryAfterMs: number | undefined }>;

/** What a step looks at besides its state. */
export type SessionContext = Readonly<{
  mayWriteFor: (shard: ShardName) => boolean;
  /** The type that a shard's objects are of, as it is declared now. */
  typeOf: (resource: Resource, shard: ShardName) => ServedType | undefined;
  limits: FrameLimits;
  credit: Credit;
  systemClusters: ReadonlySet<string>;
}>;
