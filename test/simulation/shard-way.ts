/**
 * The objects of a shard that reach a cache, because every policy on the way lets them through.
 * While paths or declarations change, only bounds are known: what may have come, and what must
 * have.
 *
 * Assumes that objects which name the path of a logical cluster pass everywhere, as the policies of
 * scripts allow.
 */
import { addDigest, emptyDigest, formatDigest, type Digest } from '../../src/domain/slices/digest.js';
import type { Key } from '../../src/domain/key.js';
import { formatResource } from '../../src/domain/resource.js';
import { formatSlice } from '../../src/domain/slice.js';
import { declaredBy, matchesRule, metadataOf, pathAnnotation, pathsIn, type ModelObject } from './model-rule.js';
import type { ModelCache } from './model-tree.js';
import { endsOf } from './model-way.js';
import type { ShardTruth } from './shard-truth.js';
import type { SimWorld } from './sim-world.js';

type Paths = ReadonlyMap<string, string>;
type Hop = (object: ModelObject, paths: Paths) => boolean;

export class ShardWay {
  readonly #truth: ShardTruth;
  readonly #hops: readonly Hop[];

  constructor(truth: ShardTruth, caches: readonly ModelCache[]) {
    this.#truth = truth;
    this.#hops = caches.slice(1).map((to, at): Hop => {
      const from = caches[at] ?? to;
      const ends = endsOf(from, to);
      return (object, paths) => ends.every((policy) => policy.some((rule) => matchesRule(rule, object, paths)));
    });
  }

  get links(): number {
    return this.#hops.length;
  }

  /**
   * The digest of each slice that is not empty at the end of the way, once the present content of
   * the shard has arrived there.
   */
  digests(digestOf: SimWorld['digestOf']): ReadonlyMap<string, string> {
    const objects = this.#truth.objects;
    const paths = pathsIn(objects);
    const come = objects.filter((object) => this.#hops.every((hop) => hop(object, paths)));
    const declared = declaredBy(come);
    const sums = new Map<string, Digest>();
    for (const { key, body } of come) {
      if (key.resource.identity !== '' && !declared.has(formatResource(key.resource))) continue;
      const slice = formatSlice(key);
      sums.set(slice, addDigest(sums.get(slice) ?? emptyDigest, digestOf(key, body)));
    }
    return new Map([...sums].map(([slice, sum]) => [slice, formatDigest(sum)]));
  }

  /**
   * Whether the cache may hold this value for the key if it shows the shard as it was at some
   * moment since `fromMs`. `held` is undefined: the cache holds nothing.
   */
  mayHold(key: Key, held: ModelObject | undefined, fromMs: number): boolean {
    const values = this.#truth.heldSince(key, fromMs);
    const declarations = this.#declarations(key, fromMs);
    if (held === undefined) return values.some((value) => value === undefined || this.#mayStop(value, fromMs)) || declarations.mayLack;
    return declarations.mayHave && values.some((value) => value !== undefined && isSame(value, held) && this.#mayCome(value, fromMs));
  }

  #mayCome(object: ModelObject, fromMs: number): boolean {
    const paths = this.#paths(object.key, fromMs);
    return this.#hops.every((hop) => paths.some((each) => hop(object, each)));
  }

  #mayStop(object: ModelObject, fromMs: number): boolean {
    const paths = this.#paths(object.key, fromMs);
    return this.#hops.some((hop) => paths.some((each) => !hop(object, each)));
  }

  /** All paths of a logical cluster since `fromMs`. */
  #paths({ cluster }: Key, fromMs: number): readonly Paths[] {
    const received = new Set<string | undefined>();
    for (const key of this.#truth.pathKeysOf(cluster))
      for (const value of this.#truth.heldSince(key, fromMs))
        received.add(value === undefined ? undefined : metadataOf(value.body).annotations[pathAnnotation]);
    if (received.size === 0) received.add(undefined);
    return [...received].map((path) => new Map(path === undefined ? [] : [[cluster, path]]));
  }

  /**
   * Whether the type of a key may have been declared, and may have been undeclared, at the end of
   * the way at some moment since `fromMs`.
   */
  #declarations({ resource }: Key, fromMs: number): Readonly<{ mayHave: boolean; mayLack: boolean }> {
    if (resource.identity === '') return { mayHave: true, mayLack: false };
    const text = formatResource(resource);
    const declares = (value: ModelObject | undefined): value is ModelObject => value !== undefined && declaredBy([value]).has(text);
    const keys = this.#truth.declaringKeys.map((key) => this.#truth.heldSince(key, fromMs));
    const mayHave = keys.some((values) => values.some((value) => declares(value) && this.#mayCome(value, fromMs)));
    const mustHave = keys.some((values) => values.every((value) => declares(value) && !this.#mayStop(value, fromMs)));
    return { mayHave, mayLack: !mustHave };
  }
}

function isSame({ body: one }: ModelObject, { body: other }: ModelObject): boolean {
  return one.version === other.version && Buffer.compare(one.bytes, other.bytes) === 0;
}
