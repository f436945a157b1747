/** A tree of caches with its pushers, and the model of what each cache must hold in the end. */
import type { ShardName } from '../../src/domain/shard.js';
import { ModelTree, type ModelCache, type ModelClaim } from './model-tree.js';
import { SimCache, type SimCacheOptions } from './sim-cache.js';
import { SimPusher } from './sim-pusher.js';
import type { PlainParty, SimParty } from './sim-party.js';
import { SimRemoval } from './sim-removal.js';
import { SimWriter } from './sim-writer.js';
import type { SimWorld } from './sim-world.js';

/** A pusher, its cache, and the time at which it was given that cache. */
export type SettledPusher = Readonly<{ pusher: SimPusher; plainWrites: SimCache; sinceMs: number }>;

const lookEveryMs = 50;
const differencesMax = 20;

export class SimTree {
  readonly #world: SimWorld;
  readonly #caches: ReadonlyMap<string, SimCache>;
  /** The cache at which each party connects, or last did. */
  readonly #origins = new Map<SimParty, SimCache>();
  /** The second cache of each pusher behind a load balancer. */
  readonly #others = new Map<SimParty, SimCache>();
  readonly #settledMs = new Map<SimParty, number>();

  constructor(world: SimWorld, caches: readonly ModelCache[], options: SimCacheOptions = {}) {
    this.#world = world;
    this.#caches = new Map(caches.map((cache) => [cache.name, new SimCache(world, cache, options)]));
  }

  get caches(): readonly SimCache[] {
    return [...this.#caches.values()];
  }

  get shards(): ReadonlySet<ShardName> {
    return new Set([...this.#origins.keys()].map(({ shard }) => shard));
  }

  get pushers(): readonly SettledPusher[] {
    return [...this.#origins.keys()].flatMap((pusher) => {
      if (!(pusher instanceof SimPusher)) return [];
      const sinceMs = Math.max(pusher.givenMs, this.#settledMs.get(pusher) ?? 0);
      return [{ pusher, plainWrites: this.#placeOf(pusher), sinceMs }];
    });
  }

  /**
   * The last process to which each shard was given, unless another party has taken the shard from
   * it for good.
   */
  get latestPushers(): readonly SettledPusher[] {
    const parties = [...this.#origins.keys()].filter((party) => party instanceof SimPusher || party instanceof SimRemoval);
    // At equal terms the removal wins.
    const isAbove = (party: SimPusher | SimRemoval, { shard, term }: SimPusher): boolean =>
      party.shard === shard && (party.term > term || (party.term === term && party instanceof SimRemoval));
    return this.pushers.filter(({ pusher }) => !pusher.isFenced && pusher.term > 0 && !parties.some((party) => isAbove(party, pusher)));
  }

  cache(name: string): SimCache {
    const cache = this.#caches.get(name);
    if (cache === undefined) throw new Error(`no cache is named ${name}`);
    return cache;
  }

  /** Starts the caches that are down. */
  async start(): Promise<void> {
    for (const cache of this.caches) if (!cache.isRunning) await cache.start();
  }

  /** Moves the party to that cache. */
  plainWrites(party: SimPusher | PlainParty, name: string): void {
    this.quit(party);
    this.#settledMs.set(party, this.#world.time.now());
    this.#origins.set(party, this.cache(name));
    this.#others.delete(party);
    this.join(party);
    if (party instanceof SimPusher) party.begin(this.#world);
  }

  /** From now on the pusher's load balancer chooses between its cache and this one. */
  balance(pusher: SimPusher, name: string): void {
    if (this.#origins.get(pusher)?.name === name) return;
    this.#others.set(pusher, this.cache(name));
    this.join(pusher);
  }

  /** Disconnects the party, which still belongs to its cache. */
  quit(party: SimPusher | PlainParty): void {
    if (party instanceof SimPusher) party.connectTo();
    else this.#origins.get(party)?.detach(party);
  }

  /** Connects the party again, unless it is connected. */
  join(party: SimPusher | PlainParty): void {
    const cache = this.#origins.get(party);
    if (party instanceof SimPusher) party.connectTo(...[cache, this.#others.get(party)].flatMap((each) => each?.name ?? []));
    else cache?.attach(party);
  }

  /** What the caches must hold in the end if nothing changes any more. */
  model(): ModelTree {
    const claims = [...this.#origins.keys()].map((party) => claimOf(party, this.#placeOf(party).name));
    return new ModelTree(
      this.caches.map(({ model }) => model),
      claims,
    );
  }

  /** The first differences between caches and model; empty if there are none. */
  differences(model = this.model()): readonly string[] {
    const found: string[] = [];
    for (const difference of this.#differences(model)) if (found.push(difference) === differencesMax) break;
    return found;
  }

  *#differences(model: ModelTree): Iterable<string> {
    const { shards } = this;
    for (const cache of this.caches) {
      const expected = model.digests(cache.name);
      for (const slice of new Set([...expected.keys(), ...cache.digests.keys()])) {
        const [wanted, held] = [expected.get(slice), cache.digests.get(slice)];
        if (wanted !== held) yield `${cache.name}: ${slice}: ${held ?? 'nothing'} is held, ${wanted ?? 'nothing'} is right`;
      }
      for (const shard of shards) {
        const [wanted, known] = [model.via(cache.name, shard), cache.via(shard)];
        if (wanted !== known) yield `${cache.name}: ${shard}: is of ${known ?? 'nobody'}, ${wanted ?? 'nobody'} is right`;
      }
    }
  }

  /**
   * Lets time pass until the caches agree with the model, and returns how long that took. Throws
   * with the differences after `maxMs`.
   */
  async converge(maxMs: number): Promise<number> {
    const { time } = this.#world;
    const beganMs = time.elapsedMs;
    let [model, given] = [this.model(), this.#given];
    while (!this.#isQuiet() || this.differences(model).length > 0) {
      if (time.elapsedMs - beganMs > maxMs) {
        const warned = [...this.#world.warnings].map(([event, { count, last }]) => `${event}, ${count} times, the last by ${last}`);
        const received = [...this.differences(model), ...this.#world.faults, ...warned];
        throw new Error(`not as the model says after ${maxMs} ms (seed ${this.#world.seed}):\n${received.join('\n')}`);
      }
      await time.advance(lookEveryMs);
      if (this.#isLively || this.#given !== given) [model, given] = [this.model(), this.#given];
    }
    return time.elapsedMs - beganMs;
  }

  /** The cache that last gave a pusher its shard; otherwise the cache of the party. */
  #placeOf(party: SimParty): SimCache {
    const told = this.#origins.get(party);
    if (told === undefined) throw new Error(`${party.shard} has a party that is nowhere`);
    return party instanceof SimPusher && party.welcomedBy !== undefined ? this.cache(party.welcomedBy) : told;
  }

  /** The terms that caches have given to pushers, and which caches. */
  get #given(): string {
    return this.pushers.map(({ pusher, plainWrites }) => `${plainWrites.name} ${pusher.term}`).join();
  }

  /** Whether any party's claim may change by itself. */
  get #isLively(): boolean {
    return [...this.#origins.keys()].some((party) => !(party instanceof SimPusher));
  }

  #isQuiet(): boolean {
    return [...this.#origins.keys()].every(({ isQuiet }) => isQuiet);
  }
}

/** A plain writer takes its shard back whenever another party claims it. */
function claimOf(party: SimParty, cache: string): ModelClaim {
  const { shard } = party;
  if (party instanceof SimRemoval) return { shard, cache, origin: party.origin, term: party.term, removed: true, objects: [] };
  if (party instanceof SimPusher) return { shard, cache, origin: party.origin, term: party.term, objects: party.objects };
  if (party instanceof SimWriter) return { shard, cache, term: Infinity, objects: party.objects };
  throw new Error(`${shard} has an unknown party`);
}
