/**
 * One cache of a simulated tree: the real tree on SQLite in memory. Its process can stop, crash,
 * freeze and come back, and its disk can be lost or restored from a copy.
 *
 *   start ──▶ running ── stop ──▶ down     its peers get a `bye`
 *               │  └──── crash ─▶ down     unacknowledged changes may be lost
 *               └─ freeze ⇄ thaw
 *   down: wipe, restore, follow (another parent), then start
 */
import type { LinkPolicies } from '../../src/domain/link-policies.js';
import type { FrameConnection } from '../../src/frames/frame-connection.js';
import type { ShardState } from '../../src/domain/claim.js';
import type { SliceState } from '../../src/domain/push.js';
import { formatSlice } from '../../src/domain/slice.js';
import type { ShardName } from '../../src/domain/shard.js';
import { childNeighbour, type Via } from '../../src/domain/via.js';
import type { StatusReport } from '../../src/domain/status.js';
import type { FreshnessQuestion, TypeFreshnessReport } from '../../src/domain/type-freshness.js';
import { defaultSenderBounds } from '../../src/sender/sender-options.js';
import { linkReconnectBounds } from '../../src/tree/links/link.js';
import type { Tree, TreeOptions } from '../../src/tree/tree.js';
import { aPolicy } from '../support/link-rules.js';
import { MemoryDisk, type MemoryStore, type MemoryStoreOptions } from '../support/store/memory-disk.js';
import type { ModelCache } from './model-tree.js';
import { ProcessLife } from './process-life.js';
import { fractions } from './seeded-random.js';
import type { PlainParty } from './sim-party.js';
import { defaultIntake, SimProcess, type IntakeBounds } from './sim-process.js';
import type { SimWorld } from './sim-world.js';
import type { UnansweredPushes } from './unanswered-pushes.js';
import { StoreHistory } from './store-history.js';

export type SimCacheOptions = Partial<TreeOptions> &
  Readonly<{
    store?: Partial<MemoryStoreOptions>;
    unanswered?: UnansweredPushes;
    intake?: Partial<IntakeBounds>;
    /** For single caches, by name. */
    intakeOf?: Readonly<Record<string, Partial<IntakeBounds>>>;
  }>;

export class SimCache {
  readonly name: string;
  readonly #world: SimWorld;
  readonly #options: SimCacheOptions;
  readonly #random: () => number;
  readonly #parties = new Set<PlainParty>();
  /** The digests of slices that are not empty, as the store has reported them. */
  readonly #digests = new Map<string, string>();
  readonly #vias = new Map<ShardName, Via | undefined>();
  #policies: ModelCache;
  #disk: MemoryDisk;
  #process: SimProcess | undefined;
  #isFrozen = false;
  #thawedMs = -Infinity;
  /** When its parent or its policies last changed, by the world's clock. */
  #configuredMs = -Infinity;

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

  /** Whether it would answer a request. */
  get isAnswering(): boolean {
    return this.isRunning && !this.#isFrozen;
  }

  report(): Promise<StatusReport> {
    return this.#running().freshness.report();
  }

  /** How fresh this cache is for a type. */
  freshnessOf(question: FreshnessQuestion): Promise<TypeFreshnessReport> {
    return this.#running().freshness.ofType(question);
  }

  /** Whether this cache has ever met that child, as far as its disk remembers. */
  remembers(child: string): boolean {
    return this.#disk.remembers(childNeighbour(child));
  }

  get configuredMs(): number {
    return this.#configuredMs;
  }

  /** Its parent and its policies, in the form of the model. */
  get model(): ModelCache {
    return this.#policies;
  }

  get store(): MemoryStore {
    return this.#running().store;
  }

  get tree(): Tree {
    return this.#running().tree;
  }

  get digests(): ReadonlyMap<string, string> {
    return this.#digests;
  }

  via(shard: ShardName): Via | undefined {
    return this.#vias.get(shard);
  }

  /** The shards that its running process knows. */
  get known(): SimProcess['known'] {
    return this.#running().known;
  }

  /** `skewMs`: the error of its clock. */
  async start({ skewMs = 0 }: Readonly<{ skewMs?: number }> = {}): Promise<void> {
    if (this.#process !== undefined) throw new Error(`${this.name} runs already`);
    const { time, network } = this.#world;
    const life = new ProcessLife(time, { skewMs });
    const store = this.#disk.open({ clock: life, soon: life.soon, random: this.#random }, this.#options.store);
    this.#options.unanswered?.interpose(store.writer);
    this.#follow(store);
    const process = await this.#open(life, store);
    this.#process = process;
    const greet = (connection: FrameConnection, from: string): void =>
      this.#world.own(`${this.name}: ${from}`, process.accept(connection, from));
    network.listen(this.name, greet, () => life.now());
    for (const party of this.#parties) this.#run(party, process);
  }

  /** Sends a `bye` to its peers, and waits until everything is on the disk. */
  async stop(): Promise<void> {
    const process = this.#running();
    this.#world.network.unlisten(this.name);
    this.#process = undefined;
    for (const party of this.#parties) party.leave();
    await process.stop();
  }

  /**
   * Kills the process. `isNoticed`: its system still resets its connections; after a power failure
   * it does not.
   */
  crash({ underWay = 'lost', isNoticed = true }: Readonly<{ underWay?: 'lost' | 'kept'; isNoticed?: boolean }> = {}): void {
    const { life, store } = this.#running();
    this.#process = undefined;
    this.#isFrozen = false;
    life.end();
    this.#disk = store.crash(underWay);
    if (isNoticed) this.#world.network.crash(this.name);
    else this.#world.network.vanish(this.name);
    for (const party of this.#parties) party.leave();
  }

  /** Sets the wall clock of its machine, until its next start. */
  stepClock(byMs: number): void {
    this.#process?.life.stepWall(byMs);
  }

  /** When it resumed after its last pause, by the world's clock. */
  get thawedMs(): number {
    return this.#thawedMs;
  }

  freeze(): void {
    this.#isFrozen = true;
    this.#running().life.freeze();
    this.#world.network.freeze(this.name);
  }

  thaw(): void {
    this.#isFrozen = false;
    this.#thawedMs = this.#world.time.now();
    this.#running().life.thaw();
    this.#world.network.thaw(this.name);
  }

  /** A copy of the disk, to be restored later. */
  backup(): MemoryDisk {
    return this.#process?.store.backup() ?? this.#disk.copy();
  }

  restore(disk: MemoryDisk): void {
    this.#mustBeDown();
    this.#disk = disk.copy();
  }

  wipe(): void {
    this.#mustBeDown();
    this.#disk = MemoryDisk.blank(this.#random);
  }

  /** Sets another parent, or none, from the next start on. */
  follow(parent: string | undefined): void {
    this.#mustBeDown();
    this.#policies = { ...this.#policies, parent };
    this.#configuredMs = this.#world.time.now();
  }

  changePolicies(policies: Partial<Pick<ModelCache, 'forward' | 'follow' | 'children'>>): void {
    this.#policies = { ...this.#policies, ...policies };
    this.#configuredMs = this.#world.time.now();
    this.#process?.tree.changePolicies(linkPolicies(this.#policies));
  }

  /** Connects the party to this cache, now and whenever the cache comes back. */
  attach(party: PlainParty): void {
    if (this.#parties.has(party)) return;
    this.#parties.add(party);
    if (this.#process !== undefined) this.#run(party, this.#process);
  }

  detach(party: PlainParty): void {
    if (this.#parties.delete(party)) party.leave();
  }

  #run(party: PlainParty, process: SimProcess): void {
    this.#world.own(`${this.name}: ${party.shard}`, party.run(process));
  }

  #follow(store: MemoryStore): void {
    this.#digests.clear();
    this.#vias.clear();
    const learn = ({ shards, slices }: Readonly<{ shards: Iterable<ShardState>; slices: Iterable<SliceState> }>): void => {
      for (const { shard, via } of shards) this.#vias.set(shard, via);
      for (const { slice, objects, digest } of slices) {
        if (objects === 0) this.#digests.delete(formatSlice(slice));
        else this.#digests.set(formatSlice(slice), digest);
      }
    };
    learn(store.state);
    store.state.follow(learn);
    const history = new StoreHistory((problem) => this.#world.fault(`${this.name}: ${problem}`), store.revisions.published);
    store.commits.subscribe((commit) => {
      history.see(commit);
      this.#world.published(this.name, commit);
    });
  }

  #open(life: ProcessLife, store: MemoryStore): Promise<SimProcess> {
    const { parent } = this.#policies;
    const { intake, intakeOf } = this.#options;
    return SimProcess.open(
      {
        name: this.name,
        world: this.#world,
        life,
        store,
        random: this.#random,
        intake: { ...defaultIntake, ...intake, ...intakeOf?.[this.name] },
      },
      linkPolicies(this.#policies),
      {
        ...defaultSenderBounds,
        ...linkReconnectBounds,
        progressIntervalMs: 5_000,
        refusedRetryMs: 60_000,
        digestIntervalMs: 600_000,
        readyGraceMs: 10_000,
        ...this.#options,
        urls: parent === undefined ? [] : [parent],
        name: this.name,
        term: life.now(),
        agent: 'simulation',
      },
    );
  }

  #running(): SimProcess {
    if (this.#process === undefined) throw new Error(`${this.name} does not run`);
    return this.#process;
  }

  #mustBeDown(): void {
    if (this.#process !== undefined) throw new Error(`${this.name} runs`);
  }
}

function linkPolicies({ forward, follow, children }: ModelCache): LinkPolicies {
  const ofChildren = Object.entries(children).map(([name, { accept: taken, offer }]) => {
    return [name, { accept: aPolicy(...taken.map((rule) => ({ shards: ['*'], ...rule }))), offer: aPolicy(...offer) }] as const;
  });
  return { forward: aPolicy(...forward), follow: aPolicy(...follow), children: new Map(ofChildren) };
}
