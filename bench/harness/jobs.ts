/**
 * The jobs of a load generator, and their results. They are plain data, because they cross a
 * process boundary.
 *
 * Times are milliseconds of `wallClock`. The clocks of two processes on one machine agree to a
 * fraction of a millisecond.
 */
import type { Protocol, Target } from './client.js';

/** The server to push into. `ca`: the authority of its certificate. */
export type PushTarget = Target & Readonly<{ ca: string }>;

/**
 * Pushes one shard's objects through the real sender: a sync of all of them in one round of
 * changes. Then, with `thenChanges`, all of them change.
 */
export type PushJob = Readonly<{ target: PushTarget; shard: string; objects: number; round: number; thenChanges: boolean }>;
/**
 * Pushes a sync of so many objects that they are made during the push, in `clusters` logical
 * clusters.
 */
export type PushManyJob = Readonly<{ target: PushTarget; shard: string; objects: number; clusters: number }>;
/**
 * From the source's first batch to the last acknowledgement. `changeMs` is NaN without
 * `thenChanges`.
 */
export type Pushed = Readonly<{ syncMs: number; changeMs: number; refused: number }>;

/**
 * Pushes the same objects into the bare server, `frameObjects` in a frame and at most `framesMax`
 * frames unacknowledged. `masked`: websocket frames are masked, as clients must.
 */
export type PushBareJob = Readonly<{
  target: Target;
  shard: string;
  objects: number;
  frameObjects: number;
  framesMax: number;
  masked: boolean;
}>;
export type PushedBare = Readonly<{ elapsedMs: number }>;

/** Reads what a shard pushed in one list, and compares it byte for byte. */
export type CompareJob = Readonly<{ target: Target; shard: string; objects: number; round: number }>;
export type Compared = Readonly<{ listed: number; different: number }>;

/**
 * Changes one shard's objects without end through the real sender. Beside it a session for
 * `rawShard` waits for no acknowledgement.
 */
export type FloodJob = Readonly<{ target: PushTarget; shard: string; rawShard: string; objects: number; floodMs: number }>;
export type Flooded = Readonly<{ pushed: number; elapsedMs: number; rawSent: number; rawSessions: number; rawEnds: readonly string[] }>;

/**
 * Sends one write over HTTP every `everyMs`, even if the last is not answered yet, until it is
 * stopped. It first creates the objects of `shard`.
 */
export type SteadyJob = Readonly<{ target: Target; protocol: Protocol; shard: string; objects: number; everyMs: number }>;
/** Arrays with one entry for each write. */
export type Written = Readonly<{ indexes: Int32Array; rounds: Int32Array; sentAt: Float64Array; p50Ms: number; p99Ms: number }>;

/**
 * Watches, each on its own connection, that record when they see each round of the objects of
 * `shard`. The job ends when each has seen the given number.
 */
export type WitnessJob = Readonly<{
  target: Target;
  protocol: Protocol;
  watchers: number;
  path: string;
  shard: string;
  resourceVersion: string;
  lateMsMax: number;
}>;
/**
 * Arrays with one entry for each event, in the order of arrival over all watches. `others`: the
 * number of events of other shards.
 */
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

/** How a running job communicates with its caller. */
export type Line = Readonly<{ ready: () => void; received: Promise<number> }>;

export function wallClock(): number {
  return performance.timeOrigin + performance.now();
}
