/**
 * Mutations and pushes that wait for the committer, in lanes that take turns: one for requests over
 * HTTP, one for each pusher. There is no timer. An idle committer gets all items of one turn of the
 * event loop. While it works, the next batch forms.
 *
 *   submit ──▶ requests ┐
 *   push ────▶ lane     ├─(committer idle)──▶ in flight ──committed──▶ published, then answered,
 *   push ────▶ lane     ┘                                              in one tick
 *
 * I7 At most `mutationsMax` requests wait, with at most `bytesMax` bytes. The queue answers any
 *    further request with 429. Pushers wait for room. A lane has room while it holds less than one
 *    commit, and all pushers' lanes together hold less than `pushMutationsMax` and `pushBytesMax`.
 *    A lane that was given room may push once, whatever the size. If no request waits, the queue
 *    accepts one of any size.
 * I8 A lane's items are answered in the order of submission.
 * I16 A batch gives every lane an equal share, and divides unused shares among the other lanes. A
 *     lane that got nothing is first in the next batch. While several lanes hold items, the bounds
 *     of a batch are divided by `sharedDivisor`, because the other lanes wait for each commit.
 */
import type { PushDecision } from './batch-item.js';
import { tooManyRequests, type Refusal } from '../domain/errors.js';
import type { Mutation, Outcome } from '../domain/mutation.js';
import type { PushLane, Writer } from '../domain/store-port.js';
import type { Push, PushOutcome } from '../domain/push.js';
import { aPushJob, Lane, sizeOf, type Allowance, type ObjectsOf, type Part, type PushJob, type PushPart } from './lane.js';

export type QueueLimits = Readonly<{
  mutationsMax: number;
  bytesMax: number;
  pushMutationsMax: number;
  pushBytesMax: number;
  batchMutationsMax: number;
  batchBytesMax: number;
  sharedDivisor: number;
}>;

export type QueueParts = Readonly<{
  /** Sends a batch to the committer. The store calls `batchDecided` once it is decided. */
  send: (batch: readonly Part[]) => void;
  /** Runs a task at the end of this turn of the event loop. */
  soon: (task: () => void) => void;
  objectsOf: ObjectsOf;
}>;

/**
 * This many batches after a shared one are small, too, because the other lane will probably write
 * again.
 */
const sharedBatches = 64;

type Waiter = Readonly<{ lane: Lane; enter: () => void }>;

const full = tooManyRequests('the write queue is full');

export class MutationQueue implements Writer {
  readonly #limits: QueueLimits;
  readonly #parts: QueueParts;
  readonly #requests: Lane;
  readonly #pushers: Lane[] = [];
  /** The first lane of the next batch. */
  #first: Lane;
  readonly #waiters: Waiter[] = [];
  #sharedLeft = 0;
  #isAdmitting = false;
  #isPumping = false;
  #busy = false;
  #closed: Refusal | undefined;
  /** Lanes with pushes whose outcome is unknown, and the refusal. */
  readonly #broken = new Map<Lane, Refusal>();
  /** Why unfinished sweeps are refused; undefined while they continue. */
  #sweepsEnded: Refusal | undefined;

  constructor(limits: QueueLimits, parts: QueueParts) {
    this.#limits = limits;
    this.#parts = parts;
    this.#requests = new Lane(parts.objectsOf);
    this.#first = this.#requests;
  }

  get length(): number {
    return total(this.#lanes(), 'length');
  }

  get bytes(): number {
    return total(this.#lanes(), 'bytes');
  }

  get idle(): boolean {
    return !this.#busy && this.length === 0;
  }

  submit(mutation: Mutation): Promise<Outcome> {
    const { mutationsMax, bytesMax } = this.#limits;
    const lane = this.#requests;
    if (this.#closed !== undefined) return Promise.resolve({ kind: 'unavailable', refusal: this.#closed });
    const isFull = lane.length >= mutationsMax || lane.bytes + sizeOf(mutation) > bytesMax;
    if (isFull && lane.length > 0) return Promise.resolve({ kind: 'unavailable', refusal: full });
    return new Promise((answer) => {
      lane.add({ kind: 'mutation', mutation, answer });
      this.#pumpSoon();
    });
  }

  /**
   * Lanes are never removed: there is one for each shard that ever pushed, and a few internal
   * lanes.
   */
  lane(): PushLane {
    const lane = new Lane(this.#parts.objectsOf);
    this.#pushers.push(lane);
    return { drained: () => this.#drained(lane), push: (pushes) => this.#push(lane, pushes) };
  }

  /** A part of the batch is decided. The last of `outcomes` may be an unfinished sweep. */
  answerPushes({ job, lane }: PushPart, outcomes: readonly PushDecision[]): void {
    for (const outcome of outcomes) {
      const before = job.sweep?.removed ?? 0;
      job.sweep = outcome.kind === 'partial' ? { walk: outcome.walk, removed: before + outcome.removed } : undefined;
      if (outcome.kind !== 'partial')
        job.outcomes.push(outcome.kind === 'swept' ? { ...outcome, removed: before + outcome.removed } : outcome);
    }
    if (job.sweep !== undefined) this.#goOn(job, lane);
    if (job.outcomes.length === job.pushes.length) job.answer(job.outcomes);
  }

  /**
   * The outcome of these parts is unknown. The queue also refuses everything behind them in their
   * lanes, because later pushes build on earlier ones. A lane accepts pushes again once its writer
   * starts over (`beginsAnew`).
   */
  refuseBatch(parts: readonly Part[], refusal: Refusal): void {
    this.refuse(parts, refusal);
    for (const lane of new Set(parts.flatMap((part) => (part.kind === 'pushes' ? [part.lane] : [])))) {
      this.refuse(lane.takeAll(), refusal);
      this.#broken.set(lane, refusal);
    }
    this.#admit();
  }

  refuse(parts: readonly Part[], refusal: Refusal): void {
    for (const part of parts) {
      if (part.kind === 'mutation') part.answer({ kind: 'unavailable', refusal });
      else
        this.answerPushes(
          part,
          part.items.map(() => ({ kind: 'unavailable', refusal })),
        );
    }
  }

  batchDecided(): void {
    this.#busy = false;
  }

  /** Sends the next batch if the committer is idle. Returns whether the committer is then busy. */
  pump(): boolean {
    if (!this.#busy && this.length > 0) {
      this.#busy = true;
      this.#parts.send(this.#take());
      this.#admit();
    }
    return this.#busy;
  }

  /** From now on, a sweep that a commit does not finish is refused. Everything else continues. */
  endSweeps(refusal: Refusal): void {
    this.#sweepsEnded = refusal;
  }

  /**
   * Accepts nothing more. The committer still decides all waiting items, but unfinished sweeps are
   * refused.
   */
  close(refusal: Refusal): void {
    this.#closed = refusal;
    this.endSweeps(refusal);
    this.#admit();
  }

  refuseAll(refusal: Refusal): void {
    for (const lane of this.#lanes()) this.refuse(lane.takeAll(), refusal);
  }

  #lanes(): readonly Lane[] {
    return [this.#requests, ...this.#pushers];
  }

  #goOn(job: PushJob, lane: Lane): void {
    if (this.#sweepsEnded === undefined) return lane.putBack(job);
    job.sweep = undefined;
    job.outcomes.push({ kind: 'unavailable', refusal: this.#sweepsEnded });
  }

  #pumpSoon(): void {
    // Requests come in bursts, because whole batches are answered in one tick. All requests of one
    // turn of the event loop go into one batch.
    if (this.#busy || this.#isPumping) return;
    this.#isPumping = true;
    this.#parts.soon(() => {
      this.#isPumping = false;
      this.pump();
    });
  }

  #push(lane: Lane, pushes: readonly Push[]): Promise<readonly PushOutcome[]> {
    const refusal = this.#closed;
    if (refusal !== undefined) return Promise.resolve(pushes.map(() => ({ kind: 'unavailable', refusal })));
    if (pushes.length === 0) return Promise.resolve([]);
    if (pushes.some(beginsAnew)) this.#broken.delete(lane);
    const broken = this.#broken.get(lane);
    if (broken !== undefined && pushes.some(followsOn))
      return Promise.resolve(pushes.map(() => ({ kind: 'unavailable', refusal: broken })));
    return new Promise((answer) => {
      lane.add(aPushJob(pushes, answer));
      this.#pumpSoon();
    });
  }

  #drained(lane: Lane): Promise<void> {
    if (!this.#isAdmitting && this.#hasRoom(lane)) return Promise.resolve();
    return new Promise((enter) => {
      this.#waiters.push({ lane, enter });
    });
  }

  /**
   * Gives room to the lane that has waited longest. Only one lane per turn of the event loop gets
   * room, so that its pushes count before the next is admitted.
   */
  #admit(): void {
    if (this.#isAdmitting) return;
    const at = this.#waiters.findIndex(({ lane }) => this.#hasRoom(lane));
    for (const { enter } of at < 0 ? [] : this.#waiters.splice(at, 1)) enter();
    if (at < 0 || this.#waiters.length === 0) return;
    this.#isAdmitting = true;
    this.#parts.soon(() => {
      this.#isAdmitting = false;
      this.#admit();
    });
  }

  #hasRoom(lane: Lane): boolean {
    if (this.#closed !== undefined) return true;
    const { batchMutationsMax, batchBytesMax, pushMutationsMax, pushBytesMax } = this.#limits;
    if (lane.length >= batchMutationsMax || lane.bytes >= batchBytesMax) return false;
    return total(this.#pushers, 'length') < pushMutationsMax && total(this.#pushers, 'bytes') < pushBytesMax;
  }

  #take(): readonly Part[] {
    const parts: Part[] = [];
    const waiting = inTurn(this.#lanes(), this.#first).filter(({ length }) => length > 0);
    const before = waiting.map(({ length }) => length);
    const left = this.#allowance(waiting.length);
    for (let hungry = waiting; hungry.length > 0;) {
      const share = { mutations: left.mutations / hungry.length, bytes: left.bytes / hungry.length };
      hungry = hungry.filter((lane) => lane.take(parts, share, left));
    }
    this.#first = waiting.find(({ length }, i) => length === before[i]) ?? waiting[1] ?? this.#first;
    return parts;
  }

  #allowance(lanes: number): Allowance {
    const { batchMutationsMax, batchBytesMax, sharedDivisor } = this.#limits;
    this.#sharedLeft = lanes > 1 ? sharedBatches : Math.max(0, this.#sharedLeft - 1);
    const divisor = this.#sharedLeft > 0 ? sharedDivisor : 1;
    return { mutations: Math.ceil(batchMutationsMax / divisor), bytes: Math.ceil(batchBytesMax / divisor) };
  }
}

/** Whether the push is the first of a new connection, which resumes from the stored state. */
function beginsAnew(push: Push): boolean {
  return push.kind === 'meet' || push.kind === 'acquire';
}

/** Whether the push would have another effect if the pushes before it were missing. */
function followsOn(push: Push): boolean {
  return 'by' in push || push.kind === 'reach';
}

function inTurn(lanes: readonly Lane[], first: Lane): readonly Lane[] {
  const at = lanes.indexOf(first);
  return [...lanes.slice(at), ...lanes.slice(0, at)];
}

function total(lanes: readonly Lane[], what: 'length' | 'bytes'): number {
  return lanes.reduce((sum, lane) => sum + lane[what], 0);
}
