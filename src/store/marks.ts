/**
 * Which objects of a slice, a shard or a type were synced since the revision `start`. A sweep
 * removes all other objects. The committer keeps the marks in memory while the sync or the removal
 * is under way.
 *
 *   start = 20      12  confirmed unchanged ────────────────────────── stays
 *                   17 ─────────────────────────────────────────────── removed
 *                   23  written since `start` ──────────────────────── stays
 *                   24  rewritten because a namesake was deleted ───── removed: nobody synced it
 *
 * I22 An object written since `start` stays. It needs no entry here, because its revision is above
 *     `start`.
 *
 * A commit only adds to the two sets, so `undo` deletes the revisions of the failed commit. If that
 * commit confirmed an older revision, the confirmation still counts: the object stays until a later
 * sync leaves it out.
 *
 * Bound: one integer per confirmed object, and one per object that the store rewrote.
 */
import type { Revision } from '../domain/revision.js';

export class Marks {
  readonly #start: Revision;
  readonly #confirmed = new Set<Revision>();
  /**
   * Revisions that are above `start` only because the store itself rewrote the object. A revision
   * that was confirmed later is in both sets.
   */
  readonly #rewritten = new Set<Revision>();

  constructor(start: Revision) {
    this.#start = start;
  }

  /** The source has sent the object of this revision again, unchanged. */
  confirm(revision: Revision): void {
    if (revision <= this.#start || this.#rewritten.has(revision)) this.#confirmed.add(revision);
  }

  /** The store itself has rewritten the object of revision `from`. */
  rewrite(from: Revision, to: Revision): void {
    if (this.isUnmarked(from)) this.#rewritten.add(to);
  }

  isUnmarked(revision: Revision): boolean {
    return (revision <= this.#start || this.#rewritten.has(revision)) && !this.#confirmed.has(revision);
  }

  /**
   * Revisions above `revision` were not stored. The next commits will give them to other changes.
   */
  undo(revision: Revision): void {
    for (const known of [this.#confirmed, this.#rewritten]) for (const each of known) if (each > revision) known.delete(each);
  }
}
