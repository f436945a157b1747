/**
 * Lets readers of initial state that come shortly after one another begin at the same revision, so that they share what is read and encoded
 * although somebody writes all the time.
 *
 *   revision ──────10─────17───────25──────▶      the first begins at once, at 10; one that comes within `shareMs` of it waits for the
 *   informers      A      B  C  D  └ B C D        end of that time, and all of them begin at 25: a newer start serves an older request
 *
 * While nothing changes nobody waits. Bound: one entry for each view that was begun in the last `shareMs`.
 */
import type { Clock, Revisions } from '../domain/ports.js';
import type { Revision } from '../domain/revision.js';

const shareMs = 50;

type Start = Readonly<{ revision: Revision; next: () => Promise<Revision> }>;

export class SharedStarts {
  readonly #clock: Clock;
  readonly #revisions: Revisions;
  /** The last start of each view, for as long as others may join the next one. */
  readonly #last = new Map<string, Start>();

  constructor({ clock, revisions }: Readonly<{ clock: Clock; revisions: Revisions }>) {
    this.#clock = clock;
    this.#revisions = revisions;
  }

  /** Where a reader of the view begins: at what is published now, or somewhat later. */
  async start(view: string): Promise<Revision> {
    const last = this.#last.get(view);
    if (last === undefined) return this.#begin(view);
    return last.revision === this.#revisions.published ? last.revision : last.next();
  }

  #begin(view: string): Revision {
    const revision = this.#revisions.published;
    const waiting: ((revision: Revision) => void)[] = [];
    this.#last.set(view, { revision, next: () => new Promise((resolve) => waiting.push(resolve)) });
    this.#clock.after(shareMs, () => {
      this.#last.delete(view);
      if (waiting.length === 0) return;
      const next = this.#begin(view);
      for (const resolve of waiting) resolve(next);
    });
    return revision;
  }
}
