/**
 * Decides which ClusterCachedResources declare types. Their number is bounded for each shard, type
 * and logical cluster; the others wait. The objects of waiting types are kept, because a type may
 * be served again.
 *
 * ClusterCachedResources of one type and one logical cluster wait as a group. While the shard is
 * not full, a group waits because its type or its logical cluster is full. While the shard is full,
 * a group may wait only because of the shard; `ready` has the type or the logical cluster of each
 * such group.
 *
 * Cost: the search for the next group of a type skips only full logical clusters; that of a logical
 * cluster, only full types. About twenty of either fill the shard, so no more can be full.
 *
 * Bound: `waitingMax` wait for each shard. Any more are forgotten until a writer sends them again,
 * or the server restarts.
 */
import { entryOf } from '../base/entry-of.js';
import { formatDeclarationKey, type Declaration, type DeclarationKey } from './declaration.js';
import { formatResource, type Resource } from '../resource.js';

export type DeclarationLimits = Readonly<{ ofShardMax: number; ofTypeMax: number; ofClusterMax: number; waitingMax: number }>;

const defaultLimits: DeclarationLimits = {
  /** Enough for one declaration in each workspace that provides a type. */
  ofShardMax: 20_000,
  /**
   * Bounded because a change reads all declarations of its type, and a request reads all
   * declarations of its logical cluster.
   */
  ofTypeMax: 1_000,
  ofClusterMax: 1_000,
  waitingMax: 20_000,
};

/**
 * `former`: the declaration that was replaced. `ended`: those that no longer declare their types.
 * `begun`: those that start to. A declaration that is written again is in both lists.
 */
export type Replaced = Readonly<{ former: Declaration | undefined; ended: readonly Declaration[]; begun: readonly Declaration[] }>;

export class DeclarationQuotas {
  readonly #limits: DeclarationLimits;
  readonly #shards = new Map<string, ShardQuotas>();
  /** The number of waiting declarations of each type, over all shards. */
  readonly #awaited = new Map<string, number>();

  constructor(limits = defaultLimits) {
    this.#limits = limits;
  }

  /**
   * Sets or clears the declaration at a place. One that declares a type keeps its share of the
   * quotas if it is written again.
   */
  replace(place: DeclarationKey, next: Declaration | undefined): Replaced {
    const quotas = this.#shards.get(place.shard) ?? new ShardQuotas(this.#limits, (type, by) => this.#count(type, by));
    const replaced = quotas.replace(formatDeclarationKey(place), next);
    if (quotas.isEmpty) this.#shards.delete(place.shard);
    else this.#shards.set(place.shard, quotas);
    return replaced;
  }

  isAwaited(resource: Resource): boolean {
    return this.#awaited.has(formatResource(resource));
  }

  #count(type: string, by: 1 | -1): void {
    const waiting = (this.#awaited.get(type) ?? 0) + by;
    if (waiting === 0) this.#awaited.delete(type);
    else this.#awaited.set(type, waiting);
  }
}

type Entry = Readonly<{ declaration: Declaration; type: Quota; cluster: Quota; declares: boolean }>;

/**
 * The quota of a type or of a logical cluster. `waiting`: the places of waiting declarations,
 * grouped by logical cluster in the quota of a type, and by type in that of a logical cluster.
 */
type Quota = Readonly<{ name: string; max: number; waiting: Map<Quota, Set<string>> }> & { declaring: number };

class ShardQuotas {
  readonly #limits: DeclarationLimits;
  readonly #countWaiting: (type: string, by: 1 | -1) => void;
  /** By place. */
  readonly #entries = new Map<string, Entry>();
  readonly #types = new Map<string, Quota>();
  readonly #clusters = new Map<string, Quota>();
  readonly #ready = new Set<Quota>();
  #declaring = 0;

  constructor(limits: DeclarationLimits, noteWaiting: (type: string, by: 1 | -1) => void) {
    this.#limits = limits;
    this.#countWaiting = noteWaiting;
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  replace(place: string, next: Declaration | undefined): Replaced {
    const former = this.#leave(place);
    const begun = next !== undefined && this.#enter(place, next) ? [next] : [];
    if (former === undefined || !former.declares) return { former: former?.declaration, ended: [], begun };
    begun.push(...this.#admit(former));
    return { former: former.declaration, ended: [former.declaration], begun };
  }

  get #hasRoom(): boolean {
    return this.#declaring < this.#limits.ofShardMax;
  }

  /**
   * Returns whether the declaration declares its type at once. Otherwise it waits, or is forgotten.
   */
  #enter(place: string, declaration: Declaration): boolean {
    const { ofTypeMax, ofClusterMax, waitingMax } = this.#limits;
    const type = quotaOf(this.#types, formatResource(declaration), ofTypeMax);
    const cluster = quotaOf(this.#clusters, declaration.place.cluster, ofClusterMax);
    const declares = this.#hasRoom && !isFull(type) && !isFull(cluster);
    if (declares) {
      for (const quota of [type, cluster]) quota.declaring += 1;
      this.#declaring += 1;
    } else if (this.#entries.size - this.#declaring < waitingMax) {
      const group = type.waiting.get(cluster) ?? new Set();
      type.waiting.set(cluster, group.add(place));
      cluster.waiting.set(type, group);
      this.#countWaiting(type.name, 1);
      if (!isFull(type) && !isFull(cluster)) this.#ready.add(type);
    } else {
      this.#drop(type, cluster);
      return false;
    }
    this.#entries.set(place, { declaration, type, cluster, declares });
    return declares;
  }

  #leave(place: string): Entry | undefined {
    const entry = this.#entries.get(place);
    if (entry === undefined) return undefined;
    const { type, cluster, declares } = entry;
    this.#entries.delete(place);
    if (declares) {
      for (const quota of [type, cluster]) quota.declaring -= 1;
      this.#declaring -= 1;
    } else {
      const group = type.waiting.get(cluster);
      group?.delete(place);
      if (group?.size === 0) {
        type.waiting.delete(cluster);
        cluster.waiting.delete(type);
      }
      this.#countWaiting(type.name, -1);
    }
    this.#drop(type, cluster);
    return entry;
  }

  /**
   * Lets waiting declarations replace one that is gone: at most one for its type, one for its
   * cluster, and one for the shard.
   */
  #admit({ type, cluster }: Entry): readonly Declaration[] {
    const admitted: Declaration[] = [];
    const enter = (place: string | undefined): void => {
      const declaration = place === undefined ? undefined : this.#leave(place)?.declaration;
      if (place !== undefined && declaration !== undefined && this.#enter(place, declaration)) admitted.push(declaration);
    };
    for (const quota of [type, cluster]) {
      if (this.#hasRoom) enter(firstOf(quota));
      else if (quota.waiting.size > 0) this.#ready.add(quota);
    }
    for (const quota of this.#ready) {
      if (!this.#hasRoom) break;
      const first = firstOf(quota);
      if (first === undefined) this.#ready.delete(quota);
      else enter(first);
    }
    return admitted;
  }

  /** Removes quotas that no declaration uses or waits for. */
  #drop(type: Quota, cluster: Quota): void {
    if (isUnused(type)) this.#types.delete(type.name);
    if (isUnused(cluster)) this.#clusters.delete(cluster.name);
    for (const quota of [type, cluster]) if (quota.waiting.size === 0) this.#ready.delete(quota);
  }
}

function quotaOf(quotas: Map<string, Quota>, name: string, max: number): Quota {
  return entryOf(quotas, name, (): Quota => ({ name, max, waiting: new Map(), declaring: 0 }));
}

function isFull({ declaring, max }: Quota): boolean {
  return declaring >= max;
}

function isUnused({ declaring, waiting }: Quota): boolean {
  return declaring === 0 && waiting.size === 0;
}

/** The first place of the quota that waits only because the shard is full. */
function firstOf(quota: Quota): string | undefined {
  if (isFull(quota)) return undefined;
  for (const [other, [place]] of quota.waiting) if (!isFull(other)) return place;
  return undefined;
}
