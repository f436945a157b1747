/**
 * Which objects of a slice, a shard or a type were synced since the revision `start`. A sweep
 * removes the others. The committer keeps the marks in memory while the sync or the removal is
 * under way.
 *
 *   start = 20      12  confirmed unchanged ────────────────────────── stays
 *                   17 ─────────────────────────────────────────────── removed
 *                   23  written since `start` ──────────────────────── stays
 *                   24  rewritten because a namesake was deleted ───── removed: nobody synced it
 *
 * I22 An object written since `start` stays, and costs no memory: its revision is above `start`.
 *
 * Both sets only grow, so `undo` of a failed commit deletes the commit's own revisions. A
 * confirmation that was part of the failed commit still counts: the object stays until a sync
 * leaves it out.
 *
 * Bound: one integer per confirmed object, and one per object that the store rewrote.
 */
import type { Revision } from '../domain/revision.js';

export class Marks {
  readonly #start: Revision;
  readonly #confirmed = new Set<Revision>();
  /**
   * Above `start`, but only because the store itself rewrote the object. A revision that was
   * confirmed since then is in both sets.
   */
  readonly #rewritten = new Set<Revision>();

  constructor(start: Revision) {
    this.#start = start;
  }

  /** The source has synced the object of this revision unchanged. */
  confirm(revision: Revision): void {
    if (revision <= this.#start || this.#rewritten.has(revision)) this.#confirmed.add(revision);
  }

  /** The store has rewritten the object of revision `from`, although no writer asked for it. */
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
