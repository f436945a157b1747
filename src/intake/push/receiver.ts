/**
 * Runs a receiver: it executes the effects of each step (receiver-step.ts). The store decides the
 * pushes in order. The owner, a pusher's session or a link, executes all other effects. `accept`
 * waits while the store's queue is full.
 */
import type { Metrics } from '../../diagnostics/metrics.js';
import type { PushLane } from '../../domain/store-port.js';
import type { Push, PushOutcome } from '../../domain/push.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { Credit, FrameOf } from '../../frames/frame.js';
import { creditOf, partsOf, turnMax } from './frame-parts.js';
import type { ReceiverSlice } from './receiver-slices.js';
import { newReceiver, step } from './receiver-step.js';
import type { ReceiverEffect } from './receiver-effects.js';
import type { NumberedFrame, ReceiverContext, ReceiverEvent, ReceiverState, Work } from './receiver-state.js';

export type OwnEffect = Exclude<ReceiverEffect, { kind: 'push' | 'again' }>;

export type ReceiverParts = Readonly<{
  lane: PushLane;
  turn: () => Promise<void>;
  metrics: Pick<Metrics, 'pushes'>;
  /** Called for each step, because policies, types and shards change. */
  context: () => ReceiverContext;
  run: (effect: OwnEffect) => void;
  /**
   * Terminates the connection because a bug kept work from being decided. `close` throws the error.
   */
  terminate: () => void;
}>;

const nothing: Credit = { mutations: 0, bytes: 0 };

export class Receiver {
  readonly #parts: ReceiverParts;
  #state: ReceiverState;
  #isOver = false;
  /** The credit used since the last turn of the event loop. */
  #accepted: Credit = nothing;
  #decided: Promise<void> = Promise.resolve();
  /** Keyed by slice: how many of its mutations are accepted and not decided. */
  readonly #undecided = new Map<string, number>();

  constructor(parts: ReceiverParts, synced: readonly Slice[] = []) {
    this.#parts = parts;
    this.#state = newReceiver(synced);
  }

  /** Resolves when everything that was accepted so far is decided. */
  get decided(): Promise<void> {
    return this.#decided;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  phaseOf(slice: Slice): ReceiverSlice['phase'] | undefined {
    return this.#state.slices.of(slice)?.phase;
  }

  /** The mutations of the slice that are accepted and not decided. Each may add an object. */
  undecidedOf(slice: Slice): number {
    return this.#undecided.get(formatSlice(slice)) ?? 0;
  }

  /**
   * Resolves once the frame is in the store's queue. `isRemovalHeld`: an `end` that may remove
   * nothing.
   */
  async accept(frame: NumberedFrame, isRemovalHeld = false): Promise<void> {
    for (const part of partsOf(frame, this.#parts.context().limits)) {
      await this.dispatch({ kind: 'frame', frame: part, isRemovalHeld });
      await this.#pauseAfter(part);
    }
  }

  async dispatch(event: ReceiverEvent): Promise<void> {
    if (this.#isOver) return;
    const { state, effects } = step(this.#state, event, this.#parts.context());
    this.#state = state;
    for (const effect of effects) {
      if (this.#isOver) return;
      await this.#run(effect);
    }
  }

  /**
   * Queues pushes of the owner behind everything that was accepted. Resolves once the store's queue
   * has room for them.
   */
  async push(pushes: readonly Push[]): Promise<void> {
    const { decided } = await this.#enqueue(pushes);
    this.#decideLater(async () => void (await decided));
  }

  end(): void {
    this.#isOver = true;
  }

  /**
   * Resolves when all accepted work is decided. Throws the error that kept work from being decided.
   */
  async close(): Promise<void> {
    this.end();
    // Deciding work may start more work.
    for (let awaited: Promise<void> | undefined; awaited !== this.#decided;) {
      awaited = this.#decided;
      await awaited;
    }
  }

  async #run(effect: ReceiverEffect): Promise<void> {
    switch (effect.kind) {
      case 'push':
        return this.#push(effect.work);
      case 'again':
        await this.#decided;
        return this.dispatch({ kind: 'frame', frame: effect.frame, isRemovalHeld: effect.isRemovalHeld });
      default:
        return this.#parts.run(effect);
    }
  }

  async #push(work: Work): Promise<void> {
    this.#count(work, 1);
    const { decided } = work.pushes.length > 0 ? await this.#enqueue(work.pushes) : { decided: Promise.resolve([]) };
    this.#decideLater(async () => {
      const outcomes = await decided;
      this.#count(work, -1);
      for (const { kind } of outcomes) if (kind !== 'unavailable') this.#parts.metrics.pushes.add(1, { outcome: kind });
      await this.dispatch({ kind: 'decided', work, outcomes });
    });
  }

  #count({ slice, mutations }: Work, by: 1 | -1): void {
    if (slice === undefined) return;
    const undecided = this.undecidedOf(slice) + by * mutations;
    if (undecided > 0) this.#undecided.set(formatSlice(slice), undecided);
    else this.#undecided.delete(formatSlice(slice));
  }

  /** Resolves once the pushes are in the queue. `decided` resolves with their outcomes. */
  async #enqueue(pushes: readonly Push[]): Promise<Readonly<{ decided: Promise<readonly PushOutcome[]> }>> {
    const { lane } = this.#parts;
    await lane.drained();
    return { decided: lane.push(pushes) };
  }

  #decideLater(task: () => Promise<void>): void {
    this.#decided = this.#decided.then(task);
    this.#decided.catch(() => this.#parts.terminate());
  }

  /**
   * Pauses only once a turn's share is used up, so that small frames that arrive together share a
   * commit. A sender that never paused would keep other peers waiting.
   */
  async #pauseAfter(frame: NumberedFrame): Promise<void> {
    const more = creditOf(frame);
    const [mutations, bytes] = [this.#accepted.mutations + more.mutations, this.#accepted.bytes + more.bytes];
    const isFull = mutations >= turnMax.mutations || bytes >= turnMax.bytes;
    this.#accepted = isFull ? nothing : { mutations, bytes };
    if (isFull) await this.#parts.turn();
  }
}

/** Sends at most one ack in each turn of the event loop. An ack covers all lower numbers, too. */
export class Acks {
  readonly #send: (ack: FrameOf<'ack'>) => void;
  readonly #turn: () => Promise<void>;
  #last: FrameOf<'ack'> | undefined;

  constructor(send: (ack: FrameOf<'ack'>) => void, turn: () => Promise<void>) {
    this.#send = send;
    this.#turn = turn;
  }

  add(ack: FrameOf<'ack'>): void {
    if (this.#last === undefined) void this.#turn().then(() => this.#acknowledge());
    this.#last = ack;
  }

  #acknowledge(): void {
    const last = this.#last;
    this.#last = undefined;
    if (last !== undefined) this.#send(last);
  }
}
