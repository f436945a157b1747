/**
 * Which objects of a slice, or of a shard, were spoken of since a revision: what was not is to be removed. Kept in memory while
 * a statement is under way.
 *
 *   start = 20      12  confirmed unchanged ── stays                      I13 What was written since `start` stays, without being
 *                   17 ─────────────────────── goes                           remembered: its revision is above.
 *                   23  written since ──────── stays
 *                   24  17 stated again because a namesake elsewhere went ── goes: nobody spoke of it
 *
 * Revisions are only ever added, so that a commit that failed is undone by its own. A confirmation that failed with it counts
 * nevertheless: the object stays until a statement says otherwise.
 *
 * Bound: one integer per object that was confirmed, and per time the store wrote one again.
 */
import type { Revision } from '../../domain/revision.js';

export class Survey {
  readonly #start: Revision;
  readonly #confirmed = new Set<Revision>();
  /** Above `start`, but only because the store itself wrote them again; those that were confirmed since are in both. */
  readonly #restated = new Set<Revision>();

  constructor(start: Revision) {
    this.#start = start;
  }

  /** The object of this revision is as it should be. */
  confirm(revision: Revision): void {
    if (revision <= this.#start || this.#restated.has(revision)) this.#confirmed.add(revision);
  }

  /** The store has written the object of revision `from` again, unasked. */
  restate(from: Revision, to: Revision): void {
    if (this.isUnstated(from)) this.#restated.add(to);
  }

  isUnstated(revision: Revision): boolean {
    return (revision <= this.#start || this.#restated.has(revision)) && !this.#confirmed.has(revision);
  }

  /** Revisions above that one were not stored and will be others'. */
  undo(revision: Revision): void {
    for (const known of [this.#confirmed, this.#restated]) for (const each of known) if (each > revision) known.delete(each);
  }
}
