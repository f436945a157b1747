/**
 * What every cache of a tree must hold once all links are up and all pushers are quiet. Written to
 * be obvious, not fast. It shares with the code under test only the names of things, the table
 * `flows` and the digest.
 *
 * A shard's claim spreads from cache to cache: always down, and up where the parent accepts any
 * object of the shard. Each cache keeps the highest claim. A cache holds the objects of a shard
 * that a pusher synced at this cache. Otherwise it holds what the link lets through from the
 * neighbour at its via.
 *
 * The model describes the end of a run. Real caches remember a claim that crossed before a policy
 * closed; this model does not. So a script that changes which shards cross must not also move these
 * shards. A logical cluster has one path, and a type one shard.
 */
import { addDigest, digestOf, emptyDigest, formatDigest, type Digest } from '../../src/domain/slices/digest.js';
import { formatResource } from '../../src/domain/resource.js';
import type { ShardName } from '../../src/domain/shard.js';
import { childNeighbour, flows, type Neighbour, type Via } from '../../src/domain/via.js';
import { formatSlice } from '../../src/domain/slice.js';
import { endsOf } from './model-way.js';
import { declaredBy, matchesRule, pathsIn, type ModelObject, type ModelRule } from './model-rule.js';

type ModelPolicy = readonly ModelRule[];

export type ModelCache = Readonly<{
  name: string;
  parent: string | undefined;
  forward: ModelPolicy;
  follow: ModelPolicy;
  /** '*' applies to all children without an entry of their own. */
  children: Readonly<Record<string, Readonly<{ accept: ModelPolicy; offer: ModelPolicy }>>>;
}>;

/**
 * A shard's pusher at a cache, with its objects, or a removal of the shard there. `origin`: the id
 * of that cache, which decides between equal terms.
 */
export type ModelClaim = Readonly<{
  shard: ShardName;
  cache: string;
  origin?: string;
  term: number;
  removed?: boolean;
  objects: readonly ModelObject[];
}>;

type Known = Readonly<{ claim: ModelClaim; via: Via }>;

export class ModelTree {
  readonly #caches: ReadonlyMap<string, ModelCache>;
  /** By cache and shard. */
  readonly #known = new Map<string, Known>();
  readonly #shards: ReadonlySet<ShardName>;
  readonly #heldAt = new Map<string, readonly ModelObject[]>();
  readonly #digests = new Map<string, ReadonlyMap<string, string>>();

  constructor(caches: readonly ModelCache[], claims: readonly ModelClaim[]) {
    this.#caches = new Map(caches.map((cache) => [cache.name, cache]));
    this.#shards = new Set(claims.map(({ shard }) => shard));
    for (const claim of claims) this.#hear(claim.cache, { claim, via: 'local' });
    while (this.#spread());
  }

  /** The neighbour or pusher from which this cache receives a shard. */
  via(cache: string, shard: ShardName): Via | undefined {
    const known = this.#known.get(`${cache} ${shard}`);
    return known?.claim.removed === true ? undefined : known?.via;
  }

  objects(cache: string): readonly ModelObject[] {
    return [...this.#shards].flatMap((shard) => this.#held(cache, shard));
  }

  /** The digest of every slice that holds something, by the slice as text; computed once. */
  digests(cache: string): ReadonlyMap<string, string> {
    return remembered(this.#digests, cache, () => {
      const sums = new Map<string, Digest>();
      for (const { key, body } of this.objects(cache))
        sums.set(formatSlice(key), addDigest(sums.get(formatSlice(key)) ?? emptyDigest, digestOf(key, body)));
      return new Map([...sums].map(([slice, sum]) => [slice, formatDigest(sum)]));
    });
  }

  #held(cache: string, shard: ShardName): readonly ModelObject[] {
    return remembered(this.#heldAt, `${cache} ${shard}`, () => this.#findHeld(cache, shard));
  }

  #findHeld(cache: string, shard: ShardName): readonly ModelObject[] {
    const known = this.#known.get(`${cache} ${shard}`);
    if (known === undefined || known.claim.removed === true) return [];
    if (known.via === 'local') return withTypes(known.claim.objects);
    const from = known.via === 'parent' ? this.#cache(cache).parent : known.via.slice('child/'.length);
    if (from === undefined || !flows(this.via(from, shard), this.#viaOf(cache, from))) return [];
    const held = this.#held(from, shard);
    const paths = pathsIn(held);
    const crosses = (object: ModelObject): boolean =>
      this.#ends(from, cache).every((policy) => policy.some((rule) => matchesRule(rule, object, paths)));
    return withTypes(held.filter(crosses));
  }

  /** Returns whether any cache learned something new. */
  #spread(): boolean {
    let isNew = false;
    for (const [name, { parent }] of this.#caches) {
      for (const [from, to] of parent === undefined ? [] : [[name, parent] as const, [parent, name] as const]) {
        for (const shard of this.#shards) {
          const known = this.#known.get(`${from} ${shard}`);
          if (known === undefined || !flows(known.via, this.#viaOf(to, from))) continue;
          if (!this.#mayClaim(from, to, shard)) continue;
          if (this.#hear(to, { claim: known.claim, via: this.#viaOf(from, to) })) isNew = true;
        }
      }
    }
    return isNew;
  }

  #hear(cache: string, heard: Known): boolean {
    const place = `${cache} ${heard.claim.shard}`;
    const known = this.#known.get(place);
    if (known !== undefined && !isAbove(heard.claim, known.claim)) return false;
    this.#known.set(place, heard);
    return true;
  }

  #mayClaim(from: string, to: string, shard: ShardName): boolean {
    const [, accepted] = this.#ends(from, to);
    return this.#cache(to).parent === from || accepted.some(({ shards }) => shards?.includes(shard) ?? true);
  }

  /** The policies of both ends of a link in this direction. */
  #ends(from: string, to: string): readonly [ModelPolicy, ModelPolicy] {
    return endsOf(this.#cache(from), this.#cache(to));
  }

  /** How `neighbour` names `cache`. */
  #viaOf(cache: string, neighbour: string): Neighbour {
    return this.#cache(neighbour).parent === cache ? 'parent' : childNeighbour(cache);
  }

  #cache(name: string): ModelCache {
    const cache = this.#caches.get(name);
    if (cache === undefined) throw new Error(`no cache is named ${name}`);
    return cache;
  }
}

function isAbove(one: ModelClaim, other: ModelClaim): boolean {
  if (one.term !== other.term) return one.term > other.term;
  if (one.removed !== other.removed) return one.removed === true;
  return (one.origin ?? '') > (other.origin ?? '');
}

/** Drops objects of a declared type that no object here declares. */
function withTypes(objects: readonly ModelObject[]): readonly ModelObject[] {
  const declared = declaredBy(objects);
  return objects.filter(({ key: { resource } }) => resource.identity === '' || declared.has(formatResource(resource)));
}

function remembered<Value>(known: Map<string, Value>, name: string, find: () => Value): Value {
  const value = known.get(name) ?? find();
  known.set(name, value);
  return value;
}
