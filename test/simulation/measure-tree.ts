/**
 * Measures one tree of caches in virtual time: it grows, is quiet, gets changes, loses a subtree
 * for a while and gets it back.
 *
 *   grow ─▶ converge ─▶ quiet for a minute ─▶ changes for some minutes
 *        ─▶ partition, changes, heal ─▶ converge
 *
 * Either every cache lets everything through, and each change crosses each link once. Or each cache
 * follows its own region. Then the root holds everything, and any other cache only the slices with
 * an origin below the same child of the root; claims of all shards still cross all links. Throws if
 * the caches do not end as the model says.
 */
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import type { Resource } from '../../src/domain/resource.js';
import type { ShardName } from '../../src/domain/shard.js';
import { Crossings } from './crossings.js';
import type { ModelCache } from './model-tree.js';
import { aSimObject, simResources } from './sim-objects.js';
import { SimPusher } from './sim-pusher.js';
import { SimTree } from './sim-tree.js';
import { SimWorld } from './sim-world.js';
import { shardName } from '../support/objects.js';

/**
 * `slices`: in all, `types` for each shard. `isByRegion`: only the root gets objects of other
 * regions.
 */
export type TreeShape = Readonly<{
  caches: number;
  depth: number;
  seed: number;
  minutes: number;
  changesPerSecond: number;
  slices: number;
  types: number;
  isByRegion: boolean;
}>;

export type Sample = Readonly<{ median: number; p99: number }>;

type BothWays = Readonly<{ up: number; down: number }>;

export type TreeFigures = Readonly<{
  caches: number;
  /** Hops from the root to the farthest cache. */
  depth: number;
  /** Sum over all caches. */
  slicesHeld: number;
  growMs: number;
  /**
   * `hopMs`: from one cache to its neighbour. `wholeMs`: from the origin of a change to the last
   * cache that the change reaches.
   */
  hopMs: Sample;
  wholeMs: Sample;
  /** Traffic of one link. */
  idleBytesPerMinute: BothWays;
  busyBytesPerMinute: BothWays;
  /** Traffic of one link that a change crosses: both ways, with acknowledgements and reports. */
  bytesPerChange: number;
  /**
   * The number of caches cut off, and how long after the healing the tree was as the model says.
   */
  cutOff: number;
  healMs: number;
  virtualHours: number;
}>;

/** Sum over all shards; each shard has at least one. */
const objectsHeld = 160;
const minuteMs = 60_000;
const partitionMs = 60_000;
const convergeMaxMs = 600_000;
/** Like a line between two regions. */
const line = { delayMs: 10, jitterMs: 5 };
const commitMs = 2;
const all = [{ types: ['*'] }];

export async function measureTree(shape: TreeShape): Promise<TreeFigures> {
  const world = new SimWorld(shape.seed, { frames: 'references' });
  const crossings = new Crossings(world.network, { remembers: false });
  const open = cachesOf(shape);
  const shards = shardsOf(shape, open, world);
  const caches = shape.isByRegion ? eachItsRegion(open, shards) : open;
  const tree = new SimTree(world, caches, { store: { commitMs } });
  const changes = new Changes({ world, tree, caches, shards, resources: resourcesOf(shape) });
  for (const { name, parent } of caches) if (parent !== undefined) world.network.set(name, parent, line);
  await tree.start();
  changes.begin();
  const growMs = await tree.converge(convergeMaxMs);

  const traffic = (): BothWays => trafficOf(world, caches);
  await world.time.advance(minuteMs);
  const quietBefore = traffic();
  await world.time.advance(minuteMs);
  const idle = minus(traffic(), quietBefore);
  const busyBefore = traffic();
  const crossedBefore = changes.crossings;
  await changes.make(shape.minutes * minuteMs, shape.changesPerSecond);
  await tree.converge(convergeMaxMs);
  const busy = minus(traffic(), busyBefore);
  const crossed = changes.crossings - crossedBefore;
  const { hopMs, wholeMs } = changes;

  const cut = caches[1];
  if (cut?.parent === undefined) throw new Error('the tree has no cache below its root');
  world.network.partition(cut.name, cut.parent);
  await changes.make(partitionMs, shape.changesPerSecond);
  world.network.heal(cut.name, cut.parent);
  const healMs = await tree.converge(convergeMaxMs);
  const wrong = [...world.faults, ...crossings.repeats, ...[...world.warnings.keys()].filter((event) => event === 'link.digest-differs')];
  if (wrong.length > 0) throw new Error(wrong.join('\n'));

  const slicesHeld = tree.caches.reduce(
    (sum, { known }) => sum + [...known.shards].flatMap(({ shard }) => [...known.slicesOf(shard)]).length,
    0,
  );
  const filters = caches.length - 1;
  return {
    caches: caches.length,
    depth: Math.max(...caches.map(({ name }) => wayUp(caches, name).length - 1)),
    slicesHeld,
    growMs,
    hopMs,
    wholeMs,
    idleBytesPerMinute: times(idle, 1 / filters),
    busyBytesPerMinute: times(busy, 1 / filters / shape.minutes),
    bytesPerChange: (busy.up + busy.down - shape.minutes * (idle.up + idle.down)) / Math.max(1, crossed),
    cutOff: caches.filter(({ name }) => wayUp(caches, name).includes(cut.name)).length,
    healMs,
    virtualHours: world.time.elapsedMs / (60 * minuteMs),
  };
}

/** The changes that were made, when each cache received them, and from which neighbour. */
class Changes {
  readonly #world: SimWorld;
  readonly #tree: SimTree;
  readonly #pushers: readonly SimPusher[];
  readonly #origins: readonly string[];
  readonly #neighbours: ReadonlyMap<string, readonly string[]>;
  /** By name of the object, then of the cache. */
  readonly #seenMs = new Map<string, Map<string, number>>();
  #made = 0;

  constructor({
    world,
    tree,
    caches,
    shards,
    resources,
  }: Readonly<{
    world: SimWorld;
    tree: SimTree;
    caches: readonly ModelCache[];
    shards: ReadonlyMap<ShardName, string>;
    resources: readonly Resource[];
  }>) {
    this.#world = world;
    this.#tree = tree;
    this.#neighbours = neighboursOf(caches);
    this.#pushers = [...shards.keys()].map((shard) => new SimPusher({ shard, process: 'process-2', resources }));
    this.#origins = [...shards.values()];
    world.observe((cache, commit) => {
      for (const { key } of commit.changes) {
        const seen = this.#seenMs.get(key.name);
        if (seen?.has(cache) === false) seen.set(cache, world.time.elapsedMs);
      }
    });
  }

  begin(): void {
    const each = Math.max(1, Math.round(objectsHeld / this.#pushers.length));
    this.#pushers.forEach((pusher, number) => {
      for (let count = 0; count < each; count += 1) pusher.put(aSimObject({ shard: pusher.shard, name: `held-${count}` }));
      this.#tree.plainWrites(pusher, this.#origins[number] ?? '');
    });
  }

  async make(forMs: number, perSecond: number): Promise<void> {
    const count = Math.round((forMs / 1_000) * perSecond);
    for (let made = 0; made < count; made += 1) {
      const pusher = this.#pushers[this.#made % this.#pushers.length];
      const name = `change-${this.#made}`;
      this.#made += 1;
      this.#seenMs.set(name, new Map());
      pusher?.put(aSimObject({ shard: pusher.shard, name }, { spec: { content: this.#made } }));
      await this.#world.time.advance(forMs / count);
    }
  }

  /** Links that changes have crossed, repeats included. */
  get crossings(): number {
    return [...this.#seenMs.values()].reduce((sum, seen) => sum + this.#hops(seen).length, 0);
  }

  get hopMs(): Sample {
    const hops = [...this.#seenMs.values()].flatMap((seen) => this.#hops(seen).map(([from, to]) => at(seen, to) - at(seen, from)));
    return sampleOf(hops);
  }

  get wholeMs(): Sample {
    return sampleOf([...this.#seenMs.values()].map((seen) => Math.max(...seen.values()) - Math.min(...seen.values())));
  }

  /** A cache got a change from the neighbour that had it first. */
  #hops(seen: ReadonlyMap<string, number>): readonly (readonly [from: string, to: string])[] {
    return [...seen].flatMap(([to, ms]) => {
      const from = this.#neighbours.get(to)?.find((neighbour) => at(seen, neighbour) < ms);
      return from === undefined ? [] : [[from, to] as const];
    });
  }
}

/** A tree of the given depth, just wide enough for so many caches. */
function cachesOf({ caches, depth }: TreeShape): readonly ModelCache[] {
  let width = 1;
  while (roomOf(width, depth) < caches) width += 1;
  return Array.from({ length: caches }, (_, number) => ({
    name: `cache-${number}`,
    parent: number === 0 ? undefined : `cache-${Math.floor((number - 1) / width)}`,
    forward: all,
    follow: all,
    children: { '*': { accept: all, offer: all } },
  }));
}

/** The cache at which each shard's pusher connects. */
function shardsOf(
  { slices, types, isByRegion }: TreeShape,
  caches: readonly ModelCache[],
  world: SimWorld,
): ReadonlyMap<ShardName, string> {
  const random = world.random('homes');
  const places = isByRegion ? caches.slice(1) : caches;
  const names = Array.from({ length: Math.max(1, Math.round(slices / types)) }, (_, number) => shardName(`shard-${number}`));
  return new Map(names.map((shard) => [shard, places[random.below(places.length)]?.name ?? '']));
}

/** The types of the slices; each gets at least one object. */
function resourcesOf({ types }: TreeShape): readonly Resource[] {
  const others = kcpTypes.filter(({ resource }) => !simResources.some((each) => each.resource === resource));
  return [...simResources, ...others.map(({ group, resource, identity }) => ({ group, resource, identity }))].slice(0, types);
}

/** A region is one child of the root and everything below it. */
function eachItsRegion(caches: readonly ModelCache[], shards: ReadonlyMap<ShardName, string>): readonly ModelCache[] {
  const regions = new Map(caches.map(({ name }) => [name, wayUp(caches, name).at(-2)]));
  return caches.map((cache) => {
    const followed = [...shards].filter(([, plainWrites]) => regions.get(plainWrites) === regions.get(cache.name)).map(([shard]) => shard);
    return { ...cache, follow: followed.length === 0 ? [] : [{ types: ['*'], shards: followed }] };
  });
}

function roomOf(width: number, depth: number): number {
  let room = 0;
  for (let level = 0; level <= depth; level += 1) room += width ** level;
  return room;
}

/** The names from a cache up to the root. */
function wayUp(caches: readonly ModelCache[], name: string): readonly string[] {
  const parents = new Map(caches.map((cache) => [cache.name, cache.parent]));
  const way: string[] = [];
  for (let at: string | undefined = name; at !== undefined; at = parents.get(at)) way.push(at);
  return way;
}

function neighboursOf(caches: readonly ModelCache[]): ReadonlyMap<string, readonly string[]> {
  const neighbours = new Map<string, string[]>(caches.map(({ name }) => [name, []]));
  for (const { name, parent } of caches) {
    if (parent === undefined) continue;
    neighbours.get(name)?.push(parent);
    neighbours.get(parent)?.push(name);
  }
  return neighbours;
}

function trafficOf({ network }: SimWorld, caches: readonly ModelCache[]): BothWays {
  let [up, down] = [0, 0];
  for (const { name, parent } of caches) {
    if (parent === undefined) continue;
    for (const { bytes } of network.traffic(name, parent).values()) up += bytes;
    for (const { bytes } of network.traffic(parent, name).values()) down += bytes;
  }
  return { up, down };
}

function at(seen: ReadonlyMap<string, number>, cache: string): number {
  return seen.get(cache) ?? Infinity;
}

function sampleOf(values: readonly number[]): Sample {
  const sorted = values.toSorted((a, b) => a - b);
  const quantile = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { median: quantile(0.5), p99: quantile(0.99) };
}

function minus(one: BothWays, other: BothWays): BothWays {
  return { up: one.up - other.up, down: one.down - other.down };
}

function times({ up, down }: BothWays, factor: number): BothWays {
  return { up: up * factor, down: down * factor };
}
