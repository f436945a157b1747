/**
 * Compares what the caches report about themselves with the truth of the shards, at any moment of a
 * run.
 *
 *   freshness  A cache that reports a slice as connected, whole and so far behind holds each key
 *              as it was at that moment, less a bound (freshness-bound.ts), or later.
 *   absence    A look-up that proves an absence, by the type's `whole`, is wrong if a shard held
 *              the object for longer than the reported lag and that bound, and every policy on the
 *              way lets the object through.
 *
 * A later process of a shard reads the same shard, so a cache is compared with the latest process.
 * Plain writers report nothing and are not checked. A slice is not checked if a policy, a parent or
 * the cache of its pusher changed within that time.
 *
 * Cost: one comparison of digests for each cache and slice, as long as the cache holds what the
 * shard holds.
 */
import type { Resource } from '../../src/domain/resource.js';
import { snapshotPages } from '../../src/domain/snapshot-pages.js';
import { formatSlice } from '../../src/domain/slice.js';
import type { ShardStatus, SliceStatus } from '../../src/domain/status.js';
import type { Key } from '../../src/domain/key.js';
import { freshnessBoundMs } from './freshness-bound.js';
import { textOfKey, type ModelObject } from './model-rule.js';
import type { ModelCache } from './model-tree.js';
import { wayBetween } from './model-way.js';
import { ShardWay } from './shard-way.js';
import type { SimCache } from './sim-cache.js';
import type { SimPusher } from './sim-pusher.js';
import type { SettledPusher, SimTree } from './sim-tree.js';
import type { SimWorld } from './sim-world.js';

export type LieKind = 'freshness' | 'absence';

/**
 * `pass` checks the caches at these times after its beginning, and at its end. The next call of
 * `pass` checks the effect of a step that takes no time.
 */
const looksMs = [0, 1_000, 4_000, 9_000, 12_000, 16_000, 25_000, 60_000];
const liesMax = 20;
/**
 * A cache that resumes after a pause still has to read what arrived meanwhile; until then its peers
 * look silent to it.
 */
const unreadMs = 1_000;

/** The way from a pusher's shard to a cache; valid until a part of it changes. */
type Known = Readonly<{
  caches: readonly ModelCache[];
  way: ShardWay;
  changedMs: number;
  version: number;
  digests: ReadonlyMap<string, string>;
}>;

export class FreshnessCheck {
  readonly #world: SimWorld;
  readonly #tree: SimTree;
  readonly #bound: Readonly<{ mayBeSilent: boolean }>;
  readonly #known = new Map<string, Known>();
  readonly #lies: Readonly<Record<LieKind, string[]>> = { freshness: [], absence: [] };
  readonly #counts: Record<LieKind, number> = { freshness: 0, absence: 0 };

  /** `mayBeSilent`: see freshness-bound.ts. */
  constructor(world: SimWorld, tree: SimTree, bound: Readonly<{ mayBeSilent: boolean }> = { mayBeSilent: false }) {
    this.#world = world;
    this.#tree = tree;
    this.#bound = bound;
  }

  /** Descriptions of the first `liesMax` lies. */
  lies(kind: LieKind): readonly string[] {
    return this.#lies[kind];
  }

  /** All lies found; each check counts a lie that persists again. */
  count(kind: LieKind): number {
    return this.#counts[kind];
  }

  /** Advances time and checks the caches meanwhile. */
  async pass(ms: number): Promise<void> {
    const { time } = this.#world;
    let passedMs = 0;
    for (const atMs of [...looksMs.filter((atMs) => atMs < ms), ms]) {
      await time.advance(atMs - passedMs);
      await this.look();
      passedMs = atMs;
    }
  }

  async look(): Promise<void> {
    const models = new Map(this.#tree.caches.map(({ name, model }) => [name, model]));
    for (const cache of this.#tree.caches) if (cache.isAnswering) await this.#lookAt(cache, models);
  }

  async #lookAt(cache: SimCache, models: ReadonlyMap<string, ModelCache>): Promise<void> {
    const latest = this.#tree.latestPushers;
    if (!latest.some((settled) => this.#differs(cache, this.#knownOf(settled, cache, models)?.digests, settled.pusher))) return;
    const report = await cache.report();
    for (const status of report.shards) await this.#checkShard(cache, status, models);
    await this.#checkAbsence(cache, models);
  }

  /** Whether the cache's copy of a shard differs from what it must hold at this moment. */
  #differs(cache: SimCache, right: ReadonlyMap<string, string> | undefined, { shard, truth }: SimPusher): boolean {
    if (right === undefined) return false;
    for (const slice of truth.slices) if (right.get(slice) !== cache.digests.get(slice)) return true;
    for (const slice of cache.digests.keys()) if (slice.startsWith(`${shard}|`) && !right.has(slice)) return true;
    return false;
  }

  async #checkShard(cache: SimCache, status: ShardStatus, models: ReadonlyMap<string, ModelCache>): Promise<void> {
    const { shard, removed, connection, slices } = status;
    if (removed || connection.kind !== 'connected') return;
    const settled = this.#tree.pushers.find(({ pusher }) => pusher.shard === shard && pusher.process === cache.known.shard(shard)?.process);
    if (settled === undefined) return;
    const known = this.#knownOf(settled, cache, models);
    if (known === undefined) return;
    for (const slice of slices) {
      const fromMs = this.#sinceMs(known, slice.lagMs ?? 0);
      if (!saysCurrent(slice) || fromMs < settled.pusher.truth.sinceMs || fromMs < known.changedMs) continue;
      const name = formatSlice({ shard, resource: slice });
      if (known.digests.get(name) === cache.digests.get(name)) continue;
      await this.#checkSlice(cache, { settled, known, fromMs, slice });
    }
  }

  async #checkSlice(
    cache: SimCache,
    { settled, known, fromMs, slice }: Readonly<{ settled: SettledPusher; known: Known; fromMs: number; slice: SliceStatus }>,
  ): Promise<void> {
    const { shard, truth } = settled.pusher;
    const name = formatSlice({ shard, resource: slice });
    const held = await heldBy(cache, settled.pusher, slice);
    const keys = new Map<string, Key>([...truth.keysOf(name), ...[...held].map(([text, { key }]): [string, Key] => [text, key])]);
    for (const [text, key] of keys) {
      const object = held.get(text);
      if (known.way.mayHold(key, object, fromMs)) continue;
      const ago = `${this.#world.time.now() - fromMs} ms`;
      const what = `${cache.name}: ${name} is connected and current, ${slice.lagMs ?? 0} ms behind, by its report`;
      this.#lie(
        'freshness',
        `${what}; ${text} is ${object === undefined ? 'missing' : 'held'}, which is not how it was at any time for ${ago}`,
      );
    }
  }

  async #checkAbsence(cache: SimCache, models: ReadonlyMap<string, ModelCache>): Promise<void> {
    for (const settled of this.#tree.latestPushers) {
      const { shard, truth, resources } = settled.pusher;
      const known = this.#knownOf(settled, cache, models);
      if (known === undefined) continue;
      for (const resource of resources) {
        const name = formatSlice({ shard, resource });
        if (known.digests.get(name) === cache.digests.get(name)) continue;
        const { whole, shards } = await cache.freshnessOf({ ...resource, shard: undefined });
        const fromMs = this.#sinceMs(known, Math.max(0, ...shards.map(({ lagMs }) => lagMs ?? 0)));
        if (!whole || !this.#isMet(known) || fromMs < truth.sinceMs || fromMs < known.changedMs) continue;
        const held = await heldBy(cache, settled.pusher, resource);
        for (const [text, key] of truth.keysOf(name)) {
          if (held.has(text) || known.way.mayHold(key, undefined, fromMs)) continue;
          this.#lie('absence', `${cache.name}: ${text} of ${shard} is absent, and its type is whole; the shard has held it for longer`);
        }
      }
    }
  }

  /** A parent cannot know that a child is missing if that child has never connected. */
  #isMet({ caches }: Known): boolean {
    return caches.every((cache, at) => {
      const from = caches[at - 1];
      return from?.parent !== cache.name || this.#tree.cache(cache.name).remembers(from.name);
    });
  }

  #sinceMs({ way, caches }: Known, lagMs: number): number {
    const nowMs = this.#world.time.now();
    const thawedMs = Math.max(...caches.map(({ name }) => this.#tree.cache(name).thawedMs));
    const mayBeSilent = this.#bound.mayBeSilent || nowMs - thawedMs < unreadMs;
    return nowMs - lagMs - freshnessBoundMs(way.links, { mayBeSilent });
  }

  /** Undefined if no way leads from the shard to the cache. */
  #knownOf({ pusher, plainWrites, sinceMs }: SettledPusher, cache: SimCache, models: ReadonlyMap<string, ModelCache>): Known | undefined {
    const name = `${cache.name} ${pusher.shard} ${pusher.process}`;
    const caches = wayBetween(models, plainWrites.name, cache.name);
    if (caches === undefined) return undefined;
    const before = this.#known.get(name);
    const { truth } = pusher;
    const isAsBefore = before?.caches.length === caches.length && caches.every((each, at) => before.caches[at] === each);
    if (isAsBefore && before.version === truth.version) return before;
    const way = isAsBefore ? before.way : new ShardWay(truth, caches);
    const changedMs = Math.max(sinceMs, ...caches.map((each) => this.#tree.cache(each.name).configuredMs));
    const known = { caches, way, changedMs, version: truth.version, digests: way.digests(this.#world.digestOf) };
    this.#known.set(name, known);
    return known;
  }

  #lie(kind: LieKind, text: string): void {
    this.#counts[kind] += 1;
    if (this.#lies[kind].length < liesMax) this.#lies[kind].push(`after ${this.#world.time.elapsedMs} ms: ${text}`);
  }
}

function saysCurrent({ whole, sourceConnected, lagMs }: SliceStatus): boolean {
  return whole && sourceConnected === true && lagMs !== null;
}

async function heldBy(
  cache: SimCache,
  { shard }: SimPusher,
  { group, resource, identity }: Resource,
): Promise<ReadonlyMap<string, ModelObject>> {
  const { store } = cache;
  const held = new Map<string, ModelObject>();
  for await (const page of snapshotPages(
    store.objects.snapshot({ group, resource, identity, shard, cluster: '*' }, store.revisions.published),
  ))
    for (const object of page) held.set(textOfKey(object.key), object);
  return held;
}
