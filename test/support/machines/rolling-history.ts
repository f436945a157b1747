/**
 * Validates what watches, lists and writers see while a server runs, one stretch of revisions after
 * the other, and drops what is valid.
 *
 *   ── validated, last puts kept ──┤ recent, for late answers ├ this stretch ┤ open ──▶ revision
 *                                                  position of the slowest watch ┘
 */
import { validate, type Guarantee, type Violation } from '../validators.js';
import { truthOf, type Acknowledged, type Change, type ObjectKey, type Position, type SeenList } from '../watch-history.js';
import type { LongWatch } from './long-watch.js';

/**
 * Resuming is checked by the others too (G6): each watch, with all its reconnections, is one
 * history.
 */
const durableAndWatched: readonly Guarantee[] = ['G1', 'G2', 'G3', 'G4', 'G5', 'G7', 'G8'];
/** How many recent stretches are searched for an answered write. */
const recentMax = 6;

export class RollingHistory {
  readonly #full: LongWatch;
  readonly #watches: readonly LongWatch[];
  readonly #before = new Map<ObjectKey, Change>();
  #recent: (readonly Change[])[] = [];
  #lists: SeenList[] = [];
  #answered: Acknowledged[] = [];
  changes = 0;
  events = 0;

  /** `full` watches everything from the birth of the store on; its events are the truth. */
  constructor(full: LongWatch, watches: readonly LongWatch[]) {
    this.#full = full;
    this.#watches = watches;
  }

  list(list: SeenList): void {
    this.#lists.push(list);
  }

  /**
   * Writes without a revision are searched for at the next check; all watches must have passed them
   * by then.
   */
  answered(writes: readonly Acknowledged[]): void {
    this.#answered.push(...writes);
  }

  /** Validates everything up to the position of the slowest watch. */
  check(): readonly Violation[] {
    const upTo = this.#watches.reduce((least, { position }) => (position < least ? position : least), this.#full.position);
    const full = this.#full.take(upTo);
    const truth = truthOf(full.events);
    const watches = [full, ...this.#watches.map((watch) => watch.take(upTo))];
    const [lists, laterLists] = split(this.#lists, ({ position }) => position <= upTo);
    const [acknowledged, laterAnswers] = split(this.#answered, (write) => positionIn(write) <= upTo);
    this.#recent.push(truth);
    const known = [...this.#before.values(), ...this.#recent.flat()];
    const violations = validate({ truth: known, watches, lists, acknowledged, unansweredMax: Infinity }, durableAndWatched);
    this.#lists = laterLists;
    this.#answered = laterAnswers;
    this.changes += truth.length;
    this.events += watches.reduce((sum, { events }) => sum + events.length, 0);
    if (this.#recent.length > recentMax) this.#fold(this.#recent.shift()!);
    return violations;
  }

  #fold(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === 'put') this.#before.set(change.key, change);
      else this.#before.delete(change.key);
    }
  }
}

function positionIn(write: Acknowledged): Position {
  return write.kind === 'put' ? (write.position ?? 0n) : 0n;
}

function split<T>(all: readonly T[], isFirst: (each: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((each) => !isFirst(each))];
}
