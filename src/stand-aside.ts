/**
 * The server while its store is damaged: it lives, is not ready, says why, and serves nothing, until an operator has acted and restarts it. It holds
 * nothing in the data directory, so that `strata restore` can work there meanwhile.
 *
 * An exit would explain less, again and again; an empty store would show every informer that nothing exists.
 */
import { callerOf } from './certificates/caller-from-certificate.js';
import type { Settings } from './config/settings.js';
import type { Health, HealthEndpoint } from './diagnostics/health.js';
import type { Log } from './diagnostics/log.js';
import type { Metrics } from './diagnostics/metrics.js';
import type { Refusal } from './domain/errors.js';
import type { Clock } from './domain/ports.js';
import type { Reloadable, Reloaded } from './domain/reloaded.js';
import type { Exchange } from './http/exchange.js';
import { limitReached } from './http/limit-reached.js';
import { Listener } from './http/listener.js';
import type { Quotas } from './http/quotas.js';
import type { OpenCertificates } from './open-certificates.js';
import type { DamagedStore } from './store/sqlite/damage.js';
import { failure } from './web/status.js';

export type StandAsideParts = Readonly<{
  log: Log;
  clock: Clock;
  metrics: Metrics;
  health: Health;
  certificates: OpenCertificates;
  quotas: Quotas;
}>;

/** Everybody may read it, so the file's place is only in the log. */
const reason = 'the store is damaged and was moved out of the way: see the log, then run strata restore';
const refusal: Refusal = { reason: 'ServiceUnavailable', message: reason };
const healthPath = /^\/(healthz|livez|readyz)(?:\?|$)/;

/** What startServer returns, for a server that does nothing else. */
export async function standAside(settings: Settings, { file, problem }: DamagedStore, parts: StandAsideParts) {
  const { log, clock, metrics, health, certificates, quotas } = parts;
  log.error('store.damaged', { file, problem, consequence: 'nothing is served until a store is restored, or this file is moved away' });
  health.add('readyz', { name: 'store', isPublic: true, failure: () => reason });
  const listener = new Listener(
    certificates.serving.pair,
    {
      clock,
      quotas,
      callerOf,
      refused: limitReached({ clock, log, metrics }),
      handle: (exchange) => answer(exchange, health),
      upgrade: ({ socket }) => void socket.destroy(),
    },
    { ...settings, clientAuthorities: certificates.authorities },
  );
  await listener.listen();
  const reloadables = Object.entries(certificates.watch(listener)).filter((entry): entry is [string, Reloadable] => entry[1] !== undefined);
  return {
    port: listener.port,
    reload: (): ReadonlyMap<string, Reloaded> => new Map(reloadables.map(([what, reloadable]) => [what, reloadable.reload()])),
    stop: async (): Promise<void> => {
      for (const [, reloadable] of reloadables) reloadable.close();
      certificates.expiry.close();
      listener.beginStop();
      await listener.finishStop(settings.shutdownGraceMs);
    },
    failed: new Promise<Error>(() => {}),
  };
}

function answer(exchange: Exchange, health: Health): void {
  const { request, response } = exchange;
  const url = request.url ?? '/';
  const endpoint = healthPath.exec(url)?.[1] as HealthEndpoint | undefined;
  if (endpoint === undefined) {
    const { code, text } = failure(refusal);
    response.writeHead(code, { 'content-type': 'application/json' });
    response.end(text);
  } else {
    const query = new URLSearchParams(url.slice(endpoint.length + 2));
    const { status, text } = health.report(endpoint, { verbose: query.has('verbose'), excluded: query.getAll('exclude') });
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
    response.end(text);
  }
  exchange.answered();
}
