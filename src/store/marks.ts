/**
 * Which objects of a slice, or of a shard, were synced since a revision: the others are to be removed. Kept in memory while
 * a sync is under way.
 *
 *   start = 20      12  confirmed unchanged ── stays                      I22 What was written since `start` stays, without being
 *                   17 ─────────────────────── goes                           remembered: its revision is above.
 *                   23  written since ──────── stays
 *                   24  17 written again because a namesake elsewhere went ── goes: nobody synced it
 *
 * Revisions are only ever added, so `undo` of a failed commit drops the commit's own revisions. A confirmation that failed with the commit
 * still counts: the object stays until a sync leaves it out.
 *
 * Bound: one integer per object that was confirmed, and per object that the store wrote again.
 */
import type { Revision } from '../domain/revision.js';

export class Marks {
  readonly #start: Revision;
  readonly #confirmed = new Set<Revision>();
  /** Above `start`, but only because the store itself wrote them again; those that were confirmed since are in both. */
  readonly #rewritten = new Set<Revision>();

  constructor(start: Revision) {
    this.#start = start;
  }

  /** The object of this revision was synced unchanged. */
  confirm(revision: Revision): void {
    if (revision <= this.#start || this.#rewritten.has(revision)) this.#confirmed.add(revision);
  }

  /** The store has written the object of revision `from` again, unasked. */
  rewrite(from: Revision, to: Revision): void {
    if (this.isUnmarked(from)) this.#rewritten.add(to);
  }

  isUnmarked(revision: Revision): boolean {
    return (revision <= this.#start || this.#rewritten.has(revision)) && !this.#confirmed.has(revision);
  }

  /** Revisions above that one were not stored and will be others'. */
  undo(revision: Revision): void {
    for (const known of [this.#confirmed, this.#rewritten]) for (const each of known) if (each > revision) known.delete(each);
  }
}
