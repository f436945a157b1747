/**
 * The obvious store: every change in one array, every read a scan. It implements the ports that the
 * watch room needs, with hooks for a test: `commit` publishes at once, `between` runs wherever the
 * real store gives the event loop a turn, and `openSnapshots` counts what must be closed.
 */
import type { Change, Commit } from '../../../src/domain/change.js';
import { expired, Refused } from '../../../src/domain/errors.js';
import type { Key } from '../../../src/domain/key.js';
import type { StoredObject } from '../../../src/domain/object.js';
import type { Subscription } from '../../../src/domain/ports.js';
import type {
  LogChunk,
  LogType,
  Touch,
  Commits,
  History,
  Objects,
  Revisions,
  Snapshot,
  SnapshotPage,
} from '../../../src/domain/store-port.js';
import { formatResource, type Resource } from '../../../src/domain/resource.js';
import type { Located, Revision } from '../../../src/domain/revision.js';
import { matches, type Scope } from '../../../src/domain/scope.js';
import type { ShardName } from '../../../src/domain/shard.js';
import { aBody, aKey, type Place } from '../../support/objects.js';

type Range = Readonly<{ after: Revision; upTo: Revision }>;

export type Step = Readonly<{ put: Place; labels?: Record<string, string> } | { delete: Place }>;

export class MemoryStore implements Revisions, Objects, History, Commits {
  published: Revision = 0;
  compacted: Revision = 0;
  /**
   * How many rows one page or chunk reads, in the scope or not. A chunk reads its last revision
   * completely.
   */
  rowsMax = 2;
  between: () => Promise<void> = async () => {};
  openSnapshots = 0;
  pagesRead = 0;
  readonly #changes: Change[] = [];
  readonly #listeners = new Set<(commit: Commit) => void>();

  /** One commit, published in this tick. */
  commit(...steps: readonly Step[]): Commit {
    return this.#publish(steps.map((step) => this.#append(step, this.#last + 1)));
  }

  /** Writes all steps at one revision, as a transaction in etcd does. */
  commitAtOnce(...steps: readonly Step[]): Commit {
    const revision = this.#last + 1;
    return this.#publish(steps.map((step) => this.#append(step, revision)));
  }

  get #last(): Revision {
    return this.#changes.at(-1)?.revision ?? 0;
  }

  #publish(changes: readonly Change[]): Commit {
    this.published = this.#last;
    const commit = { revision: this.published, changes, movedPaths: [], swept: new Set<Revision>() };
    for (const listener of this.#listeners) listener(commit);
    return commit;
  }

  /** Every change so far, in rising revision. */
  get log(): readonly Change[] {
    return this.#changes;
  }

  /** The revision of the newest change to the type of a scope. */
  changedAt({ group, resource, identity }: Scope): Revision {
    const type = { group, resource, identity, shard: '*', cluster: '*' } as const;
    return this.#changes.findLast(({ key }) => matches(type, key))?.revision ?? 0;
  }

  format(revision: Revision): string {
    return String(revision);
  }

  locate(text: string): Located {
    const revision = Number(text);
    return revision <= this.published ? { kind: 'ours', revision } : { kind: 'above' };
  }

  formatPosition(revision: Revision): string {
    return this.format(revision);
  }

  locatePosition(text: string): Located {
    return this.locate(text);
  }

  async reachNewest(): Promise<void> {}

  async get(key: Key): Promise<StoredObject | undefined> {
    return this.#at(key, this.published);
  }

  async shardsWith({ resource, ...place }: Omit<Key, 'shard'>): Promise<readonly ShardName[]> {
    return (await this.find({ ...resource, ...place, shard: '*' })).map(({ key }) => key.shard);
  }

  async resources(): Promise<readonly Resource[]> {
    return [...new Map(this.#standing(this.published).map(({ key: { resource } }) => [formatResource(resource), resource])).values()];
  }

  async find(scope: Scope): Promise<readonly StoredObject[]> {
    return this.#standing(this.published).filter(({ key }) => matches(scope, key));
  }

  snapshot(scope: Scope, revision: Revision): Snapshot {
    this.openSnapshots += 1;
    return { revision, page: (after) => this.#page({ scope, revision, after }), close: () => void (this.openSnapshots -= 1) };
  }

  async count(scope: Scope, after: Key | undefined, max: number): Promise<number> {
    const standing = this.#standing(this.published).filter(
      ({ key }) => matches(scope, key) && (after === undefined || text(key) > text(after)),
    );
    return Math.min(max, standing.length);
  }

  async changes(type: LogType, { after, upTo }: Range, isWanted: (key: Key) => boolean): Promise<LogChunk> {
    if (after < this.compacted) throw new Refused(expired(`too old resource version: ${after} (${this.compacted})`));
    const rows = this.#within({ after, upTo });
    const end = rows[this.rowsMax - 1]?.revision ?? upTo;
    const changes = rows.filter(
      ({ key, revision }) => revision <= end && matches({ ...type, shard: '*', cluster: '*' }, key) && isWanted(key),
    );
    await this.between();
    return { changes, upTo: end };
  }

  everyChange(): AsyncIterable<LogChunk> {
    throw new Error('no link reads this');
  }

  hasSeveral(scope: Scope, revision: Revision): boolean {
    return this.#within({ after: revision - 1, upTo: revision }).filter(({ key }) => matches(scope, key)).length > 1;
  }

  remembers(): boolean {
    return true;
  }

  async *touched(scope: Scope, { after, upTo }: { after: Revision; upTo: Revision }): AsyncGenerator<readonly Touch[]> {
    const changes = this.#within({ after, upTo }).filter(({ key }) => matches(scope, key));
    yield changes
      .toReversed()
      .map((change) => ({ key: change.key, kind: change.kind, object: () => (change.kind === 'put' ? change.object : undefined) }));
    await this.between();
  }

  subscribe(listener: (commit: Commit) => void): Subscription {
    this.#listeners.add(listener);
    return { cancel: () => this.#listeners.delete(listener) };
  }

  #within({ after, upTo }: Range): readonly Change[] {
    return this.#changes.slice(this.#end(after), this.#end(upTo));
  }

  /** The index after the last change of a revision. */
  #end(revision: Revision): number {
    let [low, high] = [0, this.#changes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#changes[middle]!.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #append(step: Step, revision: Revision): Change {
    const key = aKey('put' in step ? step.put : step.delete);
    const before = this.#at(key, revision - 1);
    const previous = (): StoredObject | undefined => before;
    const resourceVersion = this.format(revision);
    if (!('put' in step) && before === undefined) throw new Error('nothing to delete');
    const change: Change =
      'put' in step
        ? {
            kind: 'put',
            key,
            revision,
            object: { key, revision, resourceVersion, body: aBody(key, step) },
            created: before === undefined,
            previous,
          }
        : { kind: 'delete', key, revision, resourceVersion, previous };
    this.#changes.push(change);
    return change;
  }

  #at(key: Key, revision: Revision): StoredObject | undefined {
    const last = this.#changes.slice(0, this.#end(revision)).findLast((change) => text(change.key) === text(key));
    return last?.kind === 'put' ? last.object : undefined;
  }

  /** The objects at a revision, in key order. */
  #standing(revision: Revision): readonly StoredObject[] {
    const keys = new Map(this.#changes.slice(0, this.#end(revision)).map(({ key }) => [text(key), key]));
    const objects = [...keys.values()].map((key) => this.#at(key, revision)).filter((object) => object !== undefined);
    return objects.toSorted((a, b) => (text(a.key) < text(b.key) ? -1 : 1));
  }

  /**
   * As in the real store, a page reads rows of the type, so it may be empty and not be the last.
   */
  async #page({ scope, revision, after }: { scope: Scope; revision: Revision; after: Key | undefined }): Promise<SnapshotPage> {
    this.pagesRead += 1;
    if (revision < this.compacted) throw new Refused(expired(`revision ${revision} is compacted (${this.compacted})`));
    await this.between();
    const behind = this.#standing(revision).filter(({ key }) => after === undefined || text(key) > text(after));
    const rows = behind.slice(0, this.rowsMax);
    return { objects: rows.filter(({ key }) => matches(scope, key)), next: behind.length > this.rowsMax ? rows.at(-1)?.key : undefined };
  }
}

function text({ resource, shard, cluster, namespace, name }: Key): string {
  return [resource.group, resource.resource, resource.identity, shard, cluster, namespace, name].join('|');
}
