/**
 * Hands out turns to readers of initial state or of long responses, first come, first served.
 * Together they send at most `bytesMax` in one turn of the event loop. A larger request gets a turn
 * to itself.
 *
 *  32 readers × one shared page ─▶ 4 now │ other work │ 4 now │ other work │ …
 */
type Waiting = Readonly<{ bytes: number; go: () => void }>;

export class Pace {
  readonly bytesMax: number;
  readonly #nextTurn: (task: () => void) => unknown;
  #waiting: Waiting[] = [];

  constructor(bytesMax: number, nextTurn: (task: () => void) => unknown) {
    this.bytesMax = bytesMax;
    this.#nextTurn = nextTurn;
  }

  /** Resolves when the caller may send that many bytes; never in the tick of the call. */
  turn(bytes: number): Promise<void> {
    return new Promise((go) => {
      this.#waiting.push({ bytes, go });
      if (this.#waiting.length === 1) this.#nextTurn(() => this.#release());
    });
  }

  #release(): void {
    let left = this.bytesMax;
    let count = 0;
    for (const { bytes, go } of this.#waiting) {
      if (count > 0 && bytes > left) break;
      left -= bytes;
      count += 1;
      go();
    }
    this.#waiting = this.#waiting.slice(count);
    if (this.#waiting.length > 0) this.#nextTurn(() => this.#release());
  }
}
