/**
 * What one direction of one link lets through: an object crosses if the policies of both ends let it. Both ends compute the same.
 *
 * E1 Whoever needs a type to read objects gets it: a rule that names a type which is not built in lets the ClusterCachedResources
 *    through that declare it, of the same shards, however narrow it is otherwise. '*' names no type.
 * E2 `covers` and `isWhole` never contradict `lets`; they need no look at objects.
 * E3 The hash of a slice depends on what crosses of it, and on no more: rules for other types or shards, the order of rules, and those that
 *    another one makes superfluous do not change it.
 * Bound: results for `rememberedMax` slices and shards are remembered; then all are forgotten.
 */
import { createHash } from 'node:crypto';
import { kcpTypes } from '../domain/catalogue-kcp.js';
import { declaring } from '../domain/declaration.js';
import type { LinkPolicy, LinkRule } from '../domain/link-policy.js';
import type { StoredObject } from '../domain/object.js';
import { pathTypes } from '../domain/path-entry.js';
import { formatGroupResource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice, isSameSlice, type Slice } from '../domain/slice.js';
import { Predicate, type KnownPath } from './predicate.js';
import { TypeSet } from './type-set.js';

const rememberedMax = 100_000;
const hashBytes = 12;
/** Remembers a pure function: rules without `shards` in an accept policy share one list (link-policies.ts). */
const shardSets = new WeakMap<readonly ShardName[], ReadonlySet<ShardName>>();
const builtIn: ReadonlySet<string> = new Set([...kcpTypes, ...pathTypes].map(formatGroupResource));

/** A rule, or what it implies. `shards` undefined: all. */
type Grant = Readonly<{ types: TypeSet; shards: ReadonlySet<ShardName> | undefined; predicate: Predicate }>;

/** What crosses of a slice: what each of `ends` lets through by any of its predicates. An end that lets all of it through is left out. */
type SliceFilter = Readonly<{ covered: boolean; ends: readonly (readonly Predicate[])[]; asksPath: boolean; hash: string }>;

export class LinkFilter {
  readonly #ends: readonly (readonly Grant[])[];
  readonly #sliceFilters = new Map<string, SliceFilter>();
  /** By which rules of each end are for them. */
  readonly #kinds = new Map<string, SliceFilter>();
  readonly #shards = new Map<ShardName, boolean>();
  readonly #pairs = new Map<Grant, Map<Grant, boolean>>();
  readonly #asksPaths: boolean;
  #last: Readonly<{ slice: Slice; sliceFilter: SliceFilter }> | undefined;

  constructor(own: LinkPolicy, other: LinkPolicy) {
    this.#ends = [own, other].map((policy) => policy.flatMap(grantsOf));
    this.#asksPaths = this.#ends.flat().some(({ predicate }) => predicate.asksPath);
  }

  /** Whether some object of the slice could cross. */
  covers(slice: Slice): boolean {
    return this.#sliceFilter(slice).covered;
  }

  /** Whether some object of some type of the shard could cross. */
  coversShard(shard: ShardName): boolean {
    return remembered(this.#shards, shard, () => {
      const [own = [], other = []] = this.#ends.map((grants) => grants.filter(({ shards }) => shards?.has(shard) !== false));
      return own.some((one) => other.some((another) => this.#meet(one, another)));
    });
  }

  /** Whether every object of the slice crosses, whatever it is. */
  isWhole(slice: Slice): boolean {
    const { covered, ends } = this.#sliceFilter(slice);
    return covered && ends.length === 0;
  }

  /** Whether for some object the canonical path may decide if it crosses. */
  get asksPaths(): boolean {
    return this.#asksPaths;
  }

  /** Whether for some object of the slice the canonical path may decide. */
  asksPath(slice: Slice): boolean {
    return this.#sliceFilter(slice).asksPath;
  }

  /** `path`: of the object's logical cluster on its shard; the object's own annotation comes first. */
  lets(object: Pick<StoredObject, 'key' | 'body'>, path: KnownPath): boolean {
    const { covered, ends } = this.#sliceFilter(object.key);
    return covered && ends.every((predicates) => predicates.some((predicate) => predicate.lets(object, path)));
  }

  /** A short text, never ''; the same for all slices of which nothing crosses. */
  hashOf(slice: Slice): string {
    return this.#sliceFilter(slice).hash;
  }

  /** Whether two rules have a type in common. Two implied ones may have no declaration in common. */
  #meet(one: Grant, other: Grant): boolean {
    if (one.predicate.declares !== undefined && other.predicate.declares !== undefined) return false;
    const known = this.#pairs.get(one) ?? new Map<Grant, boolean>();
    this.#pairs.set(one, known);
    return remembered(known, other, () => one.types.meets(other.types));
  }

  /** Objects usually come slice by slice, so most of them need not even the slice's text. */
  #sliceFilter(slice: Slice): SliceFilter {
    if (this.#last !== undefined && isSameSlice(this.#last.slice, slice)) return this.#last.sliceFilter;
    const sliceFilter = remembered(this.#sliceFilters, formatSlice(slice), () => this.#kindOf(slice));
    this.#last = { slice: { shard: slice.shard, resource: slice.resource }, sliceFilter };
    return sliceFilter;
  }

  /** Many thousand slices have few kinds, and rules may have long texts. */
  #kindOf({ shard, resource }: Slice): SliceFilter {
    const isFor = ({ types, shards }: Grant): boolean => shards?.has(shard) !== false && types.has(resource);
    const rules = this.#ends.map((grants) => grants.flatMap((grant, at) => (isFor(grant) ? [at] : [])));
    return remembered(this.#kinds, rules.join(';'), () =>
      sliceFilterOf(rules.map((ofEnd, end) => predicatesOf(ofEnd.map((at) => this.#ends[end]![at]!)))),
    );
  }
}

function grantsOf(rule: LinkRule): readonly Grant[] {
  const { types } = rule;
  const shards = rule.shards === undefined || rule.shards === '*' ? undefined : setOf(rule.shards);
  const declared = types?.filter((type) => !builtIn.has(formatGroupResource(type))) ?? [];
  const grant = { types: TypeSet.of(types), shards, predicate: Predicate.of(rule) };
  if (declared.length === 0) return [grant];
  return [grant, { types: TypeSet.of([{ ...declaring, identity: undefined }]), shards, predicate: Predicate.declaring(declared) }];
}

function setOf(shards: readonly ShardName[]): ReadonlySet<ShardName> {
  const set = shardSets.get(shards) ?? new Set(shards);
  shardSets.set(shards, set);
  return set;
}

/** By their texts, in order. One that lets everything through makes the others superfluous. */
function predicatesOf(grants: readonly Grant[]): ReadonlyMap<string, Predicate> {
  const byText = new Map(grants.map(({ predicate }) => [predicate.text, predicate]));
  const everything = byText.get('');
  if (everything !== undefined) return new Map([['', everything]]);
  return new Map([...byText].toSorted(([left], [right]) => (left < right ? -1 : 1)));
}

function sliceFilterOf(ends: readonly ReadonlyMap<string, Predicate>[]): SliceFilter {
  const covered = ends.every((predicates) => predicates.size > 0) && meet(ends.map(declaredBy));
  const predicate = covered ? ends.filter((predicates) => !predicates.has('')) : [];
  // Both ends with the same rules are as good as one, and their order does not matter.
  const byText = new Map(predicate.map((predicates) => [JSON.stringify([...predicates.keys()]), [...predicates.values()]]));
  return {
    covered,
    ends: [...byText.values()],
    asksPath: [...byText.values()].flat().some(({ asksPath }) => asksPath),
    hash: hash(JSON.stringify([covered, ...[...byText.keys()].toSorted()])),
  };
}

/** The types whose declarations these let through; undefined when they let other objects through as well. */
function declaredBy(predicates: ReadonlyMap<string, Predicate>): TypeSet | undefined {
  const declared = [...predicates.values()].map(({ declares }) => declares);
  const known = declared.filter((types) => types !== undefined);
  return known.length === declared.length ? TypeSet.union(known) : undefined;
}

function meet([own, other]: readonly (TypeSet | undefined)[]): boolean {
  return own === undefined || other === undefined || own.meets(other);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest().subarray(0, hashBytes).toString('base64url');
}

function remembered<Name, Value>(known: Map<Name, Value>, name: Name, find: () => Value): Value {
  const before = known.get(name);
  if (before !== undefined) return before;
  if (known.size >= rememberedMax) known.clear();
  const found = find();
  known.set(name, found);
  return found;
}
