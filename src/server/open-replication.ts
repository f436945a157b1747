/**
 * Opens replication into and out of a store: pushers, links to other caches, declared types, plain
 * writes over HTTP, and the removal of shards.
 */
import { keptNamesOf, linkPoliciesOf, type Settings } from '../config/settings.js';
import type { Log } from '../diagnostics/log.js';
import type { Metrics } from '../diagnostics/metrics.js';
import type { Catalogue } from '../domain/catalogue/catalogue.js';
import type { Clock, Shards } from '../domain/ports.js';
import type { Resource } from '../domain/resource.js';
import type { Store } from '../domain/store-port.js';
import type { Endpoint } from '../intake/push/endpoint.js';
import { PeerReports } from '../intake/push/peer-reports.js';
import { PushSessions } from '../intake/push/push-sessions.js';
import { PushersElsewhere } from '../intake/push/pushers-elsewhere.js';
import type { IntakeRules } from '../intake/push/receiver-state.js';
import { Standbys } from '../intake/push/standbys.js';
import { DeclaredTypes } from '../intake/shards/declared-types.js';
import { HeldRemovals } from '../intake/shards/held-removals.js';
import { KeptObjects } from '../intake/shards/kept-objects.js';
import { MigratedClusters } from '../intake/shards/migrated-clusters.js';
import { RunningSince } from '../intake/shards/running-since.js';
import { ShardRemoval } from '../intake/shards/shard-removal.js';
import { AssumedSyncs } from '../intake/writes/assumed-syncs.js';
import { Intake } from '../intake/writes/intake.js';
import { PlainWrites, type SeenElsewhere } from '../intake/writes/plain-writes.js';
import type { Tree } from '../tree/tree.js';
import type { Hub } from '../watch/hub.js';
import type { Closers } from './closers.js';
import { intakeRules, linkRules, openEndpoint } from './open-endpoint.js';
import { openTree } from './open-tree.js';

type Parts = Readonly<{
  store: Store;
  catalogue: Catalogue;
  hub: Hub;
  clock: Clock;
  random: () => number;
  log: Log;
  metrics: Metrics;
  closers: Closers;
}>;

/** Who sends objects to this cache, and to whom it sends them. */
type Peers = Readonly<{
  sessions: PushSessions;
  removals: HeldRemovals;
  tree: Tree;
  /**
   * Ends the slices of a type from pushers and links, which send them again if the cache still
   * serves the type.
   */
  dropType: (resource: Resource) => void;
}>;

export type OpenReplication = Peers &
  Readonly<{ standbys: Standbys; endpoint: Endpoint; intake: Intake; kept: KeptObjects | undefined; shards: Shards }>;

/** How long a plain HTTP writer must be idle before its objects count as complete. */
const plainQuietMs = 30_000;

export async function openReplication(settings: Settings, parts: Parts): Promise<OpenReplication> {
  const { store, catalogue, clock, log, closers } = parts;
  const { objects, revisions, writer, commits, state: known, peers: servers } = store;
  const rules = intakeRules(settings, catalogue);
  const peers = openPeers(settings, parts, rules);
  const { sessions, removals, tree, dropType } = peers;
  const drop = { drop: dropType, declared: () => sessions.declared() };
  const types = { catalogue, objects, revisions, writer, commits, watches: parts.hub, sessions: drop, clock, log };
  closers.add(await DeclaredTypes.open(types, await objects.resources()));
  const running = closers.add(new RunningSince(clock));
  const runningSinceMs = (): number => running.ms();
  const isLeader = (): boolean => servers.leadsSinceMs !== undefined;
  const seenMs: SeenElsewhere = (shard, neighbour) => tree.seenMs(shard, neighbour);
  const keptNames = keptNamesOf(settings);
  const kept = keptNames.size === 0 ? undefined : closers.add(await KeptObjects.open(keptNames, { objects, revisions, commits }));
  const plainWrites = new PlainWrites(
    { own: store.cacheId, known, clock, seenMs, runningSinceMs, pushers: sessions },
    { holdMs: settings.parentHoldMs },
  );
  closers.add(new PeerReports({ peers: servers, sessions, known, plainWrites, clock }));
  closers.add(new AssumedSyncs({ writer, known, clock, log, runningSinceMs, isLeader }, { quietMs: plainQuietMs }));
  closers.add(
    known.follow(({ shards: changed, invalidated }) => {
      for (const slice of invalidated) sessions.overwritten(slice);
      for (const state of changed) sessions.evictOlder(state.shard, state, `another pusher has the shard ${state.shard} now`);
    }),
  );
  const standbys = closers.add(
    new Standbys(
      { own: store.cacheId, known, sessions, seenMs, runningSinceMs, isReached: tree.isReached.bind(tree), hasLinks: isLeader, clock },
      { holdMs: settings.parentHoldMs },
    ),
  );
  const removal = closers.add(
    new ShardRemoval(
      {
        objects,
        revisions,
        writer,
        state: known,
        commits,
        sessions,
        seenMs,
        lastWriteMs: (shard) => plainWrites.lastWriteMs(shard),
        isLinkUp: (neighbour) => tree.freshness.presence(neighbour).isOpen,
        isLeader,
        clock,
        log,
      },
      { awayMaxMs: settings.shardAwayMaxMs || undefined, deletedGraceMs: settings.shardDeletedGraceMs || undefined },
    ),
  );
  closers.add(new MigratedClusters({ objects, revisions, commits, writer, known, isLeader, clock, log }));
  return {
    ...peers,
    standbys,
    endpoint: openEndpoint(settings, { ...parts, sessions, standbys, removals, rules, tree }),
    intake: new Intake({ objects, writer, clock, plainWrites, keptNames }),
    kept,
    shards: removal,
  };
}

function openPeers(settings: Settings, { store, hub, clock, random, log, metrics, closers }: Parts, rules: IntakeRules): Peers {
  const elsewhere = closers.add(new PushersElsewhere({ peers: store.peers, state: store.state, clock }));
  const sessions = new PushSessions(store.writer, clock.now(), elsewhere);
  const removals = closers.add(
    new HeldRemovals(
      { clock, log },
      { percentMax: settings.removalHoldPercent, removesMin: settings.removalHoldMin, graceMs: settings.removalHoldGraceMs },
    ),
  );
  closers.add(
    store.state.follow(({ slices }) => {
      for (const { slice, objects } of slices) if (objects === 0) removals.forget(slice);
    }),
  );
  const policies = linkPoliciesOf(settings);
  const tree = openTree(settings, policies, {
    store,
    sessions,
    removals,
    watches: hub,
    rules: linkRules(rules),
    clock,
    random,
    log,
    metrics,
  });
  const dropType = (resource: Resource): void => {
    sessions.drop(resource);
    tree.drop(resource);
  };
  return { sessions, removals, tree, dropType };
}
