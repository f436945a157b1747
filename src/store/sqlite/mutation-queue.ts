/**
 * Mutations waiting for the committer. No timer: an idle committer gets what this turn of the event loop brings, and batches form by
 * themselves while it works (D3).
 *
 *   submit ──▶ waiting ──(committer idle)──▶ in flight ──committed──▶ published, then answered, in one tick
 *
 * I7 At most `mutationsMax` or `bytesMax` wait; one more is answered 429 and nothing of it is kept. One may always wait.
 * I8 Answers come in the order of submission.
 */
import type { Refusal } from '../../domain/errors.js';
import type { Mutation, Outcome } from '../../domain/mutation.js';

export type QueueLimits = Readonly<{ mutationsMax: number; bytesMax: number; batchMutationsMax: number; batchBytesMax: number }>;

export type Waiting = Readonly<{ mutation: Mutation; answer: (outcome: Outcome) => void }>;

const full: Refusal = {
  reason: 'TooManyRequests',
  message: 'the write queue is full, please try again later',
  details: { retryAfterSeconds: 1 },
};

export class MutationQueue {
  readonly #limits: QueueLimits;
  readonly #send: (batch: readonly Waiting[]) => void;
  readonly #soon: (task: () => void) => void;
  #waiting: Waiting[] = [];
  #bytes = 0;
  #busy = false;

  /** `send` hands a batch to the committer; `settled` must follow. `soon` runs a task behind what this turn of the event loop still brings. */
  constructor(
    limits: QueueLimits,
    { send, soon }: Readonly<{ send: (batch: readonly Waiting[]) => void; soon: (task: () => void) => void }>,
  ) {
    this.#limits = limits;
    this.#send = send;
    this.#soon = soon;
  }

  get length(): number {
    return this.#waiting.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get idle(): boolean {
    return !this.#busy && this.#waiting.length === 0;
  }

  submit(mutation: Mutation): Promise<Outcome> {
    const { mutationsMax, bytesMax } = this.#limits;
    const bytes = this.#bytes + sizeOf(mutation);
    const isFull = this.#waiting.length >= mutationsMax || bytes > bytesMax;
    if (isFull && this.#waiting.length > 0) return Promise.resolve({ kind: 'unavailable', refusal: full });
    return new Promise((answer) => {
      this.#waiting.push({ mutation, answer });
      this.#bytes = bytes;
      // Requests come in flocks, as the answers did: those of one turn of the event loop go together.
      if (!this.#busy && this.#waiting.length === 1) this.#soon(() => this.pump());
    });
  }

  /** The committer has answered, or has been lent to other work. */
  settled(): void {
    this.#busy = false;
  }

  /** Sends the next batch when the committer is idle; says whether it is busy now. */
  pump(): boolean {
    if (!this.#busy && this.#waiting.length > 0) {
      this.#busy = true;
      this.#send(this.#take());
    }
    return this.#busy;
  }

  /** Answers everything that waits with a refusal. */
  refuseAll(refusal: Refusal): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    for (const { answer } of waiting) answer({ kind: 'unavailable', refusal });
  }

  #take(): readonly Waiting[] {
    const { batchMutationsMax, batchBytesMax } = this.#limits;
    let bytes = 0;
    let count = 0;
    for (const { mutation } of this.#waiting) {
      if (count > 0 && (count >= batchMutationsMax || bytes + sizeOf(mutation) > batchBytesMax)) break;
      bytes += sizeOf(mutation);
      count += 1;
    }
    this.#bytes -= bytes;
    return this.#waiting.splice(0, count);
  }
}

/** Bytes a mutation occupies while it waits: its body and an allowance for its key. */
function sizeOf(mutation: Mutation): number {
  const keyBytes = 256;
  return keyBytes + (mutation.kind === 'put' ? mutation.body.bytes.length : 0);
}
