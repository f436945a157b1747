/**
 * The objects here that have names which are kept on copies (domain/kept-names.ts), for the status report. Read at the start, then followed: an object costs something only
 * while it has one. Bound: the objects of the listed types.
 */
import type { Change } from '../domain/change.js';
import { entryOf } from '../domain/entry-of.js';
import { keptPlaces, namesOfType, type KeptNames, type NamesOfType } from '../domain/kept-names.js';
import { formatClientKey, type Key } from '../domain/key.js';
import type { Body } from '../domain/object.js';
import type { Subscription } from '../domain/ports.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { KeptStatus } from '../domain/status.js';
import type { Commits, Objects, Revisions } from '../domain/store-port.js';
import { keptIn, type Kept } from '../json/kept-members.js';

type KeptObjectsParts = Readonly<{ objects: Pick<Objects, 'snapshot'>; revisions: Pick<Revisions, 'published'>; commits: Commits }>;

export class KeptObjects {
  readonly #names: KeptNames;
  readonly #subscription: Subscription;
  /** By the text of the slice, then of the key. */
  readonly #slices = new Map<string, Readonly<{ slice: Slice; objects: Map<string, Kept> }>>();
  /** Keys that have changed while the objects are read. */
  #changed: Set<string> | undefined = new Set();

  private constructor(names: KeptNames, commits: Commits) {
    this.#names = names;
    this.#subscription = commits.subscribe(({ changes }) => {
      for (const change of changes) this.#follow(change);
    });
  }

  static async open(names: KeptNames, { objects, revisions, commits }: KeptObjectsParts): Promise<KeptObjects> {
    const opened = new KeptObjects(names, commits);
    for (const type of names.values()) {
      const scope = { group: type.group, resource: type.resource, identity: '*', shard: '*', cluster: '*' } as const;
      for await (const page of snapshotPages(objects.snapshot(scope, revisions.published)))
        for (const { key, body } of page) if (opened.#changed?.has(textOf(key)) === false) opened.#note(key, body, type);
    }
    opened.#changed = undefined;
    return opened;
  }

  /** In the order of their slices. */
  report(): readonly KeptStatus[] {
    return [...this.#slices]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { slice, objects }]) => statusOf(slice, [...objects.values()]));
  }

  close(): void {
    this.#subscription.cancel();
  }

  #follow(change: Change): void {
    const { key } = change;
    const type = namesOfType(this.#names, key.resource);
    if (type === undefined) return;
    this.#changed?.add(textOf(key));
    this.#note(key, change.kind === 'put' ? change.object.body : undefined, type);
  }

  #note(key: Key, body: Body | undefined, type: NamesOfType): void {
    const kept = body && keptIn(body, type);
    const text = formatSlice(key);
    const { shard, resource } = key;
    if (kept !== undefined)
      entryOf(this.#slices, text, () => ({ slice: { shard, resource }, objects: new Map() })).objects.set(textOf(key), kept);
    else if (this.#slices.get(text)?.objects.delete(textOf(key)) === true && this.#slices.get(text)?.objects.size === 0)
      this.#slices.delete(text);
  }
}

function statusOf({ shard, resource: { group, resource, identity } }: Slice, objects: readonly Kept[]): KeptStatus {
  const [annotations, labels] = keptPlaces.map((place) => {
    const counts: Record<string, number> = {};
    for (const kept of objects) for (const name of Object.keys(kept[place])) counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  });
  return { shard, group, resource, identity, objects: objects.length, annotations: annotations ?? {}, labels: labels ?? {} };
}

function textOf(key: Key): string {
  return `${key.shard}|${formatClientKey(key)}`;
}
