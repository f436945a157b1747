/**
 * Opens every room, hands out ports, and closes in reverse. The only file that knows all rooms; tests start this very
 * function.
 */
import { readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { callerOf } from './certificates/caller-from-certificate.js';
import { ServingCertificate } from './certificates/serving-certificate.js';
import type { Settings } from './config/settings.js';
import { EventLoopDelay } from './diagnostics/event-loop-delay.js';
import { Health } from './diagnostics/health.js';
import type { Log } from './diagnostics/log.js';
import { createMetrics, type Metrics } from './diagnostics/metrics.js';
import { Catalogue } from './domain/catalogue.js';
import { kcpTypes } from './domain/catalogue-kcp.js';
import { CacheError, type Refusal } from './domain/errors.js';
import type { Clock } from './domain/ports.js';
import { formatResource, type Resource } from './domain/resource.js';
import type { ShardName } from './domain/shard.js';
import type { StatusReport } from './domain/status.js';
import { refuseUpgrade, SocketAcceptor } from './frames/accept-socket.js';
import { DeclaredTypes } from './intake/declared-types.js';
import { Door, type DoorParts } from './intake/door.js';
import { Freshness } from './intake/freshness.js';
import { Intake } from './intake/intake.js';
import { PushSessions } from './intake/push-sessions.js';
import { ShardRemoval } from './intake/shard-removal.js';
import { openStore } from './store/sqlite/open-store.js';
import type { SqliteStore } from './store/sqlite/store.js';
import type { StoreLimits } from './store/sqlite/store-options.js';
import { version } from './version.js';
import { Hub } from './watch/hub.js';
import { SharedSnapshots } from './watch/shared-snapshots.js';
import { createApp } from './web/app.js';
import type { KubePorts } from './web/call.js';
import { Listener } from './web/listener.js';
import { failure } from './web/status.js';

export type RunningServer = Readonly<{
  url: string;
  port: number;
  /** Stops in the order of S17; resolves when everything is closed. */
  stop: () => Promise<void>;
  /** Resolves when the server cannot go on. */
  failed: Promise<Error>;
}>;

export type ServerParts = Readonly<{
  log: Log;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
}>;

const migrations = fileURLToPath(new URL('../../migrations', import.meta.url));
const eventLoop = { resolutionMs: 5, windowMs: 10_000 };
/** A snapshot in progress holds compaction back no longer than this. */
const snapshotHoldMs = 300_000;
/** A little more than fill a chunk with objects of the usual 2.5 kB: rows looked at beyond the chunk are looked at again. */
const snapshotRowsMax = 128;
const resurrectedMax = 200_000;
const sharedBytesMax = 32 * 1024 * 1024;
/** What all pushers together may have waiting: the committer never idles, and nobody waits for much of theirs. */
const commitsOfPushesMax = 2;
/** While several write, commits are so much smaller: each of them waits for the others'. A fifth of the delay for a tenth of the rate. */
const sharedDivisor = 8;
/** Of acknowledgements that a pusher does not take: below the first it is read from again, beyond the second it is cut off. */
const bufferedBytesLow = 64 * 1024;
const bufferedBytesMax = 1024 * 1024;
/** How long a pusher may take to close its side. */
const closeGraceMs = 2_000;
/** How long changes are collected for a watch that was written to just now; after a quiet time they go at once. */
const flushIntervalMs = 10;
/** Initial state sent in one turn of the event loop: a megabyte takes TLS about a millisecond. */
const turnBytesMax = 1024 * 1024;

/** Throws an error that says what is wrong when the server cannot start. */
export async function startServer(settings: Settings, { log, clock, random }: ServerParts): Promise<RunningServer> {
  const metrics = createMetrics({ processMetrics: true });
  const health = new Health();
  const clientCa = settings.clientCaFile === undefined ? undefined : readCa(settings.clientCaFile);
  const certificate = await ServingCertificate.open(
    { clock, log },
    {
      certFile: settings.tlsCertFile,
      keyFile: settings.tlsPrivateKeyFile,
      directory: settings.certificateDirectory,
      bindAddress: settings.bindAddress,
    },
  );
  const store = await openStore(settings.dataDirectory, migrations, storeLimits(settings), {
    log,
    clock,
    random,
    observe: storeObserver(metrics),
  });

  const catalogue = new Catalogue(kcpTypes);
  const snapshots = new SharedSnapshots(store, { sharedBytesMax, turnBytesMax }, (chunks) => metrics.listChunksShared.add(chunks));
  const observe = { fellBack: () => metrics.watchFallbacks.add(1), sent: (events: number) => metrics.eventsSent.add(events) };
  const hub = new Hub(
    { clock, commits: store, revisions: store, history: store, objects: store, snapshots, observe },
    {
      queueBytesMax: settings.watcherQueueBytesMax,
      pieceBytesMax: settings.listChunkBytesMax,
      bookmarkIntervalMs: settings.bookmarkIntervalMs,
      flushIntervalMs,
    },
  );
  const sessions = new PushSessions(store, clock.now());
  const declaredTypes = await DeclaredTypes.open(
    { catalogue, objects: store, revisions: store, pushes: store, commits: store, watches: hub, sessions, clock, log },
    store.resources(),
  );
  const intake = new Intake({ objects: store, writer: store, clock });
  const door = openDoor(settings, { store, sessions, catalogue, clock, log, metrics });
  const shards = new ShardRemoval(
    { objects: store, pushes: store, commits: store, sessions, clock, log },
    { awayMaxMs: settings.shardAwayMaxMs || undefined, deletedGraceMs: settings.shardDeletedGraceMs || undefined },
  );
  const isReady = (): boolean => health.report('readyz', { verbose: false, excluded: [] }).status === 200;
  const freshness = new Freshness({ store, sessions, clock, version: version(), isReady });

  const ports: KubePorts = {
    objects: store,
    history: store,
    revisions: store,
    commits: store,
    paths: store,
    snapshots,
    watches: hub,
    catalogue,
    intake,
    clock,
    random,
    limits: { bodyBytesMax: settings.bodyBytesMax, watchTimeoutMinMs: settings.watchTimeoutMinMs, openWatchesMax: settings.openWatchesMax },
  };
  const app = createApp({ ports, freshness, shards, log, metrics, health, callerOf, version: version() }, settings);
  const listener = new Listener(
    certificate.pair,
    {
      handle: app.callback(),
      upgrade: (request, socket, head) => door.upgrade(request, socket, head, callerOf(request.socket as TLSSocket)),
    },
    { ...settings, clientCa },
  );
  const certificateFiles = certificate.watch({ clock }, { filesPollMs: settings.tlsFilesPollMs }, (pair) => listener.show(pair));
  const delay = new EventLoopDelay({ clock }, eventLoop);
  describe({ metrics, health, store, hub, delay, door, freshness });
  await listener.listen();

  const stop = async (): Promise<void> => {
    health.beginShutdown();
    certificateFiles.close();
    listener.beginStop();
    store.beginClose();
    const pushersGone = door.close(settings.shutdownGraceMs);
    hub.endAll();
    await pushersGone;
    await listener.finishStop(clock, settings.shutdownGraceMs);
    hub.close();
    shards.close();
    const removalsEnded = declaredTypes.close();
    await store.close();
    await removalsEnded;
    delay.close();
  };
  return { url: `https://${urlHost(settings.bindAddress)}:${listener.port}`, port: listener.port, stop, failed: store.failed };
}

function openDoor(
  settings: Settings,
  parts: { store: SqliteStore; sessions: PushSessions; catalogue: Catalogue; clock: Clock; log: Log; metrics: Metrics },
): Door {
  const { catalogue, clock } = parts;
  const acceptor = new SocketAcceptor({ clock }, { ...settings, bufferedBytesLow, bufferedBytesMax, closeGraceMs });
  const refuse = (socket: Duplex, refusal: Refusal): void => {
    const { code, text, retryAfterSeconds } = failure(refusal);
    refuseUpgrade(socket, code, text, retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) });
  };
  const { frameBytesMax, frameMutationsMax, bodyBytesMax } = settings;
  const context = {
    typeOf: (resource: Resource, shard: ShardName) => catalogue.find(resource, shard),
    limits: { frameBytesMax, frameMutationsMax, bodyBytesMax },
    credit: { mutations: settings.pushMutationsMax, bytes: settings.pushBytesMax },
    systemClusters: new Set(settings.systemClusters),
  };
  const accept: DoorParts['accept'] = (request, socket, head) => acceptor.accept(request, socket, head);
  return new Door(
    { ...parts, context, accept, refuse },
    {
      sessionsMax: settings.pushSessionsMax,
      sessionsPerCallerMax: settings.pushSessionsPerCallerMax,
      helloTimeoutMs: settings.helloTimeoutMs,
    },
  );
}

function storeLimits(settings: Settings): StoreLimits {
  return {
    queue: {
      mutationsMax: settings.queueMutationsMax,
      bytesMax: settings.queueBytesMax,
      batchMutationsMax: settings.commitMutationsMax,
      batchBytesMax: settings.commitBytesMax,
      sharedDivisor,
      pushMutationsMax: commitsOfPushesMax * settings.commitMutationsMax,
      pushBytesMax: commitsOfPushesMax * settings.commitBytesMax,
    },
    history: {
      historyAgeMs: settings.historyAgeMaxMs,
      historyChangesMax: settings.historyChangesMax,
      historyBytesMax: settings.historyBytesMax,
      tombstoneAgeMs: settings.tombstoneAgeMaxMs,
      tombstonesMax: settings.tombstonesMax,
    },
    snapshot: { rowsMax: snapshotRowsMax, bytesMax: settings.listChunkBytesMax, resurrectedMax },
    snapshotHoldMs,
    recentBytesMax: settings.recentBytesMax,
  };
}

function storeObserver(metrics: Metrics) {
  return {
    committed: (decided: Readonly<{ written: number; refused: number }>, elapsedMs: number) => {
      metrics.commits.add(1);
      metrics.mutations.add(decided.written, { outcome: 'written' });
      metrics.mutations.add(decided.refused, { outcome: 'refused' });
      metrics.commitSeconds.observe(elapsedMs / 1000);
    },
    compacted: () => {},
  };
}

/** What is cheaper to ask than to follow, and what readiness and liveness mean. */
function describe({
  metrics,
  health,
  store,
  hub,
  delay,
  door,
  freshness,
}: {
  metrics: Metrics;
  health: Health;
  store: SqliteStore;
  hub: Hub;
  delay: EventLoopDelay;
  door: Door;
  freshness: Freshness;
}): void {
  metrics.beforeRender(async () => describeShards(metrics, await freshness.report()));
  metrics.beforeRender(() => {
    metrics.pushSessions.set(door.openSessions);
    metrics.publishedRevision.set(store.published);
    metrics.compactedRevision.set(store.compacted);
    metrics.queueLength.set(store.waiting.mutations);
    metrics.queueBytes.set(store.waiting.bytes);
    metrics.openWatches.set(hub.openWatches);
    metrics.eventLoopDelayP99Seconds.set(delay.p99Ms / 1000);
    metrics.eventLoopDelayMaxSeconds.set(delay.maxMs / 1000);
  });
  health.add('livez', { name: 'committer', failure: () => (store.isOpen ? undefined : 'the committer has stopped') });
  health.add('readyz', { name: 'store', failure: () => store.lastFailure });
}

function describeShards(metrics: Metrics, { shards }: StatusReport): void {
  const { shardConnected, sliceSynced, sliceObjects, sliceBytes, sliceChangedSeconds, sliceLagSeconds } = metrics;
  for (const gauge of [shardConnected, sliceSynced, sliceObjects, sliceBytes, sliceChangedSeconds, sliceLagSeconds]) gauge.reset();
  for (const { shard, connection, slices } of shards) {
    if (connection.kind !== 'plain') shardConnected.set(connection.kind === 'connected' ? 1 : 0, { shard });
    for (const slice of slices) {
      const labels = { shard, type: formatResource(slice).replace(/:$/, '') };
      sliceSynced.set(slice.synced ? 1 : 0, labels);
      sliceObjects.set(slice.objects, labels);
      sliceBytes.set(slice.bytes, labels);
      if (slice.changedAgoMs !== null) sliceChangedSeconds.set(slice.changedAgoMs / 1000, labels);
      if (slice.lagMs !== null) sliceLagSeconds.set(slice.lagMs / 1000, labels);
    }
  }
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new CacheError(`the client CA file ${file} cannot be read`, { cause });
  }
}

function urlHost(bindAddress: string): string {
  if (bindAddress === '0.0.0.0' || bindAddress === '::') return 'localhost';
  return bindAddress.includes(':') ? `[${bindAddress}]` : bindAddress;
}
