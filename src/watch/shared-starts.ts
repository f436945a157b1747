/**
 * Gives readers that start shortly after one another the same revision. They then share pages even
 * during constant writes.
 *
 *   revision ──────10─────17───────25──────▶      A starts at once, at 10. B, C, D arrive within
 *   readers        A      B  C  D  └ B C D        `shareMs` of it, wait for that time to end, and
 *                                                 start at 25.
 *
 * A reader never gets a revision older than the one published at its call. While nothing of the
 * view's type changes, no reader waits.
 *
 * Bound: one entry for each view that has readers, one of which started in the last `shareMs`.
 */
import type { Clock } from '../domain/ports.js';
import type { Revisions } from '../domain/store-port.js';
import type { Revision } from '../domain/revision.js';

const shareMs = 50;

type Start = Readonly<{ revision: Revision; waiting: ((revision: Revision) => void)[]; cancelEnd: () => void }>;

type SharedStartsParts = Readonly<{ clock: Pick<Clock, 'after'>; revisions: Pick<Revisions, 'published'> }>;

export class SharedStarts {
  readonly #parts: SharedStartsParts;
  /** The last start of each view, while readers may wait for the next one. */
  readonly #last = new Map<string, Start>();

  constructor(parts: SharedStartsParts) {
    this.#parts = parts;
  }

  /**
   * The revision at which a reader of the view starts: the one published at the call, or a later
   * one. `changedAt`: when the view's type last changed.
   */
  async start(view: string, changedAt: Revision): Promise<Revision> {
    const last = this.#last.get(view);
    if (last === undefined) return this.#begin(view);
    if (changedAt <= last.revision) return this.#parts.revisions.published;
    return new Promise((resolve) => last.waiting.push(resolve));
  }

  /** Lets waiting readers start: after `shareMs`, or as soon as the view has no reader. */
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
