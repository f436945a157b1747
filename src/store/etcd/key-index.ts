/**
 * An index from keys to values, in etcd's order. One index holds the objects that exist, another
 * the keys that have changed. A read can start at any key.
 *
 * Bound: set by the owner. A key takes some 200 bytes beside its texts.
 */
import { OrderedMap } from './ordered-map.js';
import type { ClusterName } from '../../domain/cluster.js';
import type { Key } from '../../domain/key.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { Scope } from '../../domain/scope.js';
import type { ShardName } from '../../domain/shard.js';
import { compareUtf8 } from '../../domain/syntax/version-order.js';

type TypeEntries<Value> = Readonly<{
  resource: Resource;
  values: OrderedMap<Value>;
  /** The number of values of each shard that has any. */
  shards: Map<ShardName, number>;
}>;

type Entry<Value> = Readonly<{ type: string; place: string; value: Value }>;

export class KeyIndex<Value extends Readonly<{ key: Key }>> {
  /** Keyed by the text of the type (`formatResource`). */
  readonly #types = new OrderedMap<TypeEntries<Value>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get resources(): readonly Resource[] {
    return [...this.#types.entries()].map(([, { resource }]) => resource);
  }

  get(key: Key): Value | undefined {
    return this.#types.get(formatResource(key.resource))?.values.get(placeText(key));
  }

  set(value: Value): void {
    const { resource, shard } = value.key;
    const type = formatResource(resource);
    const known = this.#types.get(type) ?? { resource, values: new OrderedMap<Value>(), shards: new Map<ShardName, number>() };
    const before = known.values.size;
    known.values.set(placeText(value.key), value);
    if (before === 0) this.#types.set(type, known);
    if (known.values.size === before) return;
    this.#size += 1;
    known.shards.set(shard, (known.shards.get(shard) ?? 0) + 1);
  }

  delete({ resource, shard, ...place }: Key): void {
    const type = formatResource(resource);
    const known = this.#types.get(type);
    if (known?.values.delete(placeText({ shard, ...place })) !== true) return;
    this.#size -= 1;
    const left = (known.shards.get(shard) ?? 0) - 1;
    if (left > 0) known.shards.set(shard, left);
    else known.shards.delete(shard);
    if (known.values.size === 0) this.#types.delete(type);
  }

  /**
   * The values at one place on the scope's shards. The scope must name logical cluster, namespace
   * and name.
   */
  valuesAt({ cluster, namespace, name, ...scope }: Scope): readonly Value[] {
    if (cluster === '*' || namespace === undefined || name === undefined) throw new Error('a place names cluster, namespace and name');
    return this.#of(scope).flatMap(({ values, shards }) => {
      const onShards = scope.shard === '*' ? [...shards.keys()] : [scope.shard];
      return onShards.flatMap((shard) => values.get(placeText({ shard, cluster, namespace, name })) ?? []);
    });
  }

  /**
   * The values of the scope behind `after`, or all: by type, then by key. Ignores the scope's
   * namespace and name.
   */
  *scan(scope: Scope, after?: Key): Iterable<Value> {
    for (const { value } of this.#entries(scope, after)) yield value;
  }

  /** Like `scan`, but merges two indexes by key: both values of each key. */
  *scanWith<Other extends Readonly<{ key: Key }>>(
    other: KeyIndex<Other>,
    scope: Scope,
    after?: Key,
  ): Iterable<readonly [Value | undefined, Other | undefined]> {
    const [ours, theirs] = [this.#entries(scope, after), other.#entries(scope, after)];
    let [one, two] = [ours.next().value, theirs.next().value];
    while (one !== undefined || two !== undefined) {
      const order = one === undefined ? 1 : two === undefined ? -1 : compare(one, two);
      yield [order <= 0 ? one?.value : undefined, order >= 0 ? two?.value : undefined];
      if (order <= 0) one = ours.next().value;
      if (order >= 0) two = theirs.next().value;
    }
  }

  *inCluster({ shard, cluster }: Readonly<{ shard: ShardName; cluster: ClusterName }>): Iterable<Value> {
    for (const [, { resource, shards }] of this.#types.entries()) if (shards.has(shard)) yield* this.scan({ ...resource, shard, cluster });
  }

  *#entries(scope: Scope, after: Key | undefined): Generator<Entry<Value>, undefined> {
    const from = after && formatResource(after.resource);
    for (const known of this.#of(scope)) {
      const type = formatResource(known.resource);
      if (from !== undefined && compareUtf8(type, from) < 0) continue;
      const behind = after !== undefined && type === from ? placeText(after) : '';
      for (const start of startsOf(scope, known.shards)) {
        for (const [place, value] of known.values.entries(compareUtf8(behind, start) > 0 ? behind : start)) {
          if (!place.startsWith(start)) break;
          yield { type, place, value };
        }
      }
    }
    return undefined;
  }

  #of({ group, resource, identity }: Pick<Scope, 'group' | 'resource' | 'identity'>): readonly TypeEntries<Value>[] {
    if (identity !== '*') return [this.#types.get(formatResource({ group, resource, identity })) ?? []].flat();
    const found: TypeEntries<Value>[] = [];
    const start = formatResource({ group, resource, identity: '' });
    for (const [text, type] of this.#types.entries()) if (text.startsWith(start)) found.push(type);
    return found;
  }
}

/** The prefixes of the scope's places, in order. */
function startsOf({ shard, cluster }: Scope, shards: ReadonlyMap<ShardName, number>): readonly string[] {
  if (shard !== '*') return [cluster === '*' ? `${shard}/` : `${shard}/${cluster}/`];
  return cluster === '*' ? [''] : [...shards.keys()].map((each) => `${each}/${cluster}/`).toSorted(compareUtf8);
}

function compare(one: Entry<unknown>, two: Entry<unknown>): number {
  return compareUtf8(one.type, two.type) || compareUtf8(one.place, two.place);
}

/** The part of etcd's key behind the type (object-keys.ts). */
function placeText({ shard, cluster, namespace, name }: Omit<Key, 'resource'>): string {
  // `join` makes a flat string; with `+`, V8 would keep a tree of the parts.
  return (namespace === '' ? [shard, cluster, name] : [shard, cluster, namespace, name]).join('/');
}
