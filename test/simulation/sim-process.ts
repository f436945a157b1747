/**
 * One process of a simulated cache, on SQLite in memory: all parts of the real server that make a
 * tree, wired as the server wires them.
 */
import { BoundedLog } from '../../src/diagnostics/bounded-log.js';
import type { Caller } from '../../src/domain/caller.js';
import { Catalogue } from '../../src/domain/catalogue/catalogue.js';
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import type { LinkPolicies } from '../../src/domain/link-policies.js';
import type { Clock } from '../../src/domain/ports.js';
import { DeclaredTypes } from '../../src/intake/shards/declared-types.js';
import type { FrameConnection } from '../../src/frames/frame-connection.js';
import type { TreeStatus } from '../../src/domain/status.js';
import { Freshness } from '../../src/intake/shards/freshness.js';
import { HeldRemovals } from '../../src/intake/shards/held-removals.js';
import { PlainWrites, type SeenElsewhere } from '../../src/intake/writes/plain-writes.js';
import type { PublishedState } from '../../src/domain/published-state.js';
import { AssumedSyncs } from '../../src/intake/writes/assumed-syncs.js';
import { PushSession, type PushSessionParts } from '../../src/intake/push/push-session.js';
import { PushSessions } from '../../src/intake/push/push-sessions.js';
import type { IntakeRules } from '../../src/intake/push/receiver-state.js';
import { Standbys } from '../../src/intake/push/standbys.js';
import { ChildShards } from '../../src/tree/child-shards.js';
import { Tree, type TreeOptions } from '../../src/tree/tree.js';
import type { MemoryStore } from '../support/store/memory-disk.js';
import { shardName } from '../support/objects.js';
import { shardOfHost } from './sim-pusher.js';
import type { PartyPlace } from './sim-party.js';
import type { ProcessLife } from './process-life.js';
import type { SimWorld } from './sim-world.js';

export type SimProcessParts = Readonly<{
  name: string;
  world: SimWorld;
  life: ProcessLife;
  store: MemoryStore;
  random: () => number;
  intake: IntakeBounds;
}>;

type OpenParts = SimProcessParts &
  Readonly<{
    known: PublishedState;
    tree: Tree;
    types: DeclaredTypes;
    assumedSyncs: AssumedSyncs;
    removals: HeldRemovals;
    sessions: PushSessions;
    rules: IntakeRules;
    boundedLog: BoundedLog;
  }>;

/** How much its neighbours may send before it acknowledges, and the size limit of a body. */
export type IntakeBounds = Readonly<{ creditMutations: number; bodyBytesMax: number }>;

export const defaultIntake: IntakeBounds = { creditMutations: 2_048, bodyBytesMax: 3 * 1024 * 1024 };

const frameBounds = { frameBytesMax: 4 * 1024 * 1024, frameMutationsMax: 512 };
const creditBytes = 8 * 1024 * 1024;
const version = 'simulated';
/** No test reads this part of the report. */
const noTree: Omit<TreeStatus, 'complete'> = { name: null, route: [], hops: null, parent: null, children: [] };
const awayRetryMs = 100;
const plainQuietMs = 30_000;
const plainHoldMs = 30_000;
const holdLimits = { percentMax: 50, removesMin: 100, graceMs: 3_600_000 };

export class SimProcess implements PartyPlace {
  readonly life: ProcessLife;
  readonly store: MemoryStore;
  readonly known: PublishedState;
  readonly tree: Tree;
  readonly plainWrites: PlainWrites;
  /** The source of its status report. */
  readonly freshness: Freshness;
  readonly #parts: OpenParts;
  readonly #standbys: Standbys;
  readonly #running = new Set<Promise<void>>();
  /** For connections that are not links: how to end them. */
  readonly #byes = new Map<FrameConnection, FrameConnection['close']>();
  readonly #stop = new AbortController();
  readonly #following: Promise<void>;

  private constructor(parts: OpenParts) {
    const { life, store, known, tree, sessions, removals } = parts;
    this.#parts = parts;
    this.life = life;
    this.store = store;
    this.known = known;
    this.tree = tree;
    const startedMs = life.now();
    const seenMs: SeenElsewhere = (shard, neighbour) => tree.seenMs(shard, neighbour);
    const runningSinceMs = (): number => startedMs;
    const isReached: Tree['isReached'] = (...way) => tree.isReached(...way);
    this.#standbys = new Standbys(
      { own: store.cacheId, known, sessions, seenMs, runningSinceMs, isReached, hasLinks: () => true, clock: life },
      { holdMs: plainHoldMs },
    );
    this.plainWrites = new PlainWrites(
      {
        own: store.cacheId,
        known,
        clock: life,
        seenMs,
        runningSinceMs,
        pushers: sessions,
      },
      { holdMs: plainHoldMs },
    );
    this.freshness = new Freshness({
      store,
      known,
      sessions,
      standbys: this.#standbys,
      isKnown: () => true,
      links: tree.freshness,
      newest: { of: () => store.revisions.published },
      removals,
      kept: undefined,
      clock: life,
      turn: () => Promise.resolve(),
      version,
      reportTree: () => ({ ...noTree, complete: this.tree.isComplete }),
      tree,
      isReady: () => tree.isReady,
      certificates: () => [],
    });
    this.#following = tree.run(this.#stop.signal);
  }

  static async open(parts: SimProcessParts, policies: LinkPolicies, options: TreeOptions): Promise<SimProcess> {
    const { world, name, store, life, random, intake } = parts;
    const limits = { ...frameBounds, bodyBytesMax: intake.bodyBytesMax };
    const credit = { mutations: intake.creditMutations, bytes: creditBytes };
    const log = world.log(name);
    const catalogue = new Catalogue(kcpTypes);
    const known = store.state;
    const sessions = new PushSessions(store.writer, life.now());
    const rules: IntakeRules = { typeOf: (resource, shard) => catalogue.find(resource, shard), credit, limits, systemClusters: new Set() };
    const boundedLog = new BoundedLog({ clock: life, log });
    const removals = new HeldRemovals({ clock: life, log }, holdLimits);
    const tree = new Tree(
      {
        store,
        clock: life,
        random,
        turn: life.turn,
        log,
        boundedLog,
        metrics: world.metrics,
        pushers: sessions,
        sendPushersAway: () => sessions.evictAll('unavailable', 'the store was rolled back', awayRetryMs),
        removals,
        reportAbsent: () => Promise.resolve(),
        rules,
        childShards: new ChildShards(known, 1_000),
        connect: (url, signal) => world.network.connect(name, url, signal),
      },
      policies,
      options,
    );
    const held = [...store.state.slices].filter(({ objects }) => objects > 0).map(({ slice: { resource } }) => resource);
    const { objects, revisions, writer, commits } = store;
    const noWatches = { endOf: () => {} };
    const types = await DeclaredTypes.open(
      {
        catalogue,
        objects,
        revisions,
        writer,
        commits,
        watches: noWatches,
        sessions: {
          drop: (resource) => {
            sessions.drop(resource);
            tree.drop(resource);
          },
          declared: () => sessions.declared(),
        },
        clock: life,
        log,
      },
      held,
    );
    const startedMs = life.now();
    const assumedSyncs = new AssumedSyncs(
      { writer, known, clock: life, log, runningSinceMs: () => startedMs, isLeader: () => true },
      { quietMs: plainQuietMs },
    );
    store.state.follow(({ slices }) => {
      for (const { slice, objects } of slices) if (objects === 0) removals.forget(slice);
    });
    store.state.follow(({ shards }) => {
      for (const state of shards) sessions.evictOlder(state.shard, state, `another pusher has the shard ${state.shard} now`);
    });
    const opened = new SimProcess({ ...parts, known, tree, types, assumedSyncs, removals, sessions, rules, boundedLog });
    world.own(`${name}: link`, opened.#following);
    return opened;
  }

  get clock(): Clock {
    return this.life;
  }

  /**
   * Serves a connection until it is closed. The network stands in for the certificate: it names the
   * host that connects.
   */
  async accept(connection: FrameConnection, from: string): Promise<void> {
    this.#byes.set(connection, (...why) => connection.close(...why));
    const running = this.#accept(connection, from).finally(() => {
      this.#running.delete(running);
      this.#byes.delete(connection);
    });
    this.#running.add(running);
    return running;
  }

  async #accept(connection: FrameConnection, from: string): Promise<void> {
    const { store, sessions, removals, rules, boundedLog, world } = this.#parts;
    const frames = connection.frames()[Symbol.asyncIterator]();
    const first = await Promise.race([frames.next(), connection.closed.then(() => undefined)]);
    if (first === undefined || first.done === true) return;
    if (first.value.kind !== 'hello') throw new Error(`${from} began with ${first.value.kind}`);
    const pushed = shardOfHost(from);
    const caller: Caller = {
      user: from,
      groups: [],
      speaksFor: pushed === undefined ? { kind: 'cache', name: from } : { kind: 'shard', shard: shardName(pushed) },
    };
    if (pushed === undefined) {
      this.#byes.delete(connection);
      return this.tree.accept(connection, { hello: first.value, frames, caller });
    }
    const parts: PushSessionParts = {
      store,
      sessions,
      removals,
      clock: this.life,
      turn: this.life.turn,
      log: boundedLog,
      metrics: world.metrics,
      standbys: this.#standbys,
      rules,
    };
    const session = new PushSession(connection, caller, parts);
    this.#byes.set(connection, (...why) => session.bye(...why));
    await session.run(first.value, frames);
  }

  /** Sends a `bye` to its peers, and waits until everything is on the disk. */
  async stop(): Promise<void> {
    const { store, tree, life } = this;
    const { assumedSyncs, types } = this.#parts;
    store.beginClose();
    this.#stop.abort();
    for (const bye of this.#byes.values()) bye('shutdown', 'the server is stopping', 0);
    tree.close();
    await Promise.all([this.#following, ...this.#running]);
    this.#standbys.close();
    assumedSyncs.close();
    const removalsEnded = types.close();
    await store.close();
    await removalsEnded;
    life.end();
  }
}
