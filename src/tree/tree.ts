/**
 * This cache in the tree: the links to its parent and its children, and what it knows through them.
 *
 *              parent
 *     claims,    ▲ │  claims,
 *     forward    │ ▼  follow
 *            this cache
 *              ▲ │
 *              │ ▼
 *             children
 *
 * An object crosses a link if the policies of both ends allow it (link-filter.ts). Claims travel to
 * every neighbour, and decide each shard's via (domain/claim.ts). The tree as a whole is stored
 * nowhere: a cache knows its neighbours, and the ids above it.
 */
import type { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import type { Change } from '../domain/change.js';
import { isDeclaring, parseDeclaration } from '../domain/catalogue/declaration.js';
import type { LinkPolicies } from '../domain/link-policies.js';
import type { Caller } from '../domain/caller.js';
import type { Clock, Subscription } from '../domain/ports.js';
import type { PushLane, Store } from '../domain/store-port.js';
import { formatResource, type Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import { childOf, childNeighbour, type Neighbour } from '../domain/via.js';
import type { Slice } from '../domain/slice.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import { protocolVersion, type Frame, type FrameOf, type SliceReport } from '../frames/frame.js';
import type { ChildShards } from './child-shards.js';
import { Children, type Child } from './children.js';
import { childPolicy, EqualFilters, parentPolicy, type EndPolicy } from './filters/link-filters.js';
import { isWhole } from '../intake/shards/freshness.js';
import type { PublishedState } from '../domain/published-state.js';
import type { IntakeRules } from '../intake/push/receiver-state.js';
import type { HeldRemovals } from '../intake/shards/held-removals.js';
import type { PushSessions } from '../intake/push/push-sessions.js';
import { Forgetting } from './forgetting.js';
import { Link, type LinkBounds, type LinkParts, type LinkState } from './links/link.js';
import { LinkSession, type LinkPeer, type LinkSessionParts } from './links/link-session.js';
import type { LinkSenderOptions } from './links/link-sender.js';
import { LogChunks } from './links/log-chunks.js';
import { whileLeading } from './while-leading.js';
import { Readiness } from './readiness.js';
import { Rollback, type RollbackParts } from './rollback.js';
import { Routes } from './routes.js';
import { ReportedFreshness, type OpenNeighbour } from './reported-freshness.js';
import { FreshnessChanges } from './links/freshness-changes.js';
import { PushedShards } from './pushed-shards.js';
import { receiveSwept, sendSwept, type ReceiveSweptParts } from './links/swept-keys.js';

export type TreeParts = Readonly<{
  store: Store;
  rules: IntakeRules;
  removals: HeldRemovals;
  pushers: Pick<PushSessions, 'freshness' | 'present' | 'keeps' | 'leavesOut' | 'follow'>;
  childShards: Pick<ChildShards, 'tryAdd' | 'leave'>;
  connect: LinkParts['connect'];
  sendPushersAway: RollbackParts['sendPushersAway'];
  reportAbsent: ReceiveSweptParts['reportAbsent'];
  clock: Clock;
  random: () => number;
  turn: () => Promise<void>;
  log: Log;
  boundedLog: BoundedLog;
  metrics: LinkSessionParts['metrics'];
}>;

export type TreeOptions = LinkSenderOptions &
  LinkBounds &
  Readonly<{
    name: string;
    /** When this process started, in milliseconds since 1970. */
    term: number;
    agent: string;
    /** How long readers wait for a parent that does not connect. */
    readyGraceMs: number;
  }>;

const notLeading = 'another server of this cache has its links; please connect again';
/** The child's next connection may reach the server that leads. */
const elsewhereRetryMs = 500;
const unreported = { connected: false, lagMs: 0, whole: false };

export class Tree {
  readonly #parts: TreeParts;
  readonly #options: TreeOptions;
  readonly #known: PublishedState;
  readonly #reported: ReportedFreshness;
  readonly #children: Children;
  readonly #link: Link | undefined;
  readonly #routes: Routes;
  readonly #pushed: PushedShards;
  readonly forgetting: Forgetting;
  readonly #freshnessChanges: FreshnessChanges;
  readonly #equalFilters = new EqualFilters();
  readonly #history: LogChunks;
  readonly #rollback: Rollback;
  readonly #subscriptions: readonly Subscription[];
  readonly #parentLane: PushLane;
  readonly #readiness: Readiness;
  #policies: LinkPolicies;
  #routeAbove: readonly string[] = [];

  /** Does not connect to the parent until `run`. */
  constructor(parts: TreeParts, policies: LinkPolicies, options: TreeOptions) {
    const { store, clock } = parts;
    const known = store.state;
    this.#parts = parts;
    this.#history = new LogChunks({ history: store.history, clock });
    this.#options = options;
    this.#known = known;
    this.#policies = policies;
    const children = [...known.links].map(({ neighbour }) => neighbour).filter((neighbour) => neighbour !== 'parent');
    const neighbours: readonly Neighbour[] = options.urls.length > 0 ? ['parent', ...children] : children;
    this.#reported = new ReportedFreshness(clock, neighbours, (shard) => this.#routes.unreachedMs(shard));
    this.#parentLane = store.writer.lane();
    this.#rollback = new Rollback({ ...parts, links: () => this.#sessions() });
    this.#children = new Children({
      writer: store.writer,
      clock,
      log: parts.boundedLog,
      open: (connection, lane, peer, name) => this.#open({ connection, lane }, peer, childPolicy(this.#policies, name)),
      welcome: () => this.#welcome(),
      route: () => this.route,
    });
    this.#link = options.urls.length === 0 ? undefined : this.#linkToParent();
    this.#freshnessChanges = new FreshnessChanges({ ...parts, known, freshness: this.#reported, sessions: () => this.#neighbours() });
    this.#routes = new Routes({
      own: store.cacheId,
      known,
      lane: store.writer.lane(),
      clock,
      log: parts.boundedLog,
      mayClaim: (shard, from) => this.#sessionOf(from)?.acceptsClaim(shard) === true && parts.childShards.tryAdd(from, shard),
      hasPusher: (shard) => this.#pushed.has(shard),
      changed: (shard) => {
        this.#sendClaim(shard);
        this.#freshnessChanges.notify([...known.slicesOf(shard)].map(({ slice }) => slice));
      },
    });
    this.#pushed = new PushedShards({ ...parts, known, changed: (shard) => this.#sendClaim(shard) });
    this.forgetting = new Forgetting({
      ...parts,
      children: this.#children,
      onForgotten: (neighbour) => {
        this.#reported.forget(neighbour);
        this.#freshnessChanges.check();
      },
    });
    this.#subscriptions = [
      known.follow(({ shards }) => this.#routes.follow(shards)),
      sendSwept({ store, sessionOf: (neighbour) => this.#sessionOf(neighbour) }),
      store.commits.subscribe(({ changes }) => {
        // Wait a turn: DeclaredTypes (intake/shards/declared-types.ts) follows this commit too,
        // perhaps later in this turn.
        if (changes.some(({ key }) => isDeclaring(key.resource))) void parts.turn().then(() => this.#declared(changes));
      }),
      store.peers.follow(() => {
        if (store.peers.leadsSinceMs !== undefined) return;
        for (const { session } of this.#children.connected) session.bye('unavailable', notLeading, elsewhereRetryMs);
      }),
    ];
    this.#readiness = new Readiness({ known, reported: this.#reported, clock, hasParent: this.#link !== undefined }, options);
  }

  /**
   * The id of this cache, then the ids above it that the parent sent last. This cache keeps the
   * latter while the parent is not connected, to detect the loop if its parent connects as a child.
   */
  get route(): readonly string[] {
    return [this.#parts.store.cacheId, ...this.#routeAbove];
  }

  /** The name by which the parent knows this cache. Undefined without a parent. */
  get name(): string | undefined {
    return this.#link === undefined ? undefined : this.#options.name;
  }

  /** Undefined without a parent. */
  get parent(): LinkState | undefined {
    return this.#link?.state;
  }

  get parentId(): string | undefined {
    return this.parent?.kind === 'open' ? this.parent.cacheId : undefined;
  }

  get children(): Iterable<Child> {
    return this.#children.connected;
  }

  get claims(): ReadonlyMap<Neighbour, number> {
    return this.#routes.claims;
  }

  get policies(): LinkPolicies {
    return this.#policies;
  }

  get freshness(): Pick<ReportedFreshness, 'presence' | 'shard' | 'slice' | 'reportedOf'> {
    return this.#reported;
  }

  get isReady(): boolean {
    return this.#readiness.isReady;
  }

  /**
   * Keeps the link to the parent while this server leads, until `signal` is aborted. Resolves at
   * once if there is no parent.
   */
  async run(signal: AbortSignal): Promise<void> {
    const link = this.#link;
    if (link !== undefined) await whileLeading(this.#parts.store.peers, signal, (leading) => link.run(leading));
  }

  /**
   * Serves the link of a child until it is closed. `hello` was already read from `frames`. Only the
   * server that leads has links.
   */
  async accept(
    connection: FrameConnection,
    greeting: Readonly<{ hello: FrameOf<'hello'>; frames: AsyncIterator<Frame>; caller: Caller }>,
  ): Promise<void> {
    if (this.#parts.store.peers.leadsSinceMs !== undefined) return this.#children.accept(connection, greeting);
    connection.close('unavailable', notLeading, elsewhereRetryMs);
    await connection.closed;
  }

  changePolicies(policies: LinkPolicies): void {
    this.#policies = policies;
    this.#link?.session?.changePolicy(parentPolicy(policies));
    for (const { name, session } of this.#children.connected) session.changePolicy(childPolicy(policies, name));
    this.#routes.policiesChanged();
  }

  drop(resource: Resource): void {
    for (const [neighbour, session] of this.#neighbours()) {
      const slices: Slice[] = [...this.#known.shards].filter((state) => state.via === neighbour).map(({ shard }) => ({ shard, resource }));
      session.followTypes([resource], slices);
      this.#parts.log.debug('link.type-dropped', { neighbour, type: formatResource(resource) });
    }
  }

  /** The freshness of a slice, as its pusher or its link reports it. */
  freshnessOf(slice: Slice): SliceReport {
    const shard = this.#known.shard(slice.shard);
    if (shard?.via === undefined) return unreported;
    const { via } = shard;
    const reported = (via === 'local' ? this.#parts.pushers.freshness(slice) : this.#reported.slice(via, slice)) ?? unreported;
    return { ...reported, whole: isWhole(this.#known.slice(slice), shard, reported.whole) };
  }

  /** Whether this cache knows every shard that any cache of the tree knows. */
  get isComplete(): boolean {
    return this.#freshnessChanges.isComplete();
  }

  /**
   * The last time at which a shard behind a link may have had a pusher. If nothing was reported of
   * the shard, that is when the link opened or closed, or when this server began to lead. A server
   * that does not lead knows nothing of links. There the result is the present time, so that no
   * shard counts as away.
   */
  seenMs(shard: ShardName, neighbour: Neighbour): number {
    const nowMs = this.#parts.clock.now();
    return Math.max(this.#parts.store.peers.leadsSinceMs ?? nowMs, this.#reportedMs(shard, neighbour, nowMs));
  }

  #reportedMs(shard: ShardName, neighbour: Neighbour, nowMs: number): number {
    const { connected, sinceMs } = this.#reported.shard(neighbour, shard);
    return connected ? nowMs : Math.max(sinceMs, this.#routes.unheldMs(shard) ?? this.#lostMs(shard, neighbour) ?? nowMs);
  }

  /**
   * Whether the shard's via answers and, as far as this cache knows, every link to the shard's
   * origin is up.
   */
  isReached(shard: ShardName, neighbour: Neighbour): boolean {
    return this.#lostMs(shard, neighbour) === undefined;
  }

  /** Ends the sessions of all children. The session of the parent ends with the signal of `run`. */
  close(): void {
    for (const subscription of this.#subscriptions) subscription.cancel();
    this.#freshnessChanges.close();
    this.#pushed.close();
    this.#routes.close();
    for (const { session } of this.#children.connected) session.bye('shutdown', 'the cache is stopping', 0);
  }

  #sendClaim(shard: ShardName): void {
    for (const session of this.#sessions()) session.sendClaim(shard);
  }

  #linkToParent(): Link {
    const { name, term, agent } = this.#options;
    const { store, rules } = this.#parts;
    const hello = { name, cacheId: store.cacheId, term, agent, credit: rules.credit, limits: rules.limits };
    const open = (connection: FrameConnection, peer: LinkPeer): LinkSession =>
      this.#open({ connection, lane: this.#parentLane }, peer, parentPolicy(this.#policies));
    return new Link({ ...this.#parts, open }, { ...this.#options, hello });
  }

  #open(ends: Readonly<{ connection: FrameConnection; lane: PushLane }>, peer: LinkPeer, policy: EndPolicy): LinkSession {
    const { log } = this.#parts;
    const { neighbour } = peer;
    let reported: OpenNeighbour | undefined;
    // A peer that the store refuses is no neighbour, and this cache expects no reports from it.
    const met = (): void => {
      const open = (reported = this.#reported.up(neighbour));
      // From now on a new neighbour counts as not complete.
      this.#freshnessChanges.check();
      void ends.connection.closed.then(() => {
        open.down();
        this.#freshnessChanges.check();
      });
    };
    return new LinkSession(
      ends,
      { peer, policy },
      {
        ...this.#parts,
        log: log.child({ neighbour, peer: ends.connection.peer }),
        freshnessOf: (slice) => this.freshnessOf(slice),
        met,
        reported: (report, askedMs) => this.#freshnessChanges.recordReport(neighbour, () => reported?.record(report, askedMs) ?? []),
        routed: (route) => this.#follow(route),
        isSynced: (slice) => this.#isSynced(slice),
        canArrive: (slice) => this.#canArrive(slice),
        unknown: (slice) => this.#ask(slice),
        unknownOf: (shard) => this.#unknownOf(shard),
        isComplete: (but) => this.#freshnessChanges.isComplete(but),
        filtersChanged: () => this.#freshnessChanges.check(),
        isRolledBack: (from, position) => this.#rollback.detect(from, position),
        routes: this.#routes,
        equalFilters: this.#equalFilters,
        history: this.#history,
        swept: (frame) => receiveSwept(frame, { ...this.#parts, known: this.#known }),
      },
      this.#options,
    );
  }

  #welcome(): FrameOf<'welcome'> {
    const { store, rules } = this.#parts;
    const { credit, limits } = rules;
    return {
      kind: 'welcome',
      protocol: protocolVersion,
      cacheId: store.cacheId,
      epoch: store.epoch,
      term: 0,
      credit,
      limits,
    };
  }

  /**
   * The parent has sent its id and those above it. Passes them on to all children, but ends the
   * session of a child that is among them.
   */
  #follow(route: readonly string[]): 'loop' | undefined {
    if (route.includes(this.#parts.store.cacheId)) return 'loop';
    this.#routeAbove = route;
    for (const { session, cacheId } of this.#children.connected) {
      if (route.includes(cacheId)) session.bye('loop', 'a cache cannot follow a cache below itself');
      else session.send({ kind: 'route', route: this.route });
    }
    return undefined;
  }

  /**
   * Since when no path reaches the shard's origin, or the shard's via does not answer. Undefined if
   * neither is so.
   */
  #lostMs(shard: ShardName, neighbour: Neighbour): number | undefined {
    const { isUp, sinceMs } = this.#reported.presence(neighbour);
    return this.#routes.unreachedMs(shard) ?? (isUp ? undefined : sinceMs);
  }

  /**
   * A slice without objects also counts as synced if none can arrive, because its pusher does not
   * name it or its link's policies exclude it.
   */
  #isSynced(slice: Slice): boolean {
    if (this.#known.isSynced(slice)) return true;
    const via = this.#known.shard(slice.shard)?.via;
    if (via === undefined || (this.#known.slice(slice)?.objects ?? 0) > 0) return false;
    return via === 'local' ? this.#parts.pushers.leavesOut(slice) : this.#sessionOf(via)?.brings(slice) === false;
  }

  /**
   * Whether the slice can arrive over a link now. It cannot while its type is not declared here.
   */
  #canArrive({ shard, resource }: Slice): boolean {
    const via = this.#known.shard(shard)?.via;
    return via !== undefined && via !== 'local' && this.#parts.rules.typeOf(resource, shard) !== undefined;
  }

  /**
   * Asks the shard's via about a slice that another neighbour holds and this cache does not know.
   */
  #ask(slice: Slice): void {
    const via = this.#known.shard(slice.shard)?.via;
    if (via !== undefined && via !== 'local') this.#sessionOf(via)?.request(slice);
  }

  *#unknownOf(shard: ShardName): Iterable<Slice> {
    for (const session of this.#sessions()) yield* session.unknownOf(shard);
  }

  #sessionOf(neighbour: Neighbour): LinkSession | undefined {
    const child = childOf(neighbour);
    return child === undefined ? this.#link?.session : this.#children.find(child)?.session;
  }

  followTypes(types: readonly Resource[]): void {
    for (const session of this.#sessions()) session.followTypes(types, []);
  }

  #declared(changes: readonly Change[]): void {
    const types = changes.flatMap((change) => {
      if (change.kind !== 'put' || !isDeclaring(change.key.resource)) return [];
      return parseDeclaration(change.key, change.object.body.bytes) ?? [];
    });
    this.followTypes(types);
  }

  *#neighbours(): Iterable<readonly [Neighbour, LinkSession]> {
    const parent = this.#link?.session;
    if (parent !== undefined) yield ['parent', parent];
    for (const { name, session } of this.#children.connected) yield [childNeighbour(name), session];
  }

  *#sessions(): Iterable<LinkSession> {
    for (const [, session] of this.#neighbours()) yield session;
  }
}
