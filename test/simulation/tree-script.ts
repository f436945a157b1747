/**
 * Plays steps (tree-step.ts) on a tree; a property test generates, shrinks and replays them. A step
 * that is impossible at the time is skipped, as is a crash of a cache that is down.
 */
import { aKey, shardName } from '../support/objects.js';
import type { MemoryDisk } from '../support/store/memory-disk.js';
import type { ModelObject } from './model-rule.js';
import type { FreshnessCheck } from './freshness-check.js';
import { aScriptPolicy } from './script-policy.js';
import type { SimCache } from './sim-cache.js';
import { aSimDeclaration, aSimObject, declaredResource, resourcesOf, simResources } from './sim-objects.js';
import { SimPusher } from './sim-pusher.js';
import { SimRemoval } from './sim-removal.js';
import type { SimTree } from './sim-tree.js';
import type { SimWorld } from './sim-world.js';
import { SimWriter } from './sim-writer.js';
import { Tamperer } from './tamperer.js';
import type { TreeStep } from './tree-step.js';

type StepOf<Kind extends TreeStep['kind']> = Extract<TreeStep, { kind: Kind }>;

type Disturbance = StepOf<'tamper' | 'stall'> | Readonly<{ kind: 'partition' | 'heal' | 'cut' | 'deaf' | 'mute'; cache: number }>;

const shards = ['amber', 'birch', 'cedar'];
/** The shard of the plain writer. */
const writtenShard = shardName('plum');
const clusters = ['acme', 'base'];
const paths = ['root:east', 'root:east:team', 'root:easter', 'root:west'];
/** The errors of clocks. */
const skewsMs = [0, 0, 137, -7_200_000, 5_400_000];

/** Objects of two types, in both logical clusters. */
const flowingObjects = [0, 1, 2, 3, 7];

const sparesMax = 2;
const supervisedMs = 60_000;

export class TreeScript {
  readonly #world: SimWorld;
  readonly #tree: SimTree;
  readonly #check: FreshnessCheck;
  readonly #tamperer: Tamperer;
  readonly #pushers = new Map<string, SimPusher>();
  /** By shard: waiting pushers that read the same shard as the present one. */
  readonly #spares = new Map<string, SimPusher[]>();
  readonly #removals = new Map<string, SimRemoval>();
  readonly #backups = new Map<string, MemoryDisk>();
  readonly #frozen = new Set<string>();
  /** The right parents of caches that follow another by mistake. */
  readonly #rightParents = new Map<string, string | undefined>();
  /** By shard and logical cluster: once a cluster has a path, it always has one. */
  readonly #paths = new Map<string, string>();
  readonly #undeclared = new Set<string>();
  /** Ends the flows, whose changes come while other steps run. */
  readonly #flows = new AbortController();
  #writer: SimWriter | undefined;
  #processes = 0;

  constructor(world: SimWorld, tree: SimTree, check: FreshnessCheck) {
    this.#world = world;
    this.#tree = tree;
    this.#check = check;
    this.#tamperer = new Tamperer(world.network);
  }

  async run(steps: readonly TreeStep[]): Promise<void> {
    for (const step of steps) await this.#step(step);
  }

  /** Starts and heals everything, and gives every cache its right parent. */
  async heal(): Promise<void> {
    this.#flows.abort();
    for (const pusher of [...this.#pushers.values(), ...[...this.#spares.values()].flat()]) this.#tree.join(pusher);
    this.#tamperer.stop();
    for (const name of this.#frozen) this.#tree.cache(name).thaw();
    this.#frozen.clear();
    for (const [name, parent] of this.#rightParents) {
      const cache = this.#tree.cache(name);
      if (cache.isRunning) cache.crash();
      cache.follow(parent);
    }
    this.#rightParents.clear();
    await this.#tree.start();
    this.#world.network.healAll();
  }

  /**
   * Starts a new process of a shard whose pusher has ended as fenced, as its supervisor would. Two
   * processes that came within one millisecond may have the same term, and the one that has the
   * shard is fenced where it meets the other.
   */
  async supervise(): Promise<void> {
    await this.#world.time.advance(supervisedMs);
    for (const [shard, former] of this.#pushers) {
      if (this.#removals.has(shard) || this.#readersOf(shard).some(({ isFenced }) => !isFenced)) continue;
      const next = this.#aProcess(shard, { takesOver: false });
      for (const object of former.objects) next.put(object);
      this.#pushers.set(shard, next);
      this.#tree.plainWrites(next, former.cache ?? 'cache-0');
    }
  }

  async #step(step: TreeStep): Promise<void> {
    switch (step.kind) {
      case 'pass':
        return this.#check.pass(step.ms);
      case 'flow':
        return this.#flow(step, 1);
      case 'put':
      case 'remove':
        return this.#push(step);
      case 'path':
        return this.#movePath(step);
      case 'declare':
        return this.#declare(step);
      case 'write':
      case 'unwrite':
        return this.#write(step);
      case 'moveOrigin':
        return this.#moveOrigin(step);
      case 'spare':
        return this.#addSpare(step);
      case 'balance':
        return this.#balance(step);
      case 'sever':
        return this.#sever(step);
      case 'quit':
      case 'join':
        return this.#attend(step);
      case 'partition':
      case 'heal':
      case 'cut':
      case 'deaf':
      case 'mute':
        return this.#disturb({ kind: step.kind, cache: step.cache });
      case 'tamper':
      case 'stall':
        return this.#disturb(step);
      default:
        return this.#operate(step, pick(this.#tree.caches, step.cache));
    }
  }

  #disturb(step: Disturbance): void {
    const { network } = this.#world;
    const { name, model } = pick(this.#tree.caches, step.cache);
    const { parent } = model;
    if (parent === undefined) return;
    const way = 'isUp' in step && step.isUp ? { from: name, to: parent } : { from: parent, to: name };
    switch (step.kind) {
      case 'stall':
        return network.stall(way.from, way.to, step.ms);
      case 'deaf':
        return network.halfOpen(parent, name);
      case 'mute':
        return network.halfOpen(name, parent);
      case 'tamper':
        return this.#tamperer.arrange(way, step.how);
      default:
        return network[step.kind](name, parent);
    }
  }

  async #operate(
    step: Exclude<
      TreeStep,
      { kind: 'pass' | 'flow' | 'quit' | 'join' | 'sever' } | { object: number } | { shard: number; cluster: number }
    >,
    cache: SimCache,
  ): Promise<void> {
    const { name } = cache;
    if (step.kind === 'policy') return cache.changePolicies(aScriptPolicy(step));
    if (this.#frozen.has(name)) {
      if (step.kind === 'thaw') cache.thaw();
      if (step.kind === 'thaw') this.#frozen.delete(name);
    } else if (cache.isRunning) await this.#operateRunning(step, cache);
    else await this.#operateDown(step, cache);
  }

  async #operateRunning(step: TreeStep, cache: SimCache): Promise<void> {
    const { name } = cache;
    if (step.kind === 'clock') cache.stepClock(step.byMs);
    if (step.kind === 'crash') cache.crash({ underWay: step.isKept ? 'kept' : 'lost', isNoticed: step.isNoticed });
    if (step.kind === 'stop') await this.#world.time.awaited(cache.stop(), 60_000);
    if (step.kind === 'backup') this.#backups.set(name, cache.backup());
    if (step.kind === 'compact') cache.store.compact();
    if (step.kind === 'clear') this.#clear(pick([...shards, writtenShard], step.shard), name);
    if (step.kind === 'rewrite') this.#rewrite(cache);
    if (step.kind !== 'freeze') return;
    cache.freeze();
    this.#frozen.add(name);
  }

  async #operateDown(step: TreeStep, cache: SimCache): Promise<void> {
    const backup = this.#backups.get(cache.name);
    if (step.kind === 'start') await cache.start({ skewMs: pick(skewsMs, step.skew) });
    if (step.kind === 'wipe') cache.wipe();
    if (step.kind === 'restore' && backup !== undefined) cache.restore(backup);
    if (step.kind === 'reparent') this.#reparent(cache, pick(this.#tree.caches, step.parent).name);
    if (step.kind === 'misparent') this.#misparent(cache, pick(this.#tree.caches, step.parent).name);
  }

  #push(step: StepOf<'put' | 'remove'>): void {
    const shard = pick(shards, step.shard);
    const { resource, group, identity } = pick([...simResources, declaredResource(shardName(shard))], step.object);
    const place = { shard, cluster: pick(clusters, step.object >> 1), resource, group, identity, name: `object-${step.object}` };
    for (const pusher of this.#readersOf(shard)) {
      if (step.kind === 'remove') pusher.remove(aKey(place));
      else pusher.put(aSimObject(place, contentOf(step)));
    }
  }

  #readersOf(shard: string): readonly SimPusher[] {
    const pusher = this.#pushers.get(shard);
    return pusher === undefined ? [] : [pusher, ...(this.#spares.get(shard) ?? [])];
  }

  #flow({ shard, changes, everyMs }: StepOf<'flow'>, number: number): void {
    const object = flowingObjects[number % flowingObjects.length] ?? 0;
    const isRemoved = number % 5 === 0;
    if (isRemoved) this.#push({ kind: 'remove', shard, object });
    else this.#push({ kind: 'put', shard, object, isPublic: number % 2 === 0, content: 1_000 + number });
    if (number >= changes) return;
    this.#world.time.after(everyMs, () => {
      if (!this.#flows.signal.aborted) this.#flow({ kind: 'flow', shard, changes, everyMs }, number + 1);
    });
  }

  #movePath({ shard, cluster, path }: StepOf<'path'>): void {
    const place = { shard: pick(shards, shard), cluster: pick(clusters, cluster) };
    this.#paths.set(`${place.shard} ${place.cluster}`, pick(paths, path));
    // Every process of the shard knows the path: once a cluster has a path, it always has one.
    for (const { pusher } of this.#tree.pushers) if (pusher.shard === place.shard) pusher.put(this.#anchor(place));
  }

  #declare({ shard: number, isDeclared }: StepOf<'declare'>): void {
    const shard = pick(shards, number);
    if (isDeclared) this.#undeclared.delete(shard);
    else this.#undeclared.add(shard);
    const declaration = aSimDeclaration(shardName(shard));
    for (const pusher of this.#readersOf(shard)) {
      if (isDeclared) pusher.put(declaration);
      else pusher.remove(declaration.key);
    }
  }

  #attend({ kind, shard }: StepOf<'quit' | 'join'>): void {
    const pusher = this.#pushers.get(pick(shards, shard));
    if (pusher === undefined) return;
    if (kind === 'quit') this.#tree.quit(pusher);
    else this.#tree.join(pusher);
  }

  /** Starts a later process of the shard's pusher, at any cache, with other objects. */
  #moveOrigin({ shard: shardNumber, cache, objects }: StepOf<'moveOrigin'>): void {
    const shard = pick(shards, shardNumber);
    const former = this.#pushers.get(shard);
    // The former pusher connects again to find out that it is fenced.
    if (former !== undefined) this.#tree.join(former);
    // A former pusher that has never had the shard must not take it from the later one.
    former?.yield();
    const pusher = this.#aProcess(shard);
    this.#pushers.set(shard, pusher);
    // The spares go on, and read nothing new.
    this.#spares.delete(shard);
    for (const cluster of clusters) pusher.put(this.#anchor({ shard, cluster }));
    if (!this.#undeclared.has(shard)) pusher.put(aSimDeclaration(shardName(shard)));
    for (let object = 0; object < objects; object += 1)
      this.#push({ kind: 'put', shard: shardNumber, object, isPublic: object % 3 === 0, content: this.#processes });
    this.#tree.plainWrites(pusher, pick(this.#tree.caches, cache).name);
  }

  #aProcess(shard: string, { takesOver = true }: Readonly<{ takesOver?: boolean }> = {}): SimPusher {
    this.#processes += 1;
    const process = `process-${this.#processes}`;
    return new SimPusher({ shard: shardName(shard), process, resources: resourcesOf(shardName(shard)), takesOver });
  }

  #addSpare({ shard: number, cache }: StepOf<'spare'>): void {
    const shard = pick(shards, number);
    const [read] = this.#readersOf(shard);
    const spares = this.#spares.get(shard) ?? [];
    if (read === undefined || spares.length === sparesMax) return;
    const spare = this.#aProcess(shard, { takesOver: false });
    for (const object of read.objects) spare.put(object);
    this.#spares.set(shard, [...spares, spare]);
    this.#tree.plainWrites(spare, pick(this.#tree.caches, cache).name);
  }

  #balance({ shard, cache }: StepOf<'balance'>): void {
    const pusher = this.#pushers.get(pick(shards, shard));
    if (pusher !== undefined) this.#tree.balance(pusher, pick(this.#tree.caches, cache).name);
  }

  #sever({ shard, how, ms }: StepOf<'sever'>): void {
    const pusher = this.#pushers.get(pick(shards, shard));
    const cache = pusher?.cache;
    if (pusher === undefined || cache === undefined) return;
    const { network } = this.#world;
    if (how === 'cut') return network.cut(pusher.host, cache);
    const [from, to] = how === 'deaf' ? [cache, pusher.host] : [pusher.host, cache];
    network.stall(from, to, ms);
  }

  #write(step: StepOf<'write' | 'unwrite'>): void {
    const { resource } = pick(simResources, step.object);
    const place = { shard: writtenShard, resource, name: `object-${step.object}` };
    if (step.kind === 'unwrite') return this.#writer?.remove({ key: aKey(place) });
    if (this.#writer === undefined) {
      this.#writer = new SimWriter({ shard: writtenShard, resources: simResources, beat: aBeat });
      this.#tree.plainWrites(this.#writer, pick(this.#tree.caches, step.object).name);
    }
    this.#writer.put(aSimObject(place, contentOf(step)));
  }

  /**
   * Moves the plain writer only once its last move is complete, and only to a cache that knows the
   * highest term. A take-over without that term would be a conflict.
   */
  #rewrite(cache: SimCache): void {
    const rankAt = ({ known }: SimCache): number => known.shard(writtenShard)?.term ?? 0;
    const isKnown = rankAt(cache) > 0 && this.#tree.caches.every((each) => each.isRunning && rankAt(each) <= rankAt(cache));
    if (this.#writer === undefined || this.#writer.isMoving || !isKnown) return;
    this.#writer.move();
    this.#tree.plainWrites(this.#writer, cache.name);
  }

  /** Allows one removal of a shard at a time, because two at once would have equal terms. */
  #clear(shard: string, cache: string): void {
    if (this.#removals.get(shard)?.isQuiet === false) return;
    const removal = new SimRemoval(shardName(shard));
    this.#removals.set(shard, removal);
    this.#tree.plainWrites(removal, cache);
  }

  /** An object that passes all policies and names the path of its logical cluster. */
  #anchor({ shard, cluster }: Readonly<{ shard: string; cluster: string }>): ModelObject {
    const path = this.#paths.get(`${shard} ${cluster}`);
    return aSimObject(
      { shard, cluster, name: 'anchor' },
      { labels: { anchor: 'yes' }, annotations: path === undefined ? {} : { 'kcp.io/path': path } },
    );
  }

  /** Never puts a cache below itself, and never moves one that follows a wrong parent. */
  #reparent(cache: SimCache, parent: string): void {
    if (this.#rightParents.has(cache.name)) return;
    for (let above: string | undefined = parent; above !== undefined; above = this.#rightParentOf(above)) if (above === cache.name) return;
    cache.follow(parent);
  }

  #misparent(cache: SimCache, parent: string): void {
    if (parent === cache.name) return;
    if (!this.#rightParents.has(cache.name)) this.#rightParents.set(cache.name, cache.model.parent);
    cache.follow(parent);
  }

  #rightParentOf(name: string): string | undefined {
    return this.#rightParents.has(name) ? this.#rightParents.get(name) : this.#tree.cache(name).model.parent;
  }
}

function aBeat(content: number): ModelObject {
  return aSimObject({ shard: writtenShard, name: 'beat' }, { labels: { anchor: 'yes' }, spec: { content } });
}

function contentOf({ isPublic, content }: Readonly<{ isPublic: boolean; content: number }>) {
  return { labels: { visibility: isPublic ? 'public' : 'private' }, spec: { content } };
}

function pick<T>(list: readonly T[], number: number): T {
  const picked = list[number % list.length];
  if (picked === undefined) throw new Error('nothing to pick from');
  return picked;
}
