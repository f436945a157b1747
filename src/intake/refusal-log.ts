/**
 * Writes down what a session is refused: who, what and why, never a body. A pusher that is wrong in everything it says fills no
 * disk: beyond `linesMax` in a window, refusals are counted and told with the next line.
 */
import type { Log } from '../diagnostics/log.js';
import type { Refusal } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { PushedKey } from '../frames/frame.js';

const linesMax = 20;
const windowMs = 10_000;
/** Of a text that a peer chose. */
const shownCharactersMax = 256;

export class RefusalLog {
  readonly #parts: Readonly<{ clock: Clock; log: Log }>;
  #windowEndMs = 0;
  #lines = 0;
  #untold = 0;

  constructor(parts: Readonly<{ clock: Clock; log: Log }>) {
    this.#parts = parts;
  }

  note({ slice, key, refusal }: Readonly<{ slice: Slice; key: PushedKey | undefined; refusal: Refusal }>): void {
    const nowMs = this.#parts.clock.now();
    if (nowMs >= this.#windowEndMs) {
      this.#windowEndMs = nowMs + windowMs;
      this.#lines = 0;
    }
    if (this.#lines >= linesMax) {
      this.#untold += 1;
      return;
    }
    this.#lines += 1;
    this.#parts.log.warn('push.refused', {
      slice: formatSlice(slice),
      cluster: shown(key?.cluster),
      namespace: shown(key?.namespace),
      name: shown(key?.name),
      reason: refusal.reason,
      message: shown(refusal.message),
      ...(this.#untold > 0 && { untold: this.#untold }),
    });
    this.#untold = 0;
  }
}

function shown(text: string | undefined): string | undefined {
  return text?.slice(0, shownCharactersMax);
}
