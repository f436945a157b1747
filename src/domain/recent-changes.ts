/**
 * When what a name stands for changed last: the logical cluster of a canonical path, say. Whoever goes on from a revision before that would keep what
 * the name stood for then, and miss what it stands for now: he has to list again.
 *
 * Bound: `namesMax`. Of a name that is forgotten, only the revision is known that its last change does not exceed.
 */
import type { Revision } from './revision.js';

const namesMax = 10_000;

export class RecentChanges {
  readonly #changedAt = new Map<string, Revision>();
  #unknownUpTo: Revision;
  #latest: Revision;

  /** Nothing is known of the changes up to `unknownUpTo`. */
  constructor(unknownUpTo: Revision) {
    this.#unknownUpTo = unknownUpTo;
    this.#latest = unknownUpTo;
  }

  /** Since this revision no name has changed. */
  get latest(): Revision {
    return this.#latest;
  }

  /** Whether it may have stood for something else at that revision than it does now. */
  hasChangedSince(name: string, revision: Revision): boolean {
    return revision < (this.#changedAt.get(name) ?? this.#unknownUpTo);
  }

  /** Changes come in the order of their revisions. */
  record(name: string, revision: Revision): void {
    this.#changedAt.delete(name);
    this.#changedAt.set(name, revision);
    this.#latest = revision;
    if (this.#changedAt.size <= namesMax) return;
    const [[oldest, at] = ['', 0]] = this.#changedAt;
    this.#changedAt.delete(oldest);
    this.#unknownUpTo = at;
  }
}
