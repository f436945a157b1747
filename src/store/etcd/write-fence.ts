/** Keeps what was sent, and not answered, from arriving behind what is sent next: the fence of this server (peers.ts) is renewed in between. */
import { pause } from '../../domain/pause.js';
import type { Clock } from '../../domain/ports.js';
import { EtcdError } from './etcd-error.js';
import type { Compare } from './rpc.js';

export type WriteFenceParts = Readonly<{
  clock: Clock;
  /** Of this server, as it is published; undefined: it has none now. */
  fence: () => Compare | undefined;
  /** Resolves once nothing can arrive any more that was sent before, and what has is published here. Throws EtcdError. */
  renewFence: () => Promise<void>;
}>;

const retryMs = 200;
const never = new AbortController().signal;

export class WriteFence {
  readonly #parts: WriteFenceParts;
  /** How many transactions were not answered, and how many of them had been sent when the fence was renewed. */
  #unanswered = 0;
  #settled = 0;
  #renewing: Promise<void> | undefined;

  constructor(parts: WriteFenceParts) {
    this.#parts = parts;
  }

  /** A transaction was not answered. */
  noteUnanswered(): void {
    this.#unanswered += 1;
  }

  /** What a transaction compares, once nothing that was not answered may arrive any more. Throws an EtcdError of that kind where that cannot be had in time. */
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
