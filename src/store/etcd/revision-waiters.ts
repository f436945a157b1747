/** Callers that wait, for a limited time, until everything up to a revision was handed out. */
import { deferred, type Deferred } from '../../domain/deferred.js';
import type { Clock } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import { EtcdError } from './etcd-error.js';

type Waiter = Readonly<{ revision: Revision }> & Deferred<void>;

export class RevisionWaiters {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiter>();

  constructor({ clock }: Readonly<{ clock: Clock }>) {
    this.#clock = clock;
  }

  get hasWaiters(): boolean {
    return this.#waiting.size > 0;
  }

  /** Rejects with an EtcdError of the kind `unknown` after `withinMs`. */
  wait(revision: Revision, withinMs: number): Promise<void> {
    const waiter = { revision, ...deferred<void>() };
    const late = (): void =>
      waiter.reject(new EtcdError('unknown', `revision ${revision} of etcd has not come within ${withinMs / 1000} s`));
    const cancel = this.#clock.after(withinMs, late);
    this.#waiting.add(waiter);
    return waiter.promise.finally(() => {
      cancel();
      this.#waiting.delete(waiter);
    });
  }

  reached(position: Revision): void {
    for (const waiter of this.#waiting) if (waiter.revision <= position) waiter.resolve();
  }

  /** Rejects all, because none of their revisions will be handed out. */
  fail(error: Error): void {
    for (const waiter of this.#waiting) waiter.reject(error);
  }
}
