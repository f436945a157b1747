/**
 * The changes of a store, indexed so that a question costs only as much as its answer: a soak asks
 * about a thousand watches and hundreds of thousands of changes.
 */
import type { Change, Covered, ObjectKey, Position, SeenEvent } from './watch-history.js';

export class Truth {
  /** Sorted by rising revision. */
  readonly #changes: readonly Change[];
  readonly #histories = new Map<ObjectKey, Change[]>();
  readonly #previous = new Map<Change, Change>();

  constructor(changes: readonly Change[]) {
    this.#changes = changes.toSorted((a, b) => (a.position < b.position ? -1 : a.position > b.position ? 1 : 0));
    for (const change of this.#changes) {
      const history = this.#histories.get(change.key);
      if (history === undefined) this.#histories.set(change.key, [change]);
      else {
        this.#previous.set(change, history.at(-1)!);
        history.push(change);
      }
    }
  }

  get histories(): ReadonlyMap<ObjectKey, readonly Change[]> {
    return this.#histories;
  }

  /**
   * The events that a watch must get for the changes after < position ≤ upTo: the full stream,
   * filtered, with flips.
   */
  events(watch: Covered, after: Position, upTo: Position): readonly SeenEvent[] {
    const { covers, selects = () => true } = watch;
    const isIn = (change: Change | undefined): boolean => change?.kind === 'put' && selects(change);
    const owed: SeenEvent[] = [];
    for (let at = indexBehind(this.#changes, after); at < this.#changes.length; at += 1) {
      const change = this.#changes[at]!;
      if (change.position > upTo) break;
      if (!covers(change.key)) continue;
      const was = isIn(this.#previous.get(change));
      const is = isIn(change);
      if (!was && !is) continue;
      const type = is ? (was ? 'MODIFIED' : 'ADDED') : 'DELETED';
      owed.push({ type, key: change.key, position: change.position, labels: change.labels, initialEventsEnd: false });
    }
    return owed;
  }

  /**
   * Whether several changes at this revision are in the watch's scope: those of one transaction in
   * etcd.
   */
  hasSeveral({ covers }: Covered, at: Position): boolean {
    const changes = this.#changes.slice(indexBehind(this.#changes, at - 1n), indexBehind(this.#changes, at));
    return changes.filter(({ key }) => covers(key)).length > 1;
  }

  /** The revision of each object that a list at this revision holds. */
  stateAt({ covers, selects = () => true }: Covered, at: Position): ReadonlyMap<ObjectKey, Position> {
    const state = new Map<ObjectKey, Position>();
    for (const [key, history] of this.#histories) {
      const change = history[indexBehind(history, at) - 1];
      if (change?.kind === 'put' && covers(key) && selects(change)) state.set(key, change.position);
    }
    return state;
  }
}

/** The index of the first change after a revision. */
function indexBehind(changes: readonly Change[], after: Position): number {
  let low = 0;
  let high = changes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (changes[middle]!.position <= after) low = middle + 1;
    else high = middle;
  }
  return low;
}
