/**
 * The jobs of a load generator, and their results. Data only: it crosses a process boundary.
 *
 * Times are milliseconds of `wallClock`, which two processes of one machine share to within a fraction of a millisecond.
 */
import type { Protocol, Target } from './client.js';

export type CreateJob = Readonly<{ target: Target; objects: number; writers: number }>;
/** `resourceVersions` by index of the object, as acknowledged. */
export type Created = Readonly<{ elapsedMs: number; p50Ms: number; p99Ms: number; resourceVersions: readonly string[] }>;

/** One list is read and checked first, then `rounds` are timed on the same connection. */
export type ListJob = Readonly<{ target: Target; protocol: Protocol; rounds: number; saveTo?: string }>;
/** `resourceVersions` by index of the object, as listed in the first one; `duplicates` counts objects listed again. */
export type Listed = Readonly<{
  elapsedMs: readonly number[];
  bytes: number;
  revision: string;
  resourceVersions: readonly string[];
  duplicates: number;
}>;

/** `informers` WatchLists started at once, each on a connection of its own, until all have their bookmark. */
export type WatchListJob = Readonly<{ target: Target; protocol: Protocol; informers: number; objects: number; saveTo?: string }>;
export type WatchListed = Readonly<{ elapsedMs: number; informers: readonly Informed[] }>;
export type Informed = Readonly<{ elapsedMs: number; bytes: number; events: number; distinctObjects: number }>;

/** Watches after a revision. It reports `ready` when all are open, and then receives how many events each will see. */
export type WatchJob = Readonly<{ target: Target; protocol: Protocol; watchers: number; resourceVersion: string; lateMsMax: number }>;
export type Watched = Readonly<{ watchers: readonly SeenByWatcher[] }>;
/** Parallel by event, in the order of arrival. */
export type SeenByWatcher = Readonly<{ revisions: Float64Array; indexes: Int32Array; lastEventAt: number }>;

/** PUTs at full speed, each writer on objects of its own, until the time or the count is over. */
export type UpdateJob = Readonly<{
  target: Target;
  writers: number;
  resourceVersions: readonly string[];
  updatesMax: number;
  updateMsMax: number;
}>;
/** Parallel by update, in no order. */
export type Updated = Readonly<{
  startedAt: number;
  elapsedMs: number;
  p50Ms: number;
  p99Ms: number;
  revisions: Float64Array;
  indexes: Int32Array;
}>;

/** The server to push into. `ca`: the authority of its certificate. */
export type PushTarget = Target & Readonly<{ ca: string }>;

/** One shard's objects through the real sender: a sync of all of them in one round of changes, then, if asked, all of them changed. */
export type PushJob = Readonly<{ target: PushTarget; shard: string; objects: number; round: number; thenChanges: boolean }>;
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
  create: [CreateJob, Created];
  list: [ListJob, Listed];
  watchList: [WatchListJob, WatchListed];
  watch: [WatchJob, Watched];
  update: [UpdateJob, Updated];
  push: [PushJob, Pushed];
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

export function percentile(values: readonly number[] | Float64Array, share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Of an even number of values the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2;
}
