/** What a server reports on itself: values that are cheaper to ask for than to follow, and what readiness and liveness mean. */
import type { EventLoopDelay } from './diagnostics/event-loop-delay.js';
import type { Health } from './diagnostics/health.js';
import type { Metrics } from './diagnostics/metrics.js';
import { showReport } from './diagnostics/report-metrics.js';
import { callerKinds } from './domain/caller.js';
import type { Freshness } from './domain/ports.js';
import type { Listener } from './http/listener.js';
import type { Quotas } from './http/quotas.js';
import type { Endpoint } from './intake/endpoint.js';
import type { SqliteStore } from './store/sqlite/store.js';
import type { Tier } from './tier/tier.js';
import type { Hub } from './watch/hub.js';

export type DescribedServer = Readonly<{
  metrics: Metrics;
  health: Health;
  store: SqliteStore;
  hub: Hub;
  delay: EventLoopDelay;
  endpoint: Endpoint;
  freshness: Freshness;
  tier: Tier;
  listener: Listener;
  quotas: Quotas;
  /** Whether callers can be authenticated, or need not be. */
  isAuthenticating: boolean;
}>;

const noClientCa = 'everybody is anonymous and refused: give --client-ca-file, or --allow-no-client-ca if that is meant';

export function describeServer(server: DescribedServer): void {
  const { metrics, health, store, hub, delay, endpoint, freshness, tier, listener, quotas, isAuthenticating } = server;
  metrics.beforeRender(async () => showReport(metrics, await freshness.report()));
  metrics.beforeRender(() => {
    metrics.pushSessions.set(endpoint.openPushers);
    metrics.publishedRevision.set(store.published);
    metrics.compactedRevision.set(store.compacted);
    metrics.historyChanges.set(store.history.changes);
    metrics.historyBytes.set(store.history.bytes);
    metrics.queueLength.set(store.waiting.mutations);
    metrics.queueBytes.set(store.waiting.bytes);
    metrics.openWatches.set(hub.openWatches);
    metrics.requestsInFlight.set(quotas.used('requests'));
    metrics.bufferedBytes.set(quotas.used('bufferedBytes'));
    for (const caller of callerKinds) metrics.connectionsOpen.set(listener.connectionsOf(caller), { caller });
    metrics.eventLoopDelayP99Seconds.set(delay.p99Ms / 1000);
    metrics.eventLoopDelayMaxSeconds.set(delay.maxMs / 1000);
  });
  health.add('livez', { name: 'committer', failure: () => (store.isOpen ? undefined : 'the committer has stopped') });
  health.add('readyz', { name: 'client-ca', isPublic: true, failure: () => (isAuthenticating ? undefined : noClientCa) });
  health.add('readyz', { name: 'store', failure: () => store.lastFailure });
  health.add('readyz', { name: 'parent', failure: () => (tier.isReady ? undefined : 'what the parent has is not here yet') });
}
