/**
 * One cache of a simulated tree: the real tier on a memory store, in a process that can stop, die, stand still and come back, on a
 * disk that can be lost or put back from a copy.
 *
 *   start ──▶ running ── stop ──▶ down     said to everybody
 *               │  └──── crash ─▶ down     what was not answered for may be lost
 *               └─ freeze ⇄ thaw
 *   down: wipe, restore, follow (another parent), then start
 */
import { BoundedLog } from '../../src/diagnostics/bounded-log.js';
import type { LinkPolicies } from '../../src/domain/link-policies.js';
import type { FrameConnection } from '../../src/frames/frame-connection.js';
import { formatSlice } from '../../src/domain/slice.js';
import type { ShardName } from '../../src/domain/shard.js';
import type { Side } from '../../src/domain/side.js';
import { KnownShards } from '../../src/intake/known-shards.js';
import { defaultSenderBounds } from '../../src/sender/sender-options.js';
import { Tier, type TierOptions } from '../../src/tier/tier.js';
import { aPolicy } from '../support/edge-policies.js';
import { MemoryDisk } from '../support/memory-disk.js';
import { MemoryStore } from '../support/memory-store.js';
import type { MemoryStoreOptions } from '../support/memory-store-options.js';
import type { ModelCache } from './model-tree.js';
import { ProcessLife } from './process-life.js';
import { fractions } from './seeded-random.js';
import type { SimPusher } from './sim-pusher.js';
import type { SimWorld } from './sim-world.js';

type Process = Readonly<{
  life: ProcessLife;
  store: MemoryStore;
  known: KnownShards;
  tier: Tier;
  stop: AbortController;
  ended: Promise<void>;
}>;

export type SimCacheOptions = Partial<TierOptions> & Readonly<{ store?: Partial<MemoryStoreOptions> }>;

const limits = { frameBytesMax: 4 * 1024 * 1024, frameMutationsMax: 512, bodyBytesMax: 3 * 1024 * 1024 };
const credit = { mutations: 2_048, bytes: 8 * 1024 * 1024 };

export class SimCache {
  readonly name: string;
  readonly #world: SimWorld;
  readonly #options: SimCacheOptions;
  readonly #random: () => number;
  readonly #pushers = new Set<SimPusher>();
  /** Of the slices that hold something, as its store has told. */
  readonly #digests = new Map<string, string>();
  readonly #sides = new Map<ShardName, Side | undefined>();
  #policies: ModelCache;
  #disk: MemoryDisk;
  #isRolledBack = false;
  #process: Process | undefined;

  constructor(world: SimWorld, policies: ModelCache, options: SimCacheOptions = {}) {
    this.name = policies.name;
    this.#world = world;
    this.#policies = policies;
    this.#options = options;
    this.#random = fractions(world.random(`cache ${this.name}`));
    this.#disk = MemoryDisk.blank(this.#random);
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  /** Its parent and its policies, as the model has them. */
  get model(): ModelCache {
    return this.#policies;
  }

  get store(): MemoryStore {
    return this.#running().store;
  }

  get tier(): Tier {
    return this.#running().tier;
  }

  get digests(): ReadonlyMap<string, string> {
    return this.#digests;
  }

  side(shard: ShardName): Side | undefined {
    return this.#sides.get(shard);
  }

  /** `skewMs`: by how much its clock is wrong. */
  async start({ skewMs = 0 }: Readonly<{ skewMs?: number }> = {}): Promise<void> {
    if (this.#process !== undefined) throw new Error(`${this.name} runs already`);
    const { time, network } = this.#world;
    const life = new ProcessLife(time, { skewMs });
    const store = new MemoryStore(
      this.#disk,
      { clock: life, soon: life.soon, random: this.#random },
      { ...this.#options.store, rolledBack: this.#isRolledBack },
    );
    this.#isRolledBack = false;
    await this.#follow(store);
    const known = await KnownShards.open(store);
    const tier = this.#openTier({ life, store, known });
    const stop = new AbortController();
    const ended = tier.run(stop.signal);
    this.#world.own(`${this.name}: link`, ended);
    this.#process = { life, store, known, tier, stop, ended };
    network.listen(this.name, (connection, from) => this.#world.own(`${this.name}: child ${from}`, accept(tier, connection, from)));
    for (const pusher of this.#pushers) this.#run(pusher);
  }

  /** Says goodbye, and waits until everything is on the disk. */
  async stop(): Promise<void> {
    const { store, known, tier, stop, ended, life } = this.#running();
    this.#world.network.unlisten(this.name);
    this.#process = undefined;
    for (const pusher of this.#pushers) pusher.leave();
    store.beginClose();
    stop.abort();
    tier.close();
    await Promise.all([ended, ...[...tier.children].map(({ gone }) => gone)]);
    known.close();
    await store.close();
    life.end();
  }

  /** The process dies. `isTold`: its system still tells those who are connected; without power it does not. */
  crash({ underWay = 'lost', isTold = true }: Readonly<{ underWay?: 'lost' | 'kept'; isTold?: boolean }> = {}): void {
    const { life, store } = this.#running();
    this.#process = undefined;
    life.end();
    this.#disk = store.crash(underWay);
    if (isTold) this.#world.network.crash(this.name);
    else this.#world.network.vanish(this.name);
    for (const pusher of this.#pushers) pusher.leave();
  }

  freeze(): void {
    this.#running().life.freeze();
    this.#world.network.freeze(this.name);
  }

  thaw(): void {
    this.#running().life.thaw();
    this.#world.network.thaw(this.name);
  }

  /** The disk as it is, to be put back later. */
  backup(): MemoryDisk {
    return this.#process?.store.backup() ?? this.#disk.copy();
  }

  restore(disk: MemoryDisk): void {
    this.#mustBeDown();
    this.#disk = disk.copy();
    this.#isRolledBack = true;
  }

  wipe(): void {
    this.#mustBeDown();
    this.#disk = MemoryDisk.blank(this.#random);
  }

  /** Another parent, or none, from the next start on. */
  follow(parent: string | undefined): void {
    this.#mustBeDown();
    this.#policies = { ...this.#policies, parent };
  }

  changePolicies(policies: Partial<Pick<ModelCache, 'forward' | 'follow' | 'children'>>): void {
    this.#policies = { ...this.#policies, ...policies };
    this.#process?.tier.changePolicies(linkPolicies(this.#policies));
  }

  /** The pusher connects here, now and whenever this cache comes back. */
  attach(pusher: SimPusher): void {
    this.#pushers.add(pusher);
    if (this.#process !== undefined) this.#run(pusher);
  }

  detach(pusher: SimPusher): void {
    if (this.#pushers.delete(pusher)) pusher.leave();
  }

  #run(pusher: SimPusher): void {
    this.#world.own(`${this.name}: pusher of ${pusher.shard}`, pusher.run(this.store));
  }

  async #follow(store: MemoryStore): Promise<void> {
    this.#digests.clear();
    this.#sides.clear();
    const learn: Parameters<MemoryStore['follow']>[0] = ({ shards, slices }) => {
      for (const { shard, side } of shards) this.#sides.set(shard, side);
      for (const { slice, objects, digest } of slices) {
        if (objects === 0) this.#digests.delete(formatSlice(slice));
        else this.#digests.set(formatSlice(slice), digest);
      }
    };
    learn({ shards: await store.shards(), slices: await store.slices() });
    store.follow(learn);
  }

  #openTier({ life, store, known }: Pick<Process, 'life' | 'store' | 'known'>): Tier {
    const { network, metrics, catalogue } = this.#world;
    const log = this.#world.log(this.name);
    const { parent } = this.#policies;
    return new Tier(
      {
        store,
        known,
        clock: life,
        random: this.#random,
        turn: life.turn,
        log,
        boundedLog: new BoundedLog({ clock: life, log }),
        metrics,
        localFreshness: () => ({ connected: true, lagMs: 0 }),
        intake: { typeOf: (resource, shard) => catalogue.find(resource, shard), credit, limits, systemClusters: new Set() },
        connect: (url, signal) => network.connect(this.name, url, signal),
      },
      linkPolicies(this.#policies),
      {
        ...defaultSenderBounds,
        refusedRetryMs: 60_000,
        digestIntervalMs: 600_000,
        readyGraceMs: 10_000,
        ...this.#options,
        urls: parent === undefined ? [] : [parent],
        name: this.name,
        incarnation: life.now(),
        agent: 'simulation',
      },
    );
  }

  #running(): Process {
    if (this.#process === undefined) throw new Error(`${this.name} does not run`);
    return this.#process;
  }

  #mustBeDown(): void {
    if (this.#process !== undefined) throw new Error(`${this.name} runs`);
  }
}

/** The network stands for the certificate: it says who connects. */
async function accept(tier: Tier, connection: FrameConnection, from: string): Promise<void> {
  const frames = connection.frames()[Symbol.asyncIterator]();
  const first = await Promise.race([frames.next(), connection.closed.then(() => undefined)]);
  if (first === undefined || first.done === true) return;
  if (first.value.kind !== 'hello') throw new Error(`${from} began with ${first.value.kind}`);
  const caller = { user: from, groups: [], speaksFor: { kind: 'cache', name: from } } as const;
  await tier.accept(connection, { hello: first.value, frames, caller });
}

function linkPolicies({ forward, follow, children }: ModelCache): LinkPolicies {
  const ofChildren = Object.entries(children).map(([name, { accept: taken, offer }]) => {
    return [name, { accept: aPolicy(...taken), offer: aPolicy(...offer) }] as const;
  });
  return { forward: aPolicy(...forward), follow: aPolicy(...follow), children: new Map(ofChildren) };
}
