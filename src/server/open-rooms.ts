/**
 * Opens every room over an open store, hands out ports, and closes the rooms in reverse order. This
 * is the only file that knows all rooms. It is loaded while the committer's thread starts
 * (server.ts).
 */
import { setImmediate } from 'node:timers';
import { setImmediate as turn } from 'node:timers/promises';
import { keptNamesOf, linkPoliciesOf, type Settings } from '../config/settings.js';
import { EventLoopDelay } from '../diagnostics/event-loop-delay.js';
import type { LastLines } from '../diagnostics/last-lines.js';
import { pollFiles } from '../certificates/polled-files.js';
import type { TypesFile } from '../config/files/types-file.js';
import { Catalogue } from '../domain/catalogue/catalogue.js';
import { pathTypes } from '../domain/path-entry.js';
import { Refused } from '../domain/errors.js';
import type { Shards, Subscription } from '../domain/ports.js';
import type { Store } from '../domain/store-port.js';
import type { Resource } from '../domain/resource.js';
import type { Revision } from '../domain/revision.js';
import type { Scope } from '../domain/scope.js';
import type { LinkPolicies } from '../domain/link-policies.js';
import { ReloadedTogether, type Reloadable, type Reloaded } from '../domain/base/reloaded.js';
import type { TreeStatus } from '../domain/status.js';
import { describeServer } from './describe-server.js';
import { openConsole } from './open-console.js';
import { openEndpoint, intakeRules } from './open-endpoint.js';
import type { FrontDoorSettings } from './open-front-door.js';
import { openPaths } from './open-paths.js';
import { openListener, type ServingParts } from './open-listener.js';
import type { ListenerParts } from '../http/listener.js';
import { openTier } from './open-tier.js';
import { heavyLimits, HeavyThread } from '../heavy/heavy-thread.js';
import { PlainWrites, type SeenElsewhere } from '../intake/writes/plain-writes.js';
import { KeptObjects } from '../intake/shards/kept-objects.js';
import { NewestChanges } from '../intake/shards/newest-changes.js';
import { AssumedSyncs } from '../intake/writes/assumed-syncs.js';
import { treeReport } from '../tier/tree-report.js';
import { DeclaredTypes } from '../intake/shards/declared-types.js';
import { Freshness } from '../intake/shards/freshness.js';
import { HeldRemovals } from '../intake/shards/held-removals.js';
import { Intake } from '../intake/writes/intake.js';
import { MigratedClusters } from '../intake/shards/migrated-clusters.js';
import { PushSessions } from '../intake/push/push-sessions.js';
import { PushersElsewhere } from '../intake/push/pushers-elsewhere.js';
import { RunningSince } from '../intake/shards/running-since.js';
import { ShardRemoval } from '../intake/shards/shard-removal.js';
import { Standbys } from '../intake/push/standbys.js';
import { PeerReports } from '../intake/push/peer-reports.js';
import { version } from '../version.js';
import { Hub } from '../watch/hub.js';
import { Pace } from '../domain/base/pace.js';
import { RecentChanges } from '../domain/recent-changes.js';
import { SharedSnapshots } from '../watch/shared-snapshots.js';
import { createApp } from '../web/app.js';
import type { KubePorts } from '../web/kube/call.js';
import { Gzip } from '../web/formats/gzip.js';
import { RootSchemas } from '../web/discovery/root-schemas.js';
import { ViewCallers } from '../web/views/view-callers.js';

export type OpenServer = Readonly<{
  port: number;
  /**
   * Reloads at once what may change while the server runs. The keys are the names that the log
   * uses.
   */
  reload: () => ReadonlyMap<string, Reloaded>;
  /** Stops in the order that `http/listener.ts` gives. Resolves when everything is closed. */
  stop: () => Promise<void>;
  /** Resolves when the server cannot go on. */
  failed: Promise<Error>;
}>;

type Room = Readonly<{ close: () => void | Promise<void> }>;

export type RoomParts = ServingParts &
  Readonly<{
    store: Store;
    random: () => number;
    typesFile: TypesFile;
    watchPolicies: WatchPolicies | undefined;
    frontDoor: FrontDoorSettings | undefined;
    lastLines: LastLines;
  }>;

/**
 * Publishes link policies that replace those of the settings, until the caller closes the result.
 */
export type WatchPolicies = (publish: (policies: LinkPolicies) => void) => Reloadable | undefined;

const eventLoop = { resolutionMs: 5, windowMs: 10_000 };
/** How long a plain HTTP writer must be quiet before what it wrote counts as complete. */
const plainQuietMs = 30_000;
const sharedBytesMax = 64 * 1024 * 1024;
/**
 * Several commits are delivered to watches together, so that delivery takes at most a quarter of
 * the time. A commit waits at most `periodMsMax`.
 */
const deliveryRounds = { periodFactor: 4, periodMsMax: 10 };
/**
 * How many bytes of initial state are sent in one turn of the event loop. TLS takes about a
 * millisecond for a megabyte.
 */
const turnBytesMax = 1024 * 1024;

/** Resolves when the server listens. */
export async function openRooms(settings: Settings, parts: RoomParts): Promise<OpenServer> {
  const { publicPaths } = settings;
  const { store, log, clock, random, metrics, health, certificates, quotas, typesFile, watchPolicies, frontDoor, lastLines } = parts;
  const catalogue = new Catalogue(typesFile.types, pathTypes);
  const pace = new Pace(turnBytesMax, setImmediate);
  const { objects, revisions, history, writer, commits, state: known, peers } = store;
  /** Closed when the server stops, the last one first. */
  const closeables: (Room | Subscription)[] = [store];
  const newest = new NewestChanges({ commits, revisions });
  const changedAt = ({ identity, ...type }: Scope): Revision => newest.of({ ...type, identity: identity === '*' ? undefined : identity });
  const snapshots = new SharedSnapshots({ objects, revisions, clock, pace, changedAt }, { sharedBytesMax }, (chunks) =>
    metrics.listChunksShared.add(chunks),
  );
  const observe = { fellBack: () => metrics.watchFallbacks.add(1), sent: (events: number) => metrics.eventsSent.add(events) };
  const pieceBytesMax = settings.listChunkBytesMax + settings.bodyBytesMax;
  const hub = new Hub(
    { clock, commits, revisions, history, objects, snapshots, pace, observe },
    {
      queueBytesMax: settings.watcherQueueBytesMax,
      pieceBytesMax: settings.listChunkBytesMax,
      readBytesMax: pieceBytesMax,
      bookmarkIntervalMs: settings.bookmarkIntervalMs,
      ...deliveryRounds,
    },
  );
  closeables.push(newest, snapshots, hub);
  const isLeader = (): boolean => peers.leadsSinceMs !== undefined;
  const elsewhere = new PushersElsewhere({ peers, state: known, clock });
  const sessions = new PushSessions(writer, clock.now(), elsewhere);
  const rules = intakeRules(settings, catalogue);
  const removals = new HeldRemovals(
    { clock, log },
    { percentMax: settings.removalHoldPercent, removesMin: settings.removalHoldMin, graceMs: settings.removalHoldGraceMs },
  );
  const emptied = known.follow(({ slices }) => {
    for (const { slice, objects } of slices) if (objects === 0) removals.forget(slice);
  });
  closeables.push(elsewhere, removals, emptied);
  const policies = linkPoliciesOf(settings);
  const tier = openTier(settings, policies, { store, sessions, removals, watches: hub, rules, clock, random, log, metrics });
  const dropType = (resource: Resource): void => {
    sessions.drop(resource);
    tier.drop(resource);
  };
  const declaredTypes = await DeclaredTypes.open(
    {
      catalogue,
      objects,
      revisions,
      writer,
      commits,
      watches: hub,
      sessions: { drop: dropType, declared: () => sessions.declared() },
      clock,
      log,
    },
    await objects.resources(),
  );
  closeables.push(declaredTypes);
  const seenMs: SeenElsewhere = (shard, neighbour) => tier.seenMs(shard, neighbour);
  const running = new RunningSince(clock);
  closeables.push(running);
  const runningSinceMs = (): number => running.ms();
  const keptNames = keptNamesOf(settings);
  const kept = keptNames.size === 0 ? undefined : await KeptObjects.open(keptNames, { objects, revisions, commits });
  if (kept !== undefined) closeables.push(kept);
  const plainWrites = new PlainWrites(
    { own: store.cacheId, known, clock, seenMs, runningSinceMs, pushers: sessions },
    { holdMs: settings.parentHoldMs },
  );
  const intake = new Intake({ objects, writer, clock, plainWrites, keptNames });
  closeables.push(new PeerReports({ peers, sessions, known, plainWrites, clock }));
  closeables.push(new AssumedSyncs({ writer, known, clock, log, runningSinceMs, isLeader }, { quietMs: plainQuietMs }));
  const originChanges = known.follow(({ shards: changed, invalidated }) => {
    for (const slice of invalidated) sessions.overwritten(slice);
    for (const state of changed) sessions.evictOlder(state.shard, state, `the shard ${state.shard} belongs to another now`);
  });
  const standbys = new Standbys(
    { own: store.cacheId, known, sessions, seenMs, runningSinceMs, isReached: tier.isReached.bind(tier), hasLinks: isLeader, clock },
    { holdMs: settings.parentHoldMs },
  );
  closeables.push(originChanges, standbys);
  const endpoint = openEndpoint(settings, { store, sessions, standbys, removals, rules, tier, clock, log, metrics });
  const removal = new ShardRemoval(
    {
      objects,
      revisions,
      writer,
      state: known,
      commits,
      sessions,
      seenMs,
      lastWriteMs: (shard) => plainWrites.lastWriteMs(shard),
      isLinkUp: (neighbour) => tier.freshness.presence(neighbour).isOpen,
      isLeader,
      clock,
      log,
    },
    { awayMaxMs: settings.shardAwayMaxMs || undefined, deletedGraceMs: settings.shardDeletedGraceMs || undefined },
  );
  closeables.push(removal, new MigratedClusters({ objects, revisions, commits, writer, known, isLeader, clock, log }));
  const shards: Shards = { remove: (shard) => removal.remove(shard), forget: (shard) => tier.forgetting.forget(shard) };
  const tree = (): TreeStatus => treeReport({ tier, known, clock });
  const freshness = new Freshness({
    store,
    known,
    sessions,
    standbys,
    isKnown: ({ resource, shard }) => catalogue.find(resource, shard) !== undefined,
    links: tier.freshness,
    newest,
    removals,
    kept,
    tree,
    tier,
    clock,
    turn,
    version: version(),
    isReady: () => health.isReady,
    certificates: () => certificates.expiry.report(),
  });

  const paths = openPaths({ store, freshness, changedAt: (type) => newest.of(type), metrics, clock, log });
  const movedPaths = new RecentChanges(revisions.published);
  commits.subscribe((commit) => {
    for (const path of commit.movedPaths) movedPaths.record(path, commit.revision);
  });
  const heavy = new HeavyThread({ clock, log }, heavyLimits);
  closeables.push(heavy);
  const ports: KubePorts = {
    objects,
    history,
    revisions,
    commits,
    paths: store.paths,
    movedPaths,
    snapshots,
    watches: hub,
    catalogue,
    intake,
    heavy,
    clock,
    random,
    schemas: new RootSchemas({ types: () => catalogue.table, objects, revisions, changedAt: (type) => newest.of(type) }),
    viewCallers: settings.viewCallers === 'rbac' ? new ViewCallers({ objects, revisions, freshness }) : undefined,
    gzip: new Gzip(),
    limits: { ...settings, pieceBytesMax },
  };
  const console = settings.console
    ? openConsole({ cacheId: store.cacheId, freshness, catalogue, metrics, lastLines, clock, log })
    : undefined;
  if (console !== undefined) closeables.push(console);
  const app = createApp(
    { ports, console, freshness, paths, shards, removals, caches: tier.forgetting, log, metrics, health, version: version(), publicPaths },
    settings,
  );
  const front =
    frontDoor &&
    (await import('./open-front-door.js').then(({ openFrontDoor }) =>
      openFrontDoor(
        frontDoor,
        { store, paths, freshness, health, metrics, clock, log },
        { ...settings, filesPollMs: settings.tlsFilesPollMs },
      ),
    ));
  if (front !== undefined) closeables.push(front);
  const asCache: Pick<ListenerParts, 'handle' | 'upgrade'> = {
    handle: app,
    upgrade: ({ request, socket, head, caller, refusal }) =>
      endpoint.upgrade(request, socket, head, caller, refusal instanceof Refused ? refusal.refusal : undefined),
  };
  const listener = openListener(settings, parts, front ?? asCache, { passesOn: front !== undefined });
  const delay = new EventLoopDelay({ clock }, eventLoop);
  closeables.push(delay);
  const isAuthenticating = certificates.authorities !== undefined || settings.allowNoClientCa;
  describeServer({ metrics, health, clock, store, hub, delay, endpoint, freshness, tier, listener, quotas, isAuthenticating }, settings);
  await listener.listen();
  const leaveParent = new AbortController();
  const following = tier.run(leaveParent.signal).catch((error: unknown) => log.error('link.failed', { error }));
  const polledTypes = typesFile.polled((types) => {
    const { begun, ended, widened } = catalogue.replaceTable(types);
    for (const type of ended) hub.endOf(type);
    // The cache refused objects of widened types, so they are missing here: ask for all objects
    // again. A type that begins may have had objects here earlier.
    for (const { group, resource, identity } of [...widened, ...begun]) dropType({ group, resource, identity });
    sessions.declared();
    tier.followTypes(begun);
  });
  const reloadables = new ReloadedTogether({
    ...certificates.watch({
      show: (pair) => listener.show(pair),
      trust: async (authorities) => {
        console?.sessions.endAll();
        await listener.trust(authorities);
        // A connection that `trust` had not checked yet may have obtained a link meanwhile.
        console?.sessions.endAll();
      },
    }),
    policies: watchPolicies?.((changed) => tier.changePolicies(changed)),
    types: polledTypes && pollFiles({ clock, log }, polledTypes, settings.policyPollMs),
  });

  const stop = async (): Promise<void> => {
    health.beginShutdown();
    reloadables.close();
    certificates.expiry.close();
    listener.beginStop();
    store.beginClose();
    leaveParent.abort();
    tier.close();
    const pushersGone = endpoint.close(settings.shutdownGraceMs);
    hub.endAll();
    front?.endLasting();
    await pushersGone;
    await following;
    await listener.finishStop(settings.shutdownGraceMs);
    await Promise.all(closeables.toReversed().map((each) => ('close' in each ? each.close() : each.cancel())));
  };
  return { port: listener.port, reload: () => reloadables.reload(), stop, failed: store.failed };
}
