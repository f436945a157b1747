/**
 * The jobs of a load generator, and their results. Data only: it crosses a process boundary.
 *
 * Times are milliseconds of `wallClock`, which two processes of one machine share to within a fraction of a millisecond.
 */
import type { Protocol, Target } from './client.js';

/** The server to push into. `ca`: the authority of its certificate. */
export type PushTarget = Target & Readonly<{ ca: string }>;

/** One shard's objects through the real sender: a sync of all of them in one round of changes, then, if asked, all of them changed. */
export type PushJob = Readonly<{ target: PushTarget; shard: string; objects: number; round: number; thenChanges: boolean }>;
/** A sync of so many objects that they are made while they are pushed, in so many logical clusters. */
export type PushManyJob = Readonly<{ target: PushTarget; shard: string; objects: number; clusters: number }>;
/** From the source's first batch to the last acknowledgement. `changeMs` is NaN where it was not asked for. */
export type Pushed = Readonly<{ syncMs: number; changeMs: number; refused: number }>;

/** The same objects into the bare server, so many a frame, so many frames unacknowledged. `masked`: as clients must mask websocket frames. */
export type PushBareJob = Readonly<{
  target: Target;
  shard: string;
  objects: number;
  frameObjects: number;
  framesMax: number;
  masked: boolean;
}>;
export type PushedBare = Readonly<{ elapsedMs: number }>;

/** What a shard pushed, read back in one list and compared byte for byte. */
export type CompareJob = Readonly<{ target: Target; shard: string; objects: number; round: number }>;
export type Compared = Readonly<{ listed: number; different: number }>;

/** Endless changes of one shard's objects through the real sender, and beside it a session for `rawShard` that waits for no acknowledgement. */
export type FloodJob = Readonly<{ target: PushTarget; shard: string; rawShard: string; objects: number; floodMs: number }>;
export type Flooded = Readonly<{ pushed: number; elapsedMs: number; rawSent: number; rawSessions: number; rawEnds: readonly string[] }>;

/** One write over HTTP at a steady pace, whether the last is answered or not, until it is stopped; the objects of `shard` are created first. */
export type SteadyJob = Readonly<{ target: Target; protocol: Protocol; shard: string; objects: number; everyMs: number }>;
/** Parallel by write. */
export type Written = Readonly<{ indexes: Int32Array; rounds: Int32Array; sentAt: Float64Array; p50Ms: number; p99Ms: number }>;

/** Watches, each on a connection of its own, that note when they see which round of the objects of `shard`, until each has seen the given number. */
export type WitnessJob = Readonly<{
  target: Target;
  protocol: Protocol;
  watchers: number;
  path: string;
  shard: string;
  resourceVersion: string;
  lateMsMax: number;
}>;
/** Parallel by event, in the order of arrival at all of them. `others`: events of other shards. */
export type Witnessed = Readonly<{ indexes: Int32Array; rounds: Int32Array; seenAt: Float64Array; others: number }>;

export type Jobs = {
  push: [PushJob, Pushed];
  pushMany: [PushManyJob, Pick<Pushed, 'syncMs'>];
  pushBare: [PushBareJob, PushedBare];
  compare: [CompareJob, Compared];
  flood: [FloodJob, Flooded];
  steady: [SteadyJob, Written];
  witness: [WitnessJob, Witnessed];
};

export type JobName = keyof Jobs;

/** How a running job talks to its caller. */
export type Line = Readonly<{ ready: () => void; received: Promise<number> }>;

export function wallClock(): number {
  return performance.timeOrigin + performance.now();
}
