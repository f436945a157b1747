/**
 * The queue of one writer. Its jobs go to the committer in order, in parts. Pushes that are
 * submitted together are one job, so that no push needs a promise of its own.
 *
 *   jobs  [ 300 pushes: 120 taken │ 180 wait ][ 40 pushes ]
 *
 * One job may take several commits, and is answered after the last.
 *
 * A sweep (an `end`, `clear` or `drop`) is the last item of its lane in a batch. The items behind
 * the sweep wait until it is done. Between the commits of a sweep, its job returns to the front of
 * the lane. The `end` of a small slice takes one commit (`oneStepObjectsMax`), so nothing waits for
 * it.
 *
 * If an `acquire` waits behind a running `end` of its shard, the lane sends a copy of the `acquire`
 * first. If the pusher gets the shard, the `end` is void, and nothing waits for it. The original
 * `acquire` keeps its place. A link's claims are not copied, because the items before them belong
 * to the earlier term.
 *
 *   jobs  [ acquire, again ][ end, resumed ][ 40 pushes ][ acquire ]
 */
import { type BatchItem, type Sweeping, oneStepObjectsMax, sweepDeletesMax } from './batch-item.js';
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
  /** How many of the pushes were sent to the committer. */
  taken: number;
  /** The sweep under way, and how many objects it has removed. */
  sweep: Readonly<{ walk: number; removed: number }> | undefined;
  /** The walk of the `end` that a copy of this job overtook. */
  aheadOf: number | undefined;
};

export type PushPart = Readonly<{ kind: 'pushes'; lane: Lane; job: PushJob; items: readonly BatchItem[] }>;

export type Part = MutationJob | PushPart;

/** `mutations`: a sum of weights. */
export type Allowance = { mutations: number; bytes: number };

/**
 * The published number of objects of a slice. The queue takes a batch only while the committer is
 * idle, so the number is current.
 */
export type ObjectsOf = (slice: Slice) => number;

/** If the batch has room for the item, adds the item's size and returns true. */
type Admit = (item: Mutation | Push, weight: number) => boolean;

export class Lane {
  readonly #objectsOf: ObjectsOf;
  readonly #jobs: (MutationJob | PushJob)[] = [];
  #length = 0;
  #bytes = 0;

  constructor(objectsOf: ObjectsOf) {
    this.#objectsOf = objectsOf;
  }

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

  /** Puts an unfinished sweep back to the front. */
  putBack(job: PushJob): void {
    if (job.taken === job.pushes.length) this.#jobs.unshift(job);
    job.taken -= 1;
    this.#length += 1;
    for (const push of job.pushes.slice(job.taken, job.taken + 1)) this.#bytes += sizeOf(push);
  }

  /**
   * Moves as many items into `parts` as `share` allows, and subtracts their size from `left`. Takes
   * at least one item if `left` allows it, or if the batch is empty. Returns whether the lane could
   * use another share.
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
    for (const part of parts.slice(before)) this.#length -= part.kind === 'mutation' ? 1 : part.items.length;
    left.mutations -= taken.mutations;
    left.bytes -= taken.bytes;
    this.#bytes -= taken.bytes;
    return hasMore && taken.mutations > 0;
  }

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

export function itemsOf(part: Part): readonly BatchItem[] {
  return part.kind === 'mutation' ? [part.mutation] : part.items;
}

/** The bytes of a waiting item: its body, and an allowance for its key. */
export function sizeOf(item: Mutation | Push): number {
  const keyBytes = 256;
  return keyBytes + (item.kind === 'put' || item.kind === 'upsert' ? item.body.bytes.length : 0);
}

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
  const items: BatchItem[] = [];
  let stopped: 'full' | 'sweeping' | undefined;
  for (let i = job.taken; i < job.pushes.length && stopped === undefined; i++) {
    const push = job.pushes[i];
    const deletesMax = push === undefined ? 0 : deletesOf(push, job, objectsOf);
    if (push === undefined || !admit(push, Math.max(1, deletesMax))) {
      stopped = 'full';
      break;
    }
    if (deletesMax === sweepDeletesMax) stopped = 'sweeping';
    items.push(isSweeping(push) && job.sweep !== undefined ? { kind: 'resume', push, walk: job.sweep.walk } : push);
  }
  job.taken += items.length;
  if (items.length > 0) parts.push({ kind: 'pushes', lane, job, items });
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

/**
 * How many objects the push may delete in a commit: its weight. With the weight `sweepDeletesMax`,
 * it may take several commits.
 */
function deletesOf(push: Push, { sweep }: PushJob, objectsOf: ObjectsOf): number {
  if (!isSweeping(push)) return 0;
  const held = push.kind === 'end' && sweep === undefined ? objectsOf(push.slice) : Infinity;
  return held <= oneStepObjectsMax ? held : sweepDeletesMax;
}
