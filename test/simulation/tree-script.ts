/**
 * What happens to a tree, as a list of steps that a property test makes up, makes smaller and replays. A step that makes no sense at the
 * time (a cache that is down cannot die) is passed over, so that every part of a script is a script.
 */
import { aKey, shardName } from '../support/objects.js';
import type { MemoryDisk } from '../support/memory-disk.js';
import type { ModelRule } from './model-rule.js';
import type { ModelCache } from './model-tree.js';
import { aSimObject, simResources } from './sim-objects.js';
import { SimPusher } from './sim-pusher.js';
import type { SimTree } from './sim-tree.js';
import type { SimWorld } from './sim-world.js';

/** Numbers name caches, shards, objects and policies by their place in a list, counted on from its beginning where it ends. */
export type TreeStep =
  | Readonly<{ kind: 'pass'; ms: number }>
  | Readonly<{ kind: 'put'; shard: number; object: number; isPublic: boolean; content: number }>
  | Readonly<{ kind: 'remove'; shard: number; object: number }>
  | Readonly<{ kind: 'partition' | 'heal' | 'cut' | 'deaf' | 'mute'; cache: number }>
  | Readonly<{ kind: 'crash'; cache: number; isKept: boolean; isTold: boolean }>
  | Readonly<{ kind: 'stop' | 'start' | 'wipe' | 'backup' | 'restore' | 'freeze' | 'thaw' | 'compact'; cache: number }>
  | Readonly<{ kind: 'policy'; cache: number; forward: number; follow: number; accept: number; offer: number }>
  | Readonly<{ kind: 'rehome'; shard: number; cache: number; objects: number }>
  | Readonly<{ kind: 'reparent'; cache: number; parent: number }>;

/** All of them let something of every slice through, so that claims cross whatever the policy (model-tree.ts). */
const policies: readonly (readonly ModelRule[])[] = [
  [{ types: ['*'] }],
  [{ labels: { visibility: 'private' } }],
  [{ labels: { visibility: 'public' } }],
  [{ labels: { visibility: 'public' } }, { types: ['*'], labels: { visibility: 'private' } }],
  [{ types: ['apiexports.apis.kcp.io'] }],
];
const shards = ['amber', 'birch', 'cedar'];

export function scriptPolicies(
  forward: number,
  follow: number,
  accept: number,
  offer: number,
): Pick<ModelCache, 'forward' | 'follow' | 'children'> {
  return {
    forward: pick(policies, forward),
    follow: pick(policies, follow),
    children: { '*': { accept: pick(policies, accept), offer: pick(policies, offer) } },
  };
}

export class TreeScript {
  readonly #world: SimWorld;
  readonly #tree: SimTree;
  readonly #pushers = new Map<string, SimPusher>();
  readonly #backups = new Map<string, MemoryDisk>();
  readonly #frozen = new Set<string>();
  #incarnation = 1;

  constructor(world: SimWorld, tree: SimTree) {
    this.#world = world;
    this.#tree = tree;
  }

  async run(steps: readonly TreeStep[]): Promise<void> {
    for (const step of steps) await this.#step(step);
  }

  /** Everything is up and whole again. */
  async heal(): Promise<void> {
    for (const name of this.#frozen) this.#tree.cache(name).thaw();
    this.#frozen.clear();
    await this.#tree.start();
    this.#world.network.healAll();
  }

  async #step(step: TreeStep): Promise<void> {
    const { network, time } = this.#world;
    switch (step.kind) {
      case 'pass':
        return time.advance(step.ms);
      case 'put':
      case 'remove':
        return this.#push(step);
      case 'rehome':
        return this.#rehome(step.shard, step.cache, step.objects);
      case 'partition':
      case 'heal':
      case 'cut':
        return this.#withParent(step.cache, (name, parent) => {
          if (step.kind === 'partition') network.partition(name, parent);
          else if (step.kind === 'heal') network.heal(name, parent);
          else network.cut(name, parent);
        });
      case 'deaf':
        return this.#withParent(step.cache, (name, parent) => network.halfOpen(parent, name));
      case 'mute':
        return this.#withParent(step.cache, (name, parent) => network.halfOpen(name, parent));
      default:
        return this.#operate(step);
    }
  }

  async #operate(
    step: Exclude<TreeStep, { kind: 'pass' | 'put' | 'remove' | 'rehome' | 'partition' | 'heal' | 'cut' | 'deaf' | 'mute' }>,
  ): Promise<void> {
    const cache = pick(this.#tree.caches, step.cache);
    const { name } = cache;
    const backup = this.#backups.get(name);
    if (cache.isRunning && !this.#frozen.has(name)) {
      if (step.kind === 'crash') cache.crash({ underWay: step.isKept ? 'kept' : 'lost', isTold: step.isTold });
      if (step.kind === 'stop') await this.#world.time.awaited(cache.stop(), 60_000);
      if (step.kind === 'backup') this.#backups.set(name, cache.backup());
      if (step.kind === 'compact') cache.store.compact(cache.store.published);
      if (step.kind === 'freeze') {
        cache.freeze();
        this.#frozen.add(name);
      }
    } else if (this.#frozen.has(name)) {
      if (step.kind === 'thaw') cache.thaw();
      if (step.kind === 'thaw') this.#frozen.delete(name);
    } else {
      if (step.kind === 'start') await cache.start();
      if (step.kind === 'wipe') cache.wipe();
      if (step.kind === 'restore' && backup !== undefined) cache.restore(backup);
      if (step.kind === 'reparent') this.#reparent(name, step.parent);
    }
    if (step.kind === 'policy') cache.changePolicies(scriptPolicies(step.forward, step.follow, step.accept, step.offer));
  }

  #push(step: TreeStep & { kind: 'put' | 'remove' }): void {
    const shard = pick(shards, step.shard);
    const resource = pick(simResources, step.object).resource;
    const place = { shard, resource, name: `object-${step.object}` };
    const pusher = this.#pushers.get(shard);
    if (step.kind === 'remove') pusher?.remove(aKey(place));
    else pusher?.put(aSimObject(place, { labels: { visibility: step.isPublic ? 'public' : 'private' }, spec: { content: step.content } }));
  }

  /** A later process of the shard's pusher, elsewhere or at the same cache, which holds something else. */
  #rehome(number: number, cache: number, objects: number): void {
    const shard = pick(shards, number);
    this.#incarnation += 1;
    const pusher = new SimPusher({ shard: shardName(shard), incarnation: this.#incarnation, resources: simResources });
    this.#pushers.set(shard, pusher);
    for (let object = 0; object < objects; object += 1)
      this.#push({ kind: 'put', shard: number, object, isPublic: object % 3 === 0, content: this.#incarnation });
    this.#tree.home(pusher, pick(this.#tree.caches, cache).name);
  }

  /** Never below itself. */
  #reparent(name: string, number: number): void {
    const parent = pick(this.#tree.caches, number).name;
    for (let above: string | undefined = parent; above !== undefined; above = this.#tree.cache(above).model.parent)
      if (above === name) return;
    this.#tree.cache(name).follow(parent);
  }

  #withParent(number: number, run: (name: string, parent: string) => void): void {
    const { name, model } = pick(this.#tree.caches, number);
    if (model.parent !== undefined) run(name, model.parent);
  }
}

function pick<T>(list: readonly T[], number: number): T {
  const picked = list[number % list.length];
  if (picked === undefined) throw new Error('nothing to pick from');
  return picked;
}
