/** Those who wait until everything up to a revision was handed out. Each waits for a limited time. */
import type { Clock } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import { EtcdError } from './etcd-error.js';

type Waiter = Readonly<{ revision: Revision; resolve: () => void; reject: (error: Error) => void }>;

export class RevisionWaiters {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiter>();

  constructor({ clock }: Readonly<{ clock: Clock }>) {
    this.#clock = clock;
  }

  get areThere(): boolean {
    return this.#waiting.size > 0;
  }

  /** Rejects with an EtcdError of the kind `unknown` where it takes longer. */
  wait(revision: Revision, withinMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        cancel();
        this.#waiting.delete(waiter);
      };
      const waiter: Waiter = {
        revision,
        resolve: () => {
          leave();
          resolve();
        },
        reject: (error) => {
          leave();
          reject(error);
        },
      };
      const late = (): void =>
        waiter.reject(new EtcdError('unknown', `revision ${revision} of etcd has not come within ${withinMs / 1000} s`));
      const cancel = this.#clock.after(withinMs, late);
      this.#waiting.add(waiter);
    });
  }

  reached(position: Revision): void {
    for (const waiter of this.#waiting) if (waiter.revision <= position) waiter.resolve();
  }

  /** None of them will be reached any more. */
  fail(error: Error): void {
    for (const waiter of this.#waiting) waiter.reject(error);
  }
}
