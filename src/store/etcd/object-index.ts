/**
 * Which objects there are, and the revision of each: all keys, in etcd's order, without their bodies. Bound: what etcd holds; some 200 bytes for an
 * object beside its texts.
 */
import { compareUtf8, OrderedMap } from './ordered-map.js';
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import type { Digest } from '../../domain/digest.js';
import type { Key } from '../../domain/key.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { ShardName } from '../../domain/shard.js';

/** `bytes`: of its body. `path`: the canonical path that it names. */
export type IndexedObject = Readonly<{ key: Key; revision: Revision; bytes: number; digest: Digest; path: CanonicalPath | undefined }>;

type TypeIndex = Readonly<{
  resource: Resource;
  objects: OrderedMap<IndexedObject>;
  /** How many of them each shard has; never 0. */
  shards: Map<ShardName, number>;
}>;

export class ObjectIndex {
  /** By the texts of the types. */
  readonly #types = new OrderedMap<TypeIndex>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Resources that have objects. */
  get resources(): readonly Resource[] {
    return [...this.#types.entries()].map(([, { resource }]) => resource);
  }

  *all(): Iterable<IndexedObject> {
    for (const [, { objects }] of this.#types.entries()) for (const [, object] of objects.entries()) yield object;
  }

  get(key: Key): IndexedObject | undefined {
    return this.#types.get(formatResource(key.resource))?.objects.get(placeText(key));
  }

  set(object: IndexedObject): void {
    const { resource, shard } = object.key;
    const type = formatResource(resource);
    const known = this.#types.get(type) ?? { resource, objects: new OrderedMap<IndexedObject>(), shards: new Map<ShardName, number>() };
    const before = known.objects.size;
    known.objects.set(placeText(object.key), object);
    if (before === 0) this.#types.set(type, known);
    if (known.objects.size === before) return;
    this.#size += 1;
    known.shards.set(shard, (known.shards.get(shard) ?? 0) + 1);
  }

  delete({ resource, shard, ...place }: Key): void {
    const type = formatResource(resource);
    const known = this.#types.get(type);
    if (known?.objects.delete(placeText({ shard, ...place })) !== true) return;
    this.#size -= 1;
    const left = (known.shards.get(shard) ?? 0) - 1;
    if (left > 0) known.shards.set(shard, left);
    else known.shards.delete(shard);
    if (known.objects.size === 0) this.#types.delete(type);
  }

  /** The objects of one place, on whichever shards of the scope have one. The scope names cluster, namespace and name. */
  at({ cluster, namespace, name, ...scope }: Scope): readonly IndexedObject[] {
    if (cluster === '*' || namespace === undefined || name === undefined) throw new Error('a place names cluster, namespace and name');
    return this.#of(scope).flatMap(({ objects, shards }) => {
      const onShards = scope.shard === '*' ? [...shards.keys()] : [scope.shard];
      return onShards.flatMap((shard) => objects.get(placeText({ shard, cluster, namespace, name })) ?? []);
    });
  }

  /**
   * The objects of the scope behind `after`, or all of them; by their types, then by their keys. It looks at those of the scope's shard and logical
   * cluster alone.
   */
  *walk(scope: Scope, after?: Key): Iterable<IndexedObject> {
    for (const object of this.look(scope, after)) if (matches(scope, object.key)) yield object;
  }

  /** Everything that `walk` looks at. */
  *look(scope: Scope, after?: Key): Iterable<IndexedObject> {
    const from = after && formatResource(after.resource);
    for (const type of this.#of(scope)) {
      const text = formatResource(type.resource);
      if (from !== undefined && compareUtf8(text, from) < 0) continue;
      const behind = after !== undefined && text === from ? placeText(after) : '';
      for (const start of startsOf(scope, type)) {
        for (const [place, object] of type.objects.entries(compareUtf8(behind, start) > 0 ? behind : start)) {
          if (!place.startsWith(start)) break;
          yield object;
        }
      }
    }
  }

  /** Every object of a logical cluster on a shard. */
  *inCluster({ shard, cluster }: Readonly<{ shard: ShardName; cluster: ClusterName }>): Iterable<IndexedObject> {
    for (const [, { resource, shards }] of this.#types.entries()) if (shards.has(shard)) yield* this.look({ ...resource, shard, cluster });
  }

  #of({ group, resource, identity }: Pick<Scope, 'group' | 'resource' | 'identity'>): readonly TypeIndex[] {
    if (identity !== '*') return [this.#types.get(formatResource({ group, resource, identity })) ?? []].flat();
    const found: TypeIndex[] = [];
    const start = formatResource({ group, resource, identity: '' });
    for (const [text, type] of this.#types.entries()) if (text.startsWith(start)) found.push(type);
    return found;
  }
}

/** What the places of a scope begin with, in their order. */
function startsOf({ shard, cluster }: Scope, { shards }: TypeIndex): readonly string[] {
  if (shard !== '*') return [cluster === '*' ? `${shard}/` : `${shard}/${cluster}/`];
  return cluster === '*' ? [''] : [...shards.keys()].map((each) => `${each}/${cluster}/`).toSorted(compareUtf8);
}

/** Orders two keys of one type or of several as `walk` does. */
export function compareKeys(one: Key, other: Key): number {
  return compareUtf8(formatResource(one.resource), formatResource(other.resource)) || compareUtf8(placeText(one), placeText(other));
}

/** What follows the type in etcd's key (object-keys.ts). */
function placeText({ shard, cluster, namespace, name }: Omit<Key, 'resource'>): string {
  // Joined, a text is whole; added up, V8 keeps it as a tree of its parts.
  return (namespace === '' ? [shard, cluster, name] : [shard, cluster, namespace, name]).join('/');
}
