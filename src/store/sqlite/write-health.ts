/**
 * Whether the store can write. After a failure it probes every `probeIntervalMs`, because no other
 * write may come, least of all while the server is not ready.
 */
import type { Log } from '../../diagnostics/log.js';
import type { Clock } from '../../domain/ports.js';

const probeIntervalMs = 5_000;

/** `probe` makes the committer try to write; `wrote` or `failed` follows. */
export type WriteHealthParts = Readonly<{ log: Log; clock: Clock; probe: () => void }>;

export class WriteHealth {
  readonly #parts: WriteHealthParts;
  #lastFailure: string | undefined;
  #isClosed = false;
  #cancelProbe: () => void = () => {};

  constructor(parts: WriteHealthParts) {
    this.#parts = parts;
  }

  /** Why the last attempt to write failed; undefined if it did not. */
  get lastFailure(): string | undefined {
    return this.#lastFailure;
  }

  wrote(): void {
    if (this.#lastFailure === undefined) return;
    this.#lastFailure = undefined;
    this.#cancelProbe();
    this.#parts.log.info('store.writes-again');
  }

  failed(message: string): void {
    this.#lastFailure = message;
    this.#cancelProbe();
    if (!this.#isClosed) this.#cancelProbe = this.#parts.clock.after(probeIntervalMs, this.#parts.probe);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelProbe();
  }
}
