/** One process of a simulated cache: everything of the real server that makes a tree, on a memory store, wired as the server wires it. */
import { BoundedLog } from '../../src/diagnostics/bounded-log.js';
import { Catalogue } from '../../src/domain/catalogue.js';
import { kcpTypes } from '../../src/domain/catalogue-kcp.js';
import type { LinkPolicies } from '../../src/domain/link-policies.js';
import type { Clock } from '../../src/domain/ports.js';
import { DeclaredTypes } from '../../src/intake/declared-types.js';
import type { TreeStatus } from '../../src/domain/status.js';
import { Freshness } from '../../src/intake/freshness.js';
import { HeldRemovals } from '../../src/intake/held-removals.js';
import { PlainOrigin } from '../../src/intake/plain-origin.js';
import { KnownShards } from '../../src/intake/known-shards.js';
import { PlainWriters } from '../../src/intake/plain-writers.js';
import { ChildShards } from '../../src/tier/child-shards.js';
import { Tier, type TierOptions } from '../../src/tier/tier.js';
import type { MemoryStore } from '../support/memory-store.js';
import type { PartyPlace } from './sim-party.js';
import type { ProcessLife } from './process-life.js';
import type { SimSessions } from './sim-sessions.js';
import type { SimWorld } from './sim-world.js';

export type SimProcessParts = Readonly<{
  name: string;
  world: SimWorld;
  life: ProcessLife;
  store: MemoryStore;
  random: () => number;
  pushers: SimSessions;
  sendPushersAway: () => void;
  intake: IntakeBounds;
}>;

/** How much its neighbours may send at once, and how large a body may be. */
export type IntakeBounds = Readonly<{ creditMutations: number; bodyBytesMax: number }>;

export const defaultIntake: IntakeBounds = { creditMutations: 2_048, bodyBytesMax: 3 * 1024 * 1024 };

const frameBounds = { frameBytesMax: 4 * 1024 * 1024, frameMutationsMax: 512 };
const creditBytes = 8 * 1024 * 1024;
const version = 'simulated';
/** Nothing reads the rest of its report. */
const noTree: Omit<TreeStatus, 'complete'> = { name: null, route: [], hops: null, parent: null, children: [] };
const plainQuietMs = 30_000;
const plainHoldMs = 30_000;
const holdLimits = { percentMax: 50, removesMin: 100, graceMs: 3_600_000 };

export class SimProcess implements PartyPlace {
  readonly life: ProcessLife;
  readonly store: MemoryStore;
  readonly known: KnownShards;
  readonly tier: Tier;
  readonly plainOrigin: PlainOrigin;
  /** The source of its status report. */
  readonly freshness: Freshness;
  readonly #types: DeclaredTypes;
  readonly #plainWriters: PlainWriters;
  readonly #stop = new AbortController();
  readonly #following: Promise<void>;

  private constructor(
    { life, store, pushers }: SimProcessParts,
    known: KnownShards,
    tier: Tier,
    { types, plainWriters, removals }: Readonly<{ types: DeclaredTypes; plainWriters: PlainWriters; removals: HeldRemovals }>,
  ) {
    this.life = life;
    this.store = store;
    this.known = known;
    this.tier = tier;
    this.#types = types;
    this.#plainWriters = plainWriters;
    const startedMs = life.now();
    this.plainOrigin = new PlainOrigin(
      {
        own: store.cacheId,
        known,
        clock: life,
        seenMs: (shard, neighbour) => tier.seenMs(shard, neighbour),
        runningSinceMs: () => startedMs,
      },
      { holdMs: plainHoldMs },
    );
    this.freshness = new Freshness({
      store,
      sessions: pushers,
      standbys: { count: () => 0 },
      links: tier.freshness,
      removals,
      clock: life,
      turn: () => Promise.resolve(),
      version,
      tree: () => Promise.resolve({ ...noTree, complete: this.tier.isComplete }),
      isReady: () => tier.isReady,
      certificates: () => [],
    });
    this.#following = tier.run(this.#stop.signal);
  }

  static async open(parts: SimProcessParts, policies: LinkPolicies, options: TierOptions): Promise<SimProcess> {
    const { world, name, store, life, random, pushers, sendPushersAway, intake } = parts;
    const limits = { ...frameBounds, bodyBytesMax: intake.bodyBytesMax };
    const credit = { mutations: intake.creditMutations, bytes: creditBytes };
    const log = world.log(name);
    const catalogue = new Catalogue(kcpTypes);
    const known = await KnownShards.open(store);
    const removals = new HeldRemovals({ clock: life, log }, holdLimits);
    const tier = new Tier(
      {
        store,
        known,
        links: await store.links(),
        clock: life,
        random,
        turn: life.turn,
        log,
        boundedLog: new BoundedLog({ clock: life, log }),
        metrics: world.metrics,
        pushers,
        sendPushersAway,
        removals,
        reportAbsent: () => Promise.resolve(),
        rules: { typeOf: (resource, shard) => catalogue.find(resource, shard), credit, limits, systemClusters: new Set() },
        childShards: new ChildShards(known, 1_000),
        connect: (url, signal) => world.network.connect(name, url, signal),
      },
      policies,
      options,
    );
    const held = (await store.slices()).filter(({ objects }) => objects > 0).map(({ slice: { resource } }) => resource);
    const ports = { objects: store, revisions: store, pushes: store, commits: store };
    const noWatches = { endOf: () => {} };
    const types = await DeclaredTypes.open(
      {
        catalogue,
        ...ports,
        watches: noWatches,
        sessions: { drop: (resource) => tier.drop(resource), declared: () => {} },
        clock: life,
        log,
      },
      held,
    );
    const startedMs = life.now();
    const plainWriters = new PlainWriters(
      { pushes: store, known, clock: life, log, runningSinceMs: () => startedMs },
      { quietMs: plainQuietMs },
    );
    const opened = new SimProcess(parts, known, tier, { types, plainWriters, removals });
    world.own(`${name}: link`, opened.#following);
    return opened;
  }

  get clock(): Clock {
    return this.life;
  }

  /** Says goodbye, and waits until everything is on the disk. */
  async stop(): Promise<void> {
    const { store, tier, known, life } = this;
    store.beginClose();
    this.#stop.abort();
    tier.close();
    await Promise.all([this.#following, ...[...tier.children].map(({ gone }) => gone)]);
    this.#plainWriters.close();
    known.close();
    const removalsEnded = this.#types.close();
    await store.close();
    await removalsEnded;
    life.end();
  }
}
