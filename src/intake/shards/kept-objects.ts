/**
 * The stored objects that have kept annotations or labels (domain/kept-names.ts), for the status
 * report. Read at the start, then updated by each commit.
 *
 * Bound: the objects of the listed types that have a kept name.
 */
import type { Change } from '../../domain/change.js';
import { namesOfType, type KeptNames, type NamesOfType } from '../../domain/kept-names.js';
import { formatKey, type Key } from '../../domain/key.js';
import type { Body } from '../../domain/object.js';
import type { Subscription } from '../../domain/ports.js';
import { formatSlice } from '../../domain/slice.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import type { KeptStatus } from '../../domain/status.js';
import type { Commits, Objects, Revisions } from '../../domain/store-port.js';
import { keptIn, marksOf } from '../../json/kept-members.js';

type KeptObjectsParts = Readonly<{ objects: Pick<Objects, 'snapshot'>; revisions: Pick<Revisions, 'published'>; commits: Commits }>;

export class KeptObjects {
  readonly #subscription: Subscription;
  /** Keyed by shard and client key. */
  readonly #objects = new Map<string, Readonly<{ key: Key; names: readonly string[] }>>();
  /** Keys that commits changed during the first read; undefined after it. */
  #changed: Set<string> | undefined = new Set();

  private constructor(names: KeptNames, commits: Commits) {
    const follow = (change: Change): void => {
      const type = namesOfType(names, change.key.resource);
      if (type === undefined) return;
      this.#changed?.add(formatKey(change.key));
      this.#record(change.key, change.kind === 'put' ? change.object.body : undefined, type);
    };
    this.#subscription = commits.subscribe(({ changes }) => changes.forEach(follow));
  }

  static async open(names: KeptNames, { objects, revisions, commits }: KeptObjectsParts): Promise<KeptObjects> {
    const opened = new KeptObjects(names, commits);
    for (const type of names.values()) {
      const scope = { group: type.group, resource: type.resource, identity: '*', shard: '*', cluster: '*' } as const;
      for await (const page of snapshotPages(objects.snapshot(scope, revisions.published)))
        for (const { key, body } of page) if (opened.#changed?.has(formatKey(key)) === false) opened.#record(key, body, type);
    }
    opened.#changed = undefined;
    return opened;
  }

  report(): readonly KeptStatus[] {
    const counts = new Map<string, KeptStatus>();
    for (const { key, names } of this.#objects.values())
      for (const name of names) {
        const text = `${formatSlice(key)} ${name}`;
        const { group, resource, identity } = key.resource;
        counts.set(text, { shard: key.shard, group, resource, identity, name, objects: (counts.get(text)?.objects ?? 0) + 1 });
      }
    return [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, status]) => status);
  }

  close(): void {
    this.#subscription.cancel();
  }

  #record(key: Key, body: Body | undefined, type: NamesOfType): void {
    const kept = body && keptIn(body, type);
    if (kept === undefined) this.#objects.delete(formatKey(key));
    else this.#objects.set(formatKey(key), { key, names: marksOf(kept) });
  }
}
