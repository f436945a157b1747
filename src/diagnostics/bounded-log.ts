/**
 * A log for events that a peer can cause as often as it likes, such as refusals and connections.
 * Beyond `linesMax` in a window, events are only counted, and the next line reports the count. So
 * no peer can fill a disk with log lines.
 */
import type { Clock } from '../domain/ports.js';
import type { Log, LogFields } from './log.js';

const linesMaxByDefault = 200;
const windowMs = 10_000;

export class BoundedLog {
  readonly #parts: Readonly<{ clock: Clock; log: Log }>;
  readonly #linesMax: number;
  #windowEndMs = 0;
  #lines = 0;
  #unlogged = 0;

  constructor(parts: Readonly<{ clock: Clock; log: Log }>, { linesMax = linesMaxByDefault } = {}) {
    this.#parts = parts;
    this.#linesMax = linesMax;
  }

  info(event: string, fields: LogFields): void {
    this.#write('info', event, fields);
  }

  warn(event: string, fields: LogFields): void {
    this.#write('warn', event, fields);
  }

  #write(level: 'info' | 'warn', event: string, fields: LogFields): void {
    const { clock, log } = this.#parts;
    const nowMs = clock.now();
    if (nowMs >= this.#windowEndMs) {
      this.#windowEndMs = nowMs + windowMs;
      this.#lines = 0;
    }
    if (this.#lines >= this.#linesMax) {
      this.#unlogged += 1;
      return;
    }
    this.#lines += 1;
    log[level](event, this.#unlogged === 0 ? fields : { ...fields, unlogged: this.#unlogged });
    this.#unlogged = 0;
  }
}

const shownCharactersMax = 256;

/** Cuts a text that a peer chose, for a log. */
export function shown(text: string): string {
  return text.slice(0, shownCharactersMax);
}
