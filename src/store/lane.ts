/**
 * One writer's queue: what it was given waits in order and goes to the committer in parts. Many pushes given together are one job
 * with one answer, so that an object costs no promise.
 *
 *   jobs  [ 300 pushes: 120 taken │ 180 wait ][ 40 pushes ]      A job may be spread over several commits; it is answered
 *                                                                when all of it is decided.
 * A sweep (an end, a clear, a drop) is the last of its lane in a batch: what follows it waits until it is done, which may
 * take several commits. Between them the job is put back in front. The end of a slice that holds little is done at once (sweep.ts), and
 * nothing waits for it. A pusher that comes for the shard of a running `end` is also sent ahead of that `end`: if it gets the shard, the `end` is
 * void and nothing waits for it. It is answered in its own place. A link's claims keep their places: what came before them is true of the
 * term before.
 *
 *   jobs  [ acquire, again ][ end, resumed ][ 40 pushes ][ acquire ]
 */
import { type Asked, type Sweeping, littleMax, sweepDeletesMax } from './asked.js';
import type { Mutation, Outcome } from '../domain/mutation.js';
import type { Push, PushOutcome } from '../domain/push.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';

export type MutationJob = Readonly<{ kind: 'mutation'; mutation: Mutation; answer: (outcome: Outcome) => void }>;

export type PushJob = {
  readonly kind: 'pushes';
  readonly pushes: readonly Push[];
  readonly answer: (outcomes: readonly PushOutcome[]) => void;
  readonly outcomes: PushOutcome[];
  /** How many have gone to the committer. */
  taken: number;
  /** The sweep under way, and what it has removed so far. */
  sweep: Readonly<{ walk: number; removed: number }> | undefined;
  /** The walk that it was also sent ahead of. */
  aheadOf: number | undefined;
};

export type PushPart = Readonly<{ kind: 'pushes'; lane: Lane; job: PushJob; asked: readonly Asked[] }>;

/** What goes to the committer together. */
export type Part = MutationJob | PushPart;

/** How much a batch may take; a mutation counts by its weight. */
export type Allowance = { mutations: number; bytes: number };

/** How many objects a slice holds, as published: nothing is under way to the committer when a batch is taken. */
export type ObjectsOf = (slice: Slice) => number;

/** Whether there is room for the item in the batch; if so, the room is taken. */
type Admit = (item: Mutation | Push, weight: number) => boolean;

export class Lane {
  readonly #objectsOf: ObjectsOf;
  readonly #jobs: (MutationJob | PushJob)[] = [];
  #length = 0;
  #bytes = 0;

  constructor(objectsOf: ObjectsOf) {
    this.#objectsOf = objectsOf;
  }

  /** How many mutations and pushes wait. */
  get length(): number {
    return this.#length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(job: MutationJob | PushJob): void {
    this.#jobs.push(job);
    const items = job.kind === 'mutation' ? [job.mutation] : job.pushes;
    this.#length += items.length;
    for (const item of items) this.#bytes += sizeOf(item);
  }

  /** The last sweep that was taken is not done. */
  putBack(job: PushJob): void {
    if (job.taken === job.pushes.length) this.#jobs.unshift(job);
    job.taken -= 1;
    this.#length += 1;
    for (const push of job.pushes.slice(job.taken, job.taken + 1)) this.#bytes += sizeOf(push);
  }

  /**
   * Moves into `parts` what `share` allows, but at least one item if `left` or an empty batch allows it, and subtracts it from `left`. Returns
   * whether the lane could use another share.
   */
  take(parts: Part[], share: Readonly<Allowance>, left: Allowance): boolean {
    const taken: Allowance = { mutations: 0, bytes: 0 };
    const admit: Admit = (item, weight) => {
      const [bytes, isFirst] = [sizeOf(item), taken.mutations === 0];
      const bound = isFirst ? left : share;
      const fits = taken.mutations + weight <= bound.mutations && taken.bytes + bytes <= bound.bytes;
      if (!fits && !(isFirst && parts.length === 0)) return false;
      taken.mutations += weight;
      taken.bytes += bytes;
      return true;
    };
    const before = parts.length;
    const hasMore = this.#move(parts, admit);
    for (const part of parts.slice(before)) this.#length -= part.kind === 'mutation' ? 1 : part.asked.length;
    left.mutations -= taken.mutations;
    left.bytes -= taken.bytes;
    this.#bytes -= taken.bytes;
    return hasMore && taken.mutations > 0;
  }

  /** Takes everything that waits. */
  takeAll(): readonly Part[] {
    const parts: Part[] = [];
    while (this.#jobs.length > 0) this.#move(parts, () => true);
    this.#length = 0;
    this.#bytes = 0;
    return parts;
  }

  #move(parts: Part[], admit: Admit): boolean {
    this.#sendClaimsAhead();
    let through = 0;
    let stopped: 'full' | 'sweeping' | undefined;
    for (const job of this.#jobs) {
      stopped =
        job.kind === 'mutation'
          ? moveMutation(job, parts, admit)
          : movePushes({ lane: this, job, objectsOf: this.#objectsOf }, parts, admit);
      if (job.kind === 'mutation' ? stopped === undefined : job.taken === job.pushes.length) through += 1;
      if (stopped !== undefined) break;
    }
    this.#jobs.splice(0, through);
    return stopped === 'full';
  }

  #sendClaimsAhead(): void {
    const end = endUnderWay(this.#jobs[0]);
    if (end === undefined) return;
    const ahead: PushJob[] = [];
    for (const job of this.#jobs) {
      if (job.kind !== 'pushes' || job.aheadOf === end.walk || !isComingFor(job, end.shard)) continue;
      job.aheadOf = end.walk;
      ahead.push(aPushJob(job.pushes, () => {}));
    }
    this.#jobs.unshift(...ahead);
    for (const { pushes } of ahead) {
      this.#length += pushes.length;
      for (const push of pushes) this.#bytes += sizeOf(push);
    }
  }
}

export function aPushJob(pushes: readonly Push[], answer: PushJob['answer']): PushJob {
  return { kind: 'pushes', pushes, answer, outcomes: [], taken: 0, sweep: undefined, aheadOf: undefined };
}

export function askedOf(part: Part): readonly Asked[] {
  return part.kind === 'mutation' ? [part.mutation] : part.asked;
}

/** The bytes that it keeps waiting: its body and an allowance for its key. */
export function sizeOf(item: Mutation | Push): number {
  const keyBytes = 256;
  return keyBytes + (item.kind === 'put' || item.kind === 'upsert' ? item.body.bytes.length : 0);
}

/** Whether a push may take more than one commit. */
function isSweeping(push: Push): push is Sweeping {
  return push.kind === 'end' || push.kind === 'clear' || push.kind === 'drop';
}

function moveMutation(job: MutationJob, parts: Part[], admit: Admit): 'full' | undefined {
  if (!admit(job.mutation, 1)) return 'full';
  parts.push(job);
  return undefined;
}

function movePushes(
  { lane, job, objectsOf }: Readonly<{ lane: Lane; job: PushJob; objectsOf: ObjectsOf }>,
  parts: Part[],
  admit: Admit,
): 'full' | 'sweeping' | undefined {
  const asked: Asked[] = [];
  let stopped: 'full' | 'sweeping' | undefined;
  for (let i = job.taken; i < job.pushes.length && stopped === undefined; i++) {
    const push = job.pushes[i];
    const deletesMax = push === undefined ? 0 : deletesOf(push, job, objectsOf);
    if (push === undefined || !admit(push, Math.max(1, deletesMax))) {
      stopped = 'full';
      break;
    }
    if (deletesMax === sweepDeletesMax) stopped = 'sweeping';
    asked.push(isSweeping(push) && job.sweep !== undefined ? { kind: 'resume', push, walk: job.sweep.walk } : push);
  }
  job.taken += asked.length;
  if (asked.length > 0) parts.push({ kind: 'pushes', lane, job, asked });
  return stopped;
}

function endUnderWay(job: MutationJob | PushJob | undefined): Readonly<{ walk: number; shard: ShardName }> | undefined {
  if (job?.kind !== 'pushes' || job.sweep === undefined) return undefined;
  const push = job.pushes[job.taken];
  return push?.kind === 'end' ? { walk: job.sweep.walk, shard: push.slice.shard } : undefined;
}

function isComingFor({ pushes }: PushJob, shard: ShardName): boolean {
  return pushes.every((push) => push.kind === 'acquire' && push.shard === shard);
}

/** How many objects a push may delete: what it counts as in a commit. A sweep that may delete as many as a step may take several commits. */
function deletesOf(push: Push, { sweep }: PushJob, objectsOf: ObjectsOf): number {
  if (!isSweeping(push)) return 0;
  const held = push.kind === 'end' && sweep === undefined ? objectsOf(push.slice) : Infinity;
  return held <= littleMax ? held : sweepDeletesMax;
}
