/**
 * An agent's reports about itself. The agent is ready when its shard answers and a cache has
 * accepted it, as the shard's pusher or as a standby. A standby must count as ready, or a
 * Deployment with two agents could never complete a rollout. Unfinished syncs do not count, because
 * one refused type would then block a rollout.
 */
import type { CertificateExpiry } from '../certificates/certificate-expiry.js';
import { agentMetricTable } from '../diagnostics/metric-table.js';
import { Health } from '../diagnostics/health.js';
import { createMetricsOf, type Counter, type RenderedMetrics } from '../diagnostics/metrics.js';
import { showCertificates } from '../diagnostics/report-metrics.js';
import type { SenderState, SliceProgress } from '../sender/sender-state.js';
import { version } from '../version.js';

export type DescribedAgent = Readonly<{
  sender: Readonly<{ state: SenderState }>;
  agent: Readonly<{ objectsRead: number; isShardReached: boolean }>;
  expiry: Pick<CertificateExpiry, 'report'>;
  stopping: AbortSignal;
}>;

const phases: readonly SliceProgress['phase'][] = ['waiting', 'syncing', 'synced'];

export function describeAgent({ sender, agent, expiry, stopping }: DescribedAgent): Readonly<{ health: Health; metrics: RenderedMetrics }> {
  const health = new Health();
  stopping.addEventListener('abort', () => health.beginShutdown());
  const shard = (): string | undefined => (agent.isShardReached ? undefined : 'the shard does not answer');
  const cache = (): string | undefined => (isAccepted(sender.state) ? undefined : 'no cache has accepted this agent');
  health.add('readyz', { name: 'shard', isPublic: true, failure: shard });
  health.add('readyz', { name: 'cache', isPublic: true, failure: cache });

  const metrics = createMetricsOf(agentMetricTable, { processMetrics: true });
  metrics.buildInfo.set(1, { version: version() });
  metrics.beforeRender(() => {
    const { state } = sender;
    raise(metrics.objectsRead, agent.objectsRead);
    raise(metrics.objectsPushed, state.pushed);
    raise(metrics.objectsRefused, state.refused);
    raise(metrics.reconnects, state.reconnects);
    metrics.ready.set(health.isReady ? 1 : 0);
    metrics.lagSeconds.set(state.lagMs / 1000);
    for (const phase of phases) metrics.slices.set(state.slices.filter((slice) => slice.phase === phase).length, { phase });
    metrics.shardReachable.set(agent.isShardReached ? 1 : 0);
    metrics.cacheReachable.set(isAccepted(state) ? 1 : 0);
    metrics.standby.set(state.connection.kind === 'standby' ? 1 : 0);
    showCertificates(metrics, expiry.report());
  });
  return { health, metrics };
}

function isAccepted({ connection }: SenderState): boolean {
  return connection.kind === 'connected' || connection.kind === 'standby';
}

function raise(counter: Counter, total: number): void {
  counter.add(total - counter.total());
}
