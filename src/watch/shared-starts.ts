/**
 * Lets readers of present state that come shortly after one another begin at the same revision, so that they share what is read and encoded
 * although somebody writes all the time.
 *
 *   revision ──────10─────17───────25──────▶      the first begins at once, at 10; one that comes while A is being sent, within `shareMs`
 *   readers        A      B  C  D  └ B C D        of its start, waits for that time's end; all of them begin at 25
 *
 * A newer start serves an older request: nobody is shown less than what was published when it asked. While nothing of the view's type changes
 * nobody waits. Bound: one entry for each view that is being read and was begun in the last `shareMs`.
 */
import type { Clock } from '../domain/ports.js';
import type { Revisions } from '../domain/store-port.js';
import type { Revision } from '../domain/revision.js';

const shareMs = 50;

type Start = Readonly<{ revision: Revision; waiting: ((revision: Revision) => void)[]; cancelEnd: () => void }>;

type SharedStartsParts = Readonly<{ clock: Pick<Clock, 'after'>; revisions: Pick<Revisions, 'published'> }>;

export class SharedStarts {
  readonly #parts: SharedStartsParts;
  /** The last start of each view, for as long as others may join the next one. */
  readonly #last = new Map<string, Start>();

  constructor(parts: SharedStartsParts) {
    this.#parts = parts;
  }

  /** Where a reader of the view begins, whose type has changed last at `changedAt`: at what is published now, or somewhat later. */
  async start(view: string, changedAt: Revision): Promise<Revision> {
    const last = this.#last.get(view);
    if (last === undefined) return this.#begin(view);
    if (changedAt <= last.revision) return this.#parts.revisions.published;
    return new Promise((resolve) => last.waiting.push(resolve));
  }

  /** Nobody reads the view any more, so there is nothing to wait for. */
  end(view: string): void {
    const last = this.#last.get(view);
    if (last === undefined) return;
    last.cancelEnd();
    this.#last.delete(view);
    if (last.waiting.length === 0) return;
    const next = this.#begin(view);
    for (const resolve of last.waiting) resolve(next);
  }

  #begin(view: string): Revision {
    const revision = this.#parts.revisions.published;
    this.#last.set(view, { revision, waiting: [], cancelEnd: this.#parts.clock.after(shareMs, () => this.end(view)) });
    return revision;
  }
}
