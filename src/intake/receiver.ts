/**
 * Runs a receiver (receiver-step.ts decides): has the store decide in order what came, and hands everything else to its owner, a pusher's session or
 * a link. Nothing is read while the store has no room.
 */
import type { Metrics } from '../diagnostics/metrics.js';
import type { PushLane } from '../domain/store-port.js';
import type { Push, PushOutcome } from '../domain/push.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { Credit } from '../frames/frame.js';
import { creditOf } from './frame-credit.js';
import { partsOf, turnMax } from './frame-parts.js';
import type { ReceiverSlice } from './receiver-slices.js';
import { newReceiver, step } from './receiver-step.js';
import type { ReceiverEffect } from './receiver-effects.js';
import type { NumberedFrame, ReceiverContext, ReceiverEvent, ReceiverState, Work } from './receiver-state.js';

export type OwnEffect = Exclude<ReceiverEffect, { kind: 'push' | 'again' }>;

export type ReceiverParts = Readonly<{
  lane: PushLane;
  turn: () => Promise<void>;
  metrics: Pick<Metrics, 'pushes'>;
  /** Asked for each step: policies, types and shards change. */
  context: () => ReceiverContext;
  run: (effect: OwnEffect) => void;
  /** Cuts the connection off: what was given to the store could not be settled, which is a bug. Whoever closes the receiver gets the error. */
  terminate: () => void;
}>;

const nothing: Credit = { mutations: 0, bytes: 0 };

export class Receiver {
  readonly #parts: ReceiverParts;
  #state: ReceiverState;
  #isOver = false;
  /** What was taken since the event loop turned last. */
  #taken: Credit = nothing;
  #settled: Promise<void> = Promise.resolve();
  /** By the text of each slice: its mutations that are not decided. */
  readonly #undecided = new Map<string, number>();

  /** `synced`: slices of a pusher's shard that it has synced in full here. */
  constructor(parts: ReceiverParts, synced: readonly Slice[] = []) {
    this.#parts = parts;
    this.#state = newReceiver(synced);
  }

  /** Resolves when everything that was taken by now is decided. */
  get settled(): Promise<void> {
    return this.#settled;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  phaseOf(slice: Slice): ReceiverSlice['phase'] | undefined {
    return this.#state.slices.of(slice)?.phase;
  }

  /** How many mutations of the slice were taken and are not decided: each may bring an object. */
  undecidedOf(slice: Slice): number {
    return this.#undecided.get(formatSlice(slice)) ?? 0;
  }

  /** Resolves once the store has room for it. `isHeld`: of an end, nothing may be removed at it. */
  async take(frame: NumberedFrame, isHeld = false): Promise<void> {
    for (const part of partsOf(frame, this.#parts.context().limits)) {
      await this.happen({ kind: 'frame', frame: part, isHeld });
      await this.#pauseAfter(part);
    }
  }

  async happen(event: ReceiverEvent): Promise<void> {
    if (this.#isOver) return;
    const { state, effects } = step(this.#state, event, this.#parts.context());
    this.#state = state;
    for (const effect of effects) {
      if (this.#isOver) return;
      await this.#run(effect);
    }
  }

  /** What the owner does itself, behind what was taken. Resolves once the store has room for it. */
  async push(pushes: readonly Push[]): Promise<void> {
    const { decided } = await this.#give(pushes);
    this.#then(async () => void (await decided));
  }

  /** Nothing more is taken. */
  end(): void {
    this.#isOver = true;
  }

  /** Resolves when what was taken is decided. Throws what kept it from being settled. */
  async close(): Promise<void> {
    this.end();
    // What was given out may give out more.
    for (let settled: Promise<void> | undefined; settled !== this.#settled;) {
      settled = this.#settled;
      await settled;
    }
  }

  async #run(effect: ReceiverEffect): Promise<void> {
    switch (effect.kind) {
      case 'push':
        return this.#push(effect.work);
      case 'again':
        await this.#settled;
        return this.happen({ kind: 'frame', frame: effect.frame, isHeld: effect.isHeld });
      default:
        return this.#parts.run(effect);
    }
  }

  async #push(work: Work): Promise<void> {
    this.#count(work, 1);
    const { decided } = work.pushes.length > 0 ? await this.#give(work.pushes) : { decided: Promise.resolve([]) };
    this.#then(async () => {
      const outcomes = await decided;
      this.#count(work, -1);
      for (const { kind } of outcomes) if (kind !== 'unavailable') this.#parts.metrics.pushes.add(1, { outcome: kind });
      await this.happen({ kind: 'settled', work, outcomes });
    });
  }

  #count({ slice, mutations }: Work, by: 1 | -1): void {
    if (slice === undefined) return;
    const undecided = this.undecidedOf(slice) + by * mutations;
    if (undecided > 0) this.#undecided.set(formatSlice(slice), undecided);
    else this.#undecided.delete(formatSlice(slice));
  }

  /** Resolves once it is in the queue, with what resolves when it is decided. */
  async #give(pushes: readonly Push[]): Promise<Readonly<{ decided: Promise<readonly PushOutcome[]> }>> {
    const { lane } = this.#parts;
    await lane.room();
    return { decided: lane.push(pushes) };
  }

  #then(task: () => Promise<void>): void {
    this.#settled = this.#settled.then(task);
    this.#settled.catch(() => this.#parts.terminate());
  }

  /** Small frames that come together go into one commit; a sender that never paused would keep the others waiting. */
  async #pauseAfter(frame: NumberedFrame): Promise<void> {
    const more = creditOf(frame);
    const [mutations, bytes] = [this.#taken.mutations + more.mutations, this.#taken.bytes + more.bytes];
    const isFull = mutations >= turnMax.mutations || bytes >= turnMax.bytes;
    this.#taken = isFull ? nothing : { mutations, bytes };
    if (isFull) await this.#parts.turn();
  }
}
