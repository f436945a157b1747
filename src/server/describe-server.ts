/**
 * A server's reports about itself: metrics that are read at each scrape, and the checks of
 * readiness and liveness.
 */
import { statfs } from 'node:fs/promises';
import type { Settings } from '../config/settings.js';
import { DiskSpace, type DiskCapacity } from '../diagnostics/disk-space.js';
import type { EventLoopDelay } from '../diagnostics/event-loop-delay.js';
import type { Health } from '../diagnostics/health.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { showReport } from '../diagnostics/report-metrics.js';
import { callerKinds } from '../domain/caller.js';
import { reasons } from '../domain/errors.js';
import type { Clock, Freshness } from '../domain/ports.js';
import type { Store, StoreObserver } from '../domain/store-port.js';
import { protocols } from '../http/connection.js';
import type { Listener } from '../http/listener.js';
import type { Quotas } from '../http/quotas.js';
import type { Endpoint } from '../intake/push/endpoint.js';
import { version } from '../version.js';
import type { Tree } from '../tree/tree.js';
import type { Hub } from '../watch/hub.js';

export type DescribedServer = Readonly<{
  metrics: Metrics;
  health: Health;
  clock: Clock;
  store: Store;
  hub: Hub;
  delay: EventLoopDelay;
  endpoint: Endpoint;
  freshness: Freshness;
  tree: Tree;
  listener: Listener;
  quotas: Quotas;
  /** True also if the server was started without a client CA on purpose. */
  isAuthenticating: boolean;
}>;

export type DescribeOptions = Pick<Settings, 'metricsSlicesMax' | 'dataDirectory' | 'etcdServers'>;

export function storeObserver(metrics: Metrics): StoreObserver {
  return {
    committed: ({ written, refused }, elapsedMs) => {
      metrics.commits.add(1);
      metrics.mutations.add(written, { outcome: 'written' });
      metrics.mutations.add(refused, { outcome: 'refused' });
      metrics.commitSeconds.observe(elapsedMs / 1000);
    },
    compacted: (_, elapsedMs) => metrics.compactionSeconds.observe(elapsedMs / 1000),
  };
}

const noClientCa = 'everybody is anonymous and refused: give --client-ca-file, or --allow-no-client-ca if that is meant';

export function describeServer(server: DescribedServer, { metricsSlicesMax, dataDirectory, etcdServers }: DescribeOptions): void {
  const { metrics, health, clock, store, hub, delay, endpoint, freshness, tree, listener, quotas, isAuthenticating } = server;
  metrics.buildInfo.set(1, { version: version() });
  // Start each series at 0: Prometheus sees no rate in a series that begins with its first refusal.
  for (const reason of Object.keys(reasons)) metrics.refusals.add(0, { reason });
  metrics.beforeRender(async () => showReport(metrics, await freshness.report(), { slicesMax: metricsSlicesMax }));
  if (etcdServers.length === 0) {
    const disk = new DiskSpace({ clock, ask: () => statfs(dataDirectory) });
    metrics.beforeRender(async () => showDisk(metrics, await disk.capacity()));
  }
  metrics.beforeRender(() => {
    metrics.ready.set(health.isReady ? 1 : 0);
    metrics.storeFailing.set(store.lastFailure === undefined && store.isOpen ? 0 : 1);
    metrics.pushSessions.set(endpoint.openPushers);
    metrics.publishedRevision.set(store.revisions.published);
    metrics.compactedRevision.set(store.revisions.compacted);
    metrics.historyChanges.set(store.logged.changes);
    metrics.historyBytes.set(store.logged.bytes);
    metrics.queueLength.set(store.waiting.mutations);
    metrics.queueBytes.set(store.waiting.bytes);
    metrics.openWatches.set(hub.openWatches);
    metrics.requestsInFlight.set(quotas.used('requests'));
    metrics.bufferedBytes.set(quotas.used('bufferedBytes'));
    showConnections(metrics, listener);
    for (const [file, bytes] of store.fileBytes()) metrics.storeFileBytes.set(bytes, { file });
    metrics.leads.set(store.peers.leadsSinceMs === undefined ? 0 : 1);
    metrics.otherServers.set(store.peers.others.size);
    metrics.unreadableKeys.set(store.unreadableKeys);
    metrics.eventLoopDelayP99Seconds.set(delay.p99Ms / 1000);
    metrics.eventLoopDelayMaxSeconds.set(delay.maxMs / 1000);
  });
  health.add('livez', { name: 'committer', failure: () => (store.isOpen ? undefined : 'the committer has stopped') });
  health.add('readyz', { name: 'client-ca', isPublic: true, failure: () => (isAuthenticating ? undefined : noClientCa) });
  health.add('readyz', { name: 'store', failure: () => store.lastFailure });
  health.add('readyz', {
    name: 'parent',
    failure: () => (tree.isReady ? undefined : 'this cache does not have all objects of its parent yet'),
  });
}

function showDisk({ diskAvailableBytes, diskSizeBytes }: Metrics, capacity: DiskCapacity | undefined): void {
  diskAvailableBytes.reset();
  diskSizeBytes.reset();
  if (capacity === undefined) return;
  diskAvailableBytes.set(capacity.availableBytes, { folder: 'data' });
  diskSizeBytes.set(capacity.sizeBytes, { folder: 'data' });
}

/** Sets every kind of caller, also to 0, because an alert cannot compare with a missing series. */
function showConnections({ connectionsOpen }: Metrics, { connections }: Listener): void {
  for (const caller of callerKinds) for (const protocol of protocols) connectionsOpen.set(0, { caller, protocol });
  for (const { peer, protocol } of connections) connectionsOpen.add(1, { caller: peer.kind, protocol });
}
