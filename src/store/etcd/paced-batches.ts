/**
 * Hands out the batches of a watch in order, in steps that are small enough for a turn of the event
 * loop. A revision is never split.
 *
 *   responses of the watch ──▶ waiting ──▶ one step in this turn ──▶ the next in the next turn …
 *
 * Bound: the follower pauses the watch once more than `waitingBytesMax` wait (`isFull`), and
 * resumes it when fewer bytes wait (`drained`).
 */
import { setImmediate } from 'node:timers';
import type { FollowedBatch } from './follower.js';
import type { WatchEvent } from './rpc.js';

/** Bounds of one step, which takes about three milliseconds. */
const eventsMax = 64;
const bytesMax = 256 * 1024;
const waitingBytesMax = 4 * 1024 * 1024;

export class PacedBatches {
  readonly #apply: (batch: FollowedBatch) => void;
  readonly #drained: () => void;
  #waiting: FollowedBatch[] = [];
  #bytes = 0;
  #isTurnAsked = false;

  constructor(apply: (batch: FollowedBatch) => void, drained: () => void) {
    this.#apply = apply;
    this.#drained = drained;
  }

  get isFull(): boolean {
    return this.#bytes > waitingBytesMax;
  }

  /** Hands out the first step at once if nothing else waits. */
  add(batch: FollowedBatch): void {
    const steps = stepsOf(batch);
    for (const { events } of steps) this.#bytes += sum(events);
    this.#waiting.push(...steps);
    if (!this.#isTurnAsked) this.#turn();
  }

  clear(): void {
    this.#waiting = [];
    this.#bytes = 0;
  }

  #turn(): void {
    const batch = this.#waiting.shift();
    if (batch === undefined) return;
    const wasFull = this.isFull;
    this.#bytes -= sum(batch.events);
    if (this.#waiting.length > 0) this.#askTurn();
    this.#apply(batch);
    if (wasFull && !this.isFull) this.#drained();
  }

  #askTurn(): void {
    this.#isTurnAsked = true;
    setImmediate(() => {
      this.#isTurnAsked = false;
      this.#turn();
    });
  }
}

/** Splits a batch between revisions. The events must be in order of revision. */
function stepsOf(batch: FollowedBatch): readonly FollowedBatch[] {
  const steps: FollowedBatch[] = [];
  let [events, bytes]: [WatchEvent[], number] = [[], 0];
  for (const event of batch.events) {
    const last = events.at(-1)?.kv.revision;
    if (last !== undefined && event.kv.revision !== last && (events.length >= eventsMax || bytes >= bytesMax)) {
      steps.push({ revision: last, events });
      [events, bytes] = [[], 0];
    }
    events.push(event);
    bytes += bytesOf(event);
  }
  steps.push({ revision: batch.revision, events });
  return steps;
}

function sum(events: readonly WatchEvent[]): number {
  let bytes = 0;
  for (const event of events) bytes += bytesOf(event);
  return bytes;
}

/** Includes the value that the event replaced. */
function bytesOf({ kv, previous }: WatchEvent): number {
  return kv.value.length + (previous?.value.length ?? 0);
}
