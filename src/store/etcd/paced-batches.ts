/**
 * Hands out what a watch has brought in steps that a turn of the event loop has time for. A revision is never split, and the order stays.
 *
 *   responses of the watch ──▶ waiting ──▶ some of it, in this turn ──▶ some more, in the next …
 *
 * Bound: whoever reads the watch stops while more than `waitingBytesMax` wait (`isFull`), and goes on once that has come down (`drained`).
 */
import { setImmediate } from 'node:timers';
import type { FollowedBatch } from './follower.js';
import type { WatchEvent } from './rpc.js';

/** About three milliseconds of work. */
const eventsMax = 64;
const bytesMax = 256 * 1024;
const waitingBytesMax = 4 * 1024 * 1024;

export class PacedBatches {
  readonly #take: (batch: FollowedBatch) => void;
  readonly #drained: () => void;
  #waiting: FollowedBatch[] = [];
  #bytes = 0;
  #isTurnAsked = false;

  constructor(take: (batch: FollowedBatch) => void, drained: () => void) {
    this.#take = take;
    this.#drained = drained;
  }

  get isFull(): boolean {
    return this.#bytes > waitingBytesMax;
  }

  /** What comes alone is handed out in this very tick. */
  add(batch: FollowedBatch): void {
    const steps = stepsOf(batch);
    for (const { events } of steps) this.#bytes += sum(events);
    this.#waiting.push(...steps);
    if (!this.#isTurnAsked) this.#turn();
  }

  /** Nothing that waits is handed out any more. */
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
    this.#take(batch);
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

/** The events of a watch come in the order of their revisions. */
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

/** With what it has replaced. */
function bytesOf({ kv, previous }: WatchEvent): number {
  return kv.value.length + (previous?.value.length ?? 0);
}
