/**
 * Keeps etcd from applying an unanswered transaction after a later one: between the two, this
 * server renews its fence (peers.ts).
 */
import { pause } from '../../domain/base/promises.js';
import type { Clock } from '../../domain/ports.js';
import { EtcdError } from './etcd-error.js';
import type { Compare } from './rpc.js';

export type WriteFenceParts = Readonly<{
  clock: Clock;
  /** This server's fence as published; undefined if there is none. */
  fence: () => Compare | undefined;
  /**
   * Resolves once etcd can apply no write that was sent before, and the writes that it has applied
   * are published here. Throws EtcdError.
   */
  renewFence: () => Promise<void>;
}>;

const retryMs = 200;

export class WriteFence {
  readonly #parts: WriteFenceParts;
  /** Transactions without an answer; `#settled` of them were sent before the latest renewal. */
  #unanswered = 0;
  #settled = 0;
  #renewing: Promise<void> | undefined;

  constructor(parts: WriteFenceParts) {
    this.#parts = parts;
  }

  recordUnanswered(): void {
    this.#unanswered += 1;
  }

  /**
   * Returns the comparison for the next transaction, once etcd can no longer apply any unanswered
   * one. From `untilMs` on, a failed renewal throws an EtcdError of the given kind.
   */
  async present(untilMs: number, kind: 'refused' | 'unknown'): Promise<Compare> {
    const { clock, fence } = this.#parts;
    for (;;) {
      const present = fence();
      if (present !== undefined && this.#settled === this.#unanswered) return present;
      this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined));
      try {
        await this.#renewing;
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        if (clock.now() >= untilMs) throw new EtcdError(kind, error.message, { cause: error });
        await pause(clock, retryMs);
      }
    }
  }

  async #renew(): Promise<void> {
    const unanswered = this.#unanswered;
    await this.#parts.renewFence();
    this.#settled = unanswered;
  }
}
