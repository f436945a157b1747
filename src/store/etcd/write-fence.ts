/**
 * Keeps etcd from applying an unanswered transaction after a later one: this server renews its
 * fence (peers.ts) in between.
 */
import { pause } from '../../domain/base/promises.js';
import type { Clock } from '../../domain/ports.js';
import { EtcdError } from './etcd-error.js';
import type { Compare } from './rpc.js';

export type WriteFenceParts = Readonly<{
  clock: Clock;
  /** This server's fence as published; undefined if it has none now. */
  fence: () => Compare | undefined;
  /**
   * Resolves once etcd can apply nothing that was sent before, and what it has applied is published
   * here. Throws EtcdError.
   */
  renewFence: () => Promise<void>;
}>;

const retryMs = 200;
const never = new AbortController().signal;

export class WriteFence {
  readonly #parts: WriteFenceParts;
  /** Transactions without an answer, and how many of them were sent before the latest renewal. */
  #unanswered = 0;
  #settled = 0;
  #renewing: Promise<void> | undefined;

  constructor(parts: WriteFenceParts) {
    this.#parts = parts;
  }

  /** Records that a transaction got no answer. */
  recordUnanswered(): void {
    this.#unanswered += 1;
  }

  /**
   * Returns the comparison for the next transaction, once etcd can apply no unanswered one. Throws
   * an EtcdError of the given kind if that is not so by `untilMs`.
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
        await pause(clock, retryMs, never);
      }
    }
  }

  async #renew(): Promise<void> {
    const unanswered = this.#unanswered;
    await this.#parts.renewFence();
    this.#settled = unanswered;
  }
}
