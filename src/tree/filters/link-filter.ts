/**
 * The filter of one direction of a link: an object crosses if the policies of both ends let it
 * through. Both ends compute the same filter.
 *
 * E1 A rule that names a declared type also lets through the ClusterCachedResources that declare
 *    that type, on the same shards. The rule's other conditions do not apply to them. Without these
 *    declarations no reader could read the objects. '*' names no type.
 * E2 `covers` and `letsAll` never contradict `lets`, and decide without reading objects.
 * E3 The hash of a slice depends only on which of its objects cross. It ignores the order of rules,
 *    rules for other types or shards, and rules that another rule makes superfluous.
 *
 * Bound: each cache of results has at most `rememberedMax` entries; a full one is cleared.
 */
import { createHash } from 'node:crypto';
import { kcpTypes } from '../../domain/catalogue/catalogue-kcp.js';
import { declaring } from '../../domain/catalogue/declaration.js';
import type { LinkPolicy, LinkRule } from '../../domain/link-policy.js';
import type { StoredObject } from '../../domain/object.js';
import { pathTypes } from '../../domain/path-entry.js';
import { formatGroupResource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import { formatSlice, isSameSlice, type Slice } from '../../domain/slice.js';
import { Predicate, type KnownPath } from './predicate.js';
import { TypeSet } from './type-set.js';

const rememberedMax = 100_000;
const hashBytes = 12;
/**
 * Memoizes a pure function. In an accept policy, all rules without `shards` share one list
 * (link-policies.ts).
 */
const shardSets = new WeakMap<readonly ShardName[], ReadonlySet<ShardName>>();
const builtIn: ReadonlySet<string> = new Set([...kcpTypes, ...pathTypes].map(formatGroupResource));

/** A rule, or the rule that it implies by E1. `shards` undefined: all shards. */
type Grant = Readonly<{ types: TypeSet; shards: ReadonlySet<ShardName> | undefined; predicate: Predicate }>;

/**
 * Which objects of a slice cross. An object crosses if, in each of `ends`, some predicate lets it
 * through. An end that lets the whole slice through is left out.
 */
type SliceFilter = Readonly<{ covered: boolean; ends: readonly (readonly Predicate[])[]; needsPath: boolean; hash: string }>;

export class LinkFilter {
  readonly #ends: readonly (readonly Grant[])[];
  readonly #sliceFilters = new Map<string, SliceFilter>();
  /** By the indexes of the rules that apply, at each end. */
  readonly #kinds = new Map<string, SliceFilter>();
  readonly #shards = new Map<ShardName, boolean>();
  readonly #pairs = new Map<Grant, Map<Grant, boolean>>();
  /** Whether the canonical path of some object may decide whether the object crosses. */
  readonly needsPaths: boolean;
  #last: Readonly<{ slice: Slice; sliceFilter: SliceFilter }> | undefined;

  constructor(own: LinkPolicy, other: LinkPolicy) {
    this.#ends = [own, other].map((policy) => policy.flatMap(grantsOf));
    this.needsPaths = this.#ends.flat().some(({ predicate }) => predicate.needsPath);
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

  /** Whether every object of the slice crosses. */
  letsAll(slice: Slice): boolean {
    const { covered, ends } = this.#sliceFilter(slice);
    return covered && ends.length === 0;
  }

  /** As `needsPaths`, for the objects of one slice. */
  needsPath(slice: Slice): boolean {
    return this.#sliceFilter(slice).needsPath;
  }

  /**
   * `path`: the path of the object's logical cluster on its shard. The object's own annotation
   * takes precedence.
   */
  lets(object: Pick<StoredObject, 'key' | 'body'>, path: KnownPath): boolean {
    const { covered, ends } = this.#sliceFilter(object.key);
    return covered && ends.every((predicates) => predicates.some((predicate) => predicate.lets(object, path)));
  }

  /** A short text, never ''. It is the same for all slices of which nothing crosses. */
  hashOf(slice: Slice): string {
    return this.#sliceFilter(slice).hash;
  }

  /**
   * Whether both grants have some type in common. Two implied rules count as disjoint: if they
   * share a declared type, so do the rules that imply them.
   */
  #meet(one: Grant, other: Grant): boolean {
    if (one.predicate.declares !== undefined && other.predicate.declares !== undefined) return false;
    const known = this.#pairs.get(one) ?? new Map<Grant, boolean>();
    this.#pairs.set(one, known);
    return remembered(known, other, () => one.types.meets(other.types));
  }

  /**
   * Keeps the last result: objects usually arrive slice by slice, so most calls need not format the
   * slice.
   */
  #sliceFilter(slice: Slice): SliceFilter {
    if (this.#last !== undefined && isSameSlice(this.#last.slice, slice)) return this.#last.sliceFilter;
    const sliceFilter = remembered(this.#sliceFilters, formatSlice(slice), () => this.#kindOf(slice));
    this.#last = { slice: { shard: slice.shard, resource: slice.resource }, sliceFilter };
    return sliceFilter;
  }

  /**
   * Thousands of slices share a few sets of rules, so results are cached by the indexes of the
   * rules. The texts of rules may be long.
   */
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
  const grant = { types: TypeSet.of(types), shards, predicate: new Predicate(rule) };
  if (declared.length === 0) return [grant];
  return [grant, { types: TypeSet.of([{ ...declaring, identity: undefined }]), shards, predicate: Predicate.declaring(declared) }];
}

function setOf(shards: readonly ShardName[]): ReadonlySet<ShardName> {
  const set = shardSets.get(shards) ?? new Set(shards);
  shardSets.set(shards, set);
  return set;
}

/** By text, sorted. A predicate that lets everything through makes the others superfluous. */
function predicatesOf(grants: readonly Grant[]): ReadonlyMap<string, Predicate> {
  const byText = new Map(grants.map(({ predicate }) => [predicate.text, predicate]));
  const everything = byText.get('');
  if (everything !== undefined) return new Map([['', everything]]);
  return new Map([...byText].toSorted(([left], [right]) => (left < right ? -1 : 1)));
}

function sliceFilterOf(ends: readonly ReadonlyMap<string, Predicate>[]): SliceFilter {
  const covered = ends.every((predicates) => predicates.size > 0) && meet(ends.map(declaredBy));
  const predicate = covered ? ends.filter((predicates) => !predicates.has('')) : [];
  // Two ends with equal predicates count once, and the order of the ends does not matter.
  const byText = new Map(predicate.map((predicates) => [JSON.stringify([...predicates.keys()]), [...predicates.values()]]));
  return {
    covered,
    ends: [...byText.values()],
    needsPath: [...byText.values()].flat().some(({ needsPath }) => needsPath),
    hash: hash(JSON.stringify([covered, ...[...byText.keys()].toSorted()])),
  };
}

/**
 * The types whose declarations the predicates let through. Undefined if a predicate also lets other
 * objects through.
 */
function declaredBy(predicates: ReadonlyMap<string, Predicate>): TypeSet | undefined {
  const declared = [...predicates.values()].map(({ declares }) => declares);
  const known = declared.filter((types) => types !== undefined);
  return known.length === declared.length ? TypeSet.of(known.flat()) : undefined;
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
