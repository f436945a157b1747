/**
 * The progress of a run: on a terminal a bar that is redrawn, otherwise one line for each question.
 * It goes to standard error, so that standard output has only the table.
 */
import type { WriteStream } from 'node:tty';

const barCharacters = 24;
const msPerMinute = 60_000;
const msPerSecond = 1_000;

export class Progress {
  readonly #stream: WriteStream;
  readonly #steps: number;
  readonly #startedMs = performance.now();
  #done = 0;
  #text = '';

  constructor(stream: WriteStream, steps: number) {
    this.#stream = stream;
    this.#steps = steps;
  }

  /** Prints a line that stays. */
  say(text: string): void {
    if (this.#stream.isTTY) this.#stream.write(`\r\x1b[K${text}\n`);
    else this.#stream.write(`${formatElapsed(performance.now() - this.#startedMs)}  ${text}\n`);
    this.#draw();
  }

  /** Shows what is under way, only on a terminal. */
  show(text: string): void {
    this.#text = text;
    this.#draw();
  }

  advance(steps = 1): void {
    this.#done += steps;
    this.#draw();
  }

  end(): void {
    if (this.#stream.isTTY) this.#stream.write('\r\x1b[K');
  }

  #draw(): void {
    if (!this.#stream.isTTY) return;
    const line = `${formatBar(this.#done, this.#steps)} ${formatElapsed(performance.now() - this.#startedMs)} ${this.#text}`;
    this.#stream.write(`\r\x1b[K${line.slice(0, Math.max(1, this.#stream.columns - 1))}`);
  }
}

export function formatBar(done: number, steps: number): string {
  const filled = steps === 0 ? barCharacters : Math.min(barCharacters, Math.round((done / steps) * barCharacters));
  return `[${'█'.repeat(filled)}${'░'.repeat(barCharacters - filled)}] ${Math.min(done, steps)}/${steps}`;
}

function formatElapsed(elapsedMs: number): string {
  const seconds = Math.floor((elapsedMs % msPerMinute) / msPerSecond);
  return `${Math.floor(elapsedMs / msPerMinute)}:${String(seconds).padStart(2, '0')}`;
}
