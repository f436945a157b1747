/** Changes as the log and the commits give them, numbered by one history that makes them. */
import type { Key } from '../../../src/domain/key.js';
import type { Change, Commit, MovedPath } from '../../../src/domain/change.js';
import type { StoredObject } from '../../../src/domain/object.js';
import { anObject, type Content } from '../../support/link-rules.js';
import { aKey, type Place } from '../../support/objects.js';
import { expired, Refused } from '../../../src/domain/errors.js';
import type { Subscription } from '../../../src/domain/ports.js';
import type { Commits, History, Revisions, LogChunk } from '../../../src/domain/store-port.js';

export type Written = Readonly<{ place: Place; content?: Content | undefined; movedPath?: MovedPath }>;

/** A log and its subscribers, in memory. */
export class FakeHistory implements Pick<History, 'everyChange'>, Pick<Revisions, 'published'>, Commits {
  readonly #changes: Change[] = [];
  readonly #held = new Map<string, StoredObject>();
  readonly #listeners = new Set<(commit: Commit) => void>();
  compacted = 0;
  /** How many changes a chunk of the log has, apart from the rest of its last revision. */
  chunk = 3;
  reads = 0;

  get published(): number {
    return this.#changes.at(-1)?.revision ?? 0;
  }

  get all(): readonly Change[] {
    return this.#changes;
  }

  get held(): ReadonlyMap<string, StoredObject> {
    return this.#held;
  }

  /** One commit; an entry without content deletes its key. */
  commit(...written: readonly Written[]): void {
    this.#publish(written.map((each) => this.#change(each, this.published + 1)));
  }

  /** Writes all entries at one revision, as a transaction in etcd does. */
  commitAtOnce(...written: readonly Written[]): void {
    const revision = this.published + 1;
    this.#publish(written.map((each) => this.#change(each, revision)));
  }

  #publish(changes: readonly Change[]): void {
    const commit: Commit = { revision: this.published, changes, movedPaths: [], swept: new Set() };
    for (const listener of this.#listeners) listener(commit);
  }

  subscribe(listener: (commit: Commit) => void): Subscription {
    this.#listeners.add(listener);
    return { cancel: () => this.#listeners.delete(listener) };
  }

  async *everyChange({ after, upTo }: { after: number; upTo: number }, isWanted: (key: Key) => boolean): AsyncGenerator<LogChunk> {
    for (let at = after; at < upTo;) {
      if (at < this.compacted) throw new Refused(expired('too old'));
      this.reads += 1;
      const rows = this.#changes.filter(({ revision }) => revision > at && revision <= upTo);
      const end = rows[this.chunk - 1]?.revision ?? upTo;
      at = end;
      yield {
        changes: rows.filter(({ key, revision, movedPath }) => revision <= end && (isWanted(key) || movedPath !== undefined)),
        upTo: end,
      };
    }
  }

  #change({ place, content, movedPath }: Written, revision: number): Change {
    const key = aKey(place);
    const text = JSON.stringify(key);
    const before = this.#held.get(text);
    const moved = movedPath === undefined ? {} : { movedPath };
    const common = { key, revision, previous: () => before, ...moved };
    const change: Change =
      content === undefined
        ? { kind: 'delete', resourceVersion: `${revision}`, ...common }
        : {
            kind: 'put',
            created: before === undefined,
            object: { ...anObject(place, content), revision, resourceVersion: `${revision}` },
            ...common,
          };
    if (change.kind === 'put') this.#held.set(text, change.object);
    else this.#held.delete(text);
    this.#changes.push(change);
    return change;
  }
}
