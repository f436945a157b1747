/**
 * When the meaning of a name last changed, such as the logical cluster of a canonical path. A
 * client that resumes from an earlier revision must list again. Otherwise it would keep objects of
 * the former meaning and miss those of the new one.
 *
 * Bound: `namesMax` names. For a forgotten name, only an upper bound of the revision of its last
 * change is known.
 */
import type { Revision } from './revision.js';

const namesMax = 10_000;

export class RecentChanges {
  readonly #changedAt = new Map<string, Revision>();
  #unknownUpTo: Revision;
  #latest: Revision;

  /** `unknownUpTo`: changes up to this revision are not known. */
  constructor(unknownUpTo: Revision) {
    this.#unknownUpTo = unknownUpTo;
    this.#latest = unknownUpTo;
  }

  get latest(): Revision {
    return this.#latest;
  }

  /** Whether the name may have had another meaning at that revision than at present. */
  hasChangedSince(name: string, revision: Revision): boolean {
    return revision < (this.#changedAt.get(name) ?? this.#unknownUpTo);
  }

  /** Must be called in the order of revisions. */
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
