/**
 * A scope as it stood at a revision, page by page: the index as it is, but for the keys that have changed since, which are shown as they were. Its first page
 * looks at the changes in history, some in each turn of the event loop; from then on it takes note of each change in its scope.
 *
 *   at 20     index now     a 12    b 31    d 18            b changed at 31, c was deleted at 27:
 *             changed since         b (14)  c (9)           a 12, b 14, c 9, d 18
 *
 * Bound: one entry for each key of its scope that has changed since, with what the key held: `ownKeysMax`, and of all snapshots together what `room` has. Without room it is
 * expired.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Budget } from '../../domain/budget.js';
import type { Change } from '../../domain/change.js';
import { expired, Refused } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { Snapshot, SnapshotPage } from '../../domain/store-port.js';
import type { BodyReader } from './body-reader.js';
import { compareKeys, type IndexedObject, type ObjectIndex } from './object-index.js';

export type SnapshotLimits = Readonly<{ rowsMax: number; bytesMax: number }>;

export type EtcdSnapshotParts = Readonly<{
  objects: ObjectIndex;
  reader: BodyReader;
  /** For keys beyond its own. */
  room: Pick<Budget, 'tryTake' | 'give'>;
  /** The changes of its type above a revision, up to now, rising. */
  since: (revision: Revision) => Iterable<Change>;
  /** Throws Refused(Expired) once history does not cover the revision any more. */
  assertCovered: () => void;
  release: () => void;
}>;

/** What a key held before it changed; `before` undefined: nothing. */
type Former = Readonly<{ key: Key; before: (() => StoredObject | undefined) | undefined }>;

const ownKeysMax = 1_000;
/** In one turn, beside those of other snapshots: some 1 ms. */
const changesAtOnce = 500;

export class EtcdSnapshot implements Snapshot {
  readonly revision: Revision;
  readonly #scope: Scope;
  readonly #parts: EtcdSnapshotParts;
  readonly #limits: SnapshotLimits;
  readonly #former = new Map<string, Former>();
  /** Up to where it has looked at history; undefined once it has at all of it, and is told what comes. */
  #lookedTo: Revision | undefined;
  /** It is closed, or there was no room for what it has to hold. */
  #isOver = false;
  /** Those that held something and hold nothing now, in the order of keys; undefined until it is asked for again. */
  #gone: readonly Former[] | undefined;

  constructor(scope: Scope, revision: Revision, parts: EtcdSnapshotParts, limits: SnapshotLimits) {
    this.#scope = scope;
    this.revision = revision;
    this.#parts = parts;
    this.#limits = limits;
    this.#lookedTo = revision;
  }

  /** What has changed just now. */
  note(changes: Iterable<Change>): void {
    // Else it finds them in history.
    if (this.#lookedTo === undefined) for (const change of changes) this.#take(change);
  }

  async page(after: Key | undefined): Promise<SnapshotPage> {
    await this.#lookAtHistory();
    this.#parts.assertCovered();
    if (this.#isOver) throw this.#expired();
    const { rowsMax, bytesMax } = this.#limits;
    const found: (IndexedObject | StoredObject)[] = [];
    let [bytes, isMore] = [0, false];
    for (const object of this.#standing(after)) {
      if (found.length >= rowsMax || bytes >= bytesMax) {
        isMore = true;
        break;
      }
      found.push(object);
      bytes += 'body' in object ? object.body.bytes.length : object.bytes;
    }
    const objects = await this.#withBodies(found);
    this.#parts.assertCovered();
    return { objects, next: isMore ? found.at(-1)?.key : undefined };
  }

  close(): void {
    this.#parts.release();
    this.#end();
  }

  async #lookAtHistory(): Promise<void> {
    while (this.#lookedTo !== undefined && !this.#isOver) {
      this.#parts.assertCovered();
      if (this.#lookAtSome(this.#lookedTo)) this.#lookedTo = undefined;
      else await turn();
    }
  }

  /** Whether these were all. A revision is looked at as a whole. */
  #lookAtSome(after: Revision): boolean {
    let looked = 0;
    for (const change of this.#parts.since(after)) {
      if (looked >= changesAtOnce && change.revision !== this.#lookedTo) return false;
      this.#take(change);
      this.#lookedTo = change.revision;
      looked += 1;
    }
    return true;
  }

  /** The first change of a key has what it held. */
  #take(change: Change): void {
    const { key } = change;
    if (this.#isOver || !matches(this.#scope, key)) return;
    this.#gone = undefined;
    const text = textOf(key);
    if (this.#former.has(text)) return;
    if (this.#former.size >= ownKeysMax && !this.#parts.room.tryTake(1)) return this.#end();
    this.#former.set(text, { key, before: change.kind === 'put' && change.created ? undefined : change.previous });
  }

  #end(): void {
    this.#isOver = true;
    this.#parts.room.give(Math.max(0, this.#former.size - ownKeysMax));
    this.#former.clear();
    this.#gone = undefined;
  }

  #expired(): Refused {
    return new Refused(expired(`too old resource version: ${this.revision}`));
  }

  async #withBodies(found: readonly (IndexedObject | StoredObject)[]): Promise<readonly StoredObject[]> {
    const indexed = found.flatMap((object) => ('body' in object ? [] : [object]));
    const read = await this.#parts.reader.read(indexed, this.revision);
    let next = 0;
    return found.map((object) => ('body' in object ? object : read[next++]!));
  }

  /** What was there, in the order of keys. */
  *#standing(after: Key | undefined): Iterable<IndexedObject | StoredObject> {
    const gone = this.#goneBehind(after);
    let next = gone.next();
    for (const object of this.#parts.objects.walk(this.#scope, after)) {
      for (; next.done !== true && compareKeys(next.value.key, object.key) < 0; next = gone.next()) yield this.#heldBy(next.value);
      const former = this.#former.get(textOf(object.key));
      if (former === undefined) yield object;
      else if (former.before !== undefined) yield this.#heldBy(former);
    }
    for (; next.done !== true; next = gone.next()) yield this.#heldBy(next.value);
  }

  *#goneBehind(after: Key | undefined): Generator<Former, undefined> {
    const { objects } = this.#parts;
    this.#gone ??= [...this.#former.values()]
      .filter(({ key, before }) => before !== undefined && objects.get(key) === undefined)
      .toSorted((a, b) => compareKeys(a.key, b.key));
    for (const each of this.#gone) if (after === undefined || compareKeys(each.key, after) > 0) yield each;
    return undefined;
  }

  #heldBy({ before }: Former): StoredObject {
    const held = before?.();
    // It was listed again behind a gap in history, and nobody has it any more.
    if (held === undefined) throw this.#expired();
    return held;
  }
}

function textOf({ resource, shard, cluster, namespace, name }: Key): string {
  return `${resource.identity}|${shard}|${cluster}|${namespace}/${name}`;
}
