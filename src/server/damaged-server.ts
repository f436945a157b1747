/**
 * The server while its store is damaged. It is alive, is not ready, says why, and serves nothing
 * until an operator acts and restarts it. It keeps no file of the data directory open, so `strata
 * restore` can work there meanwhile.
 *
 * Two alternatives were rejected. An exit would cause restarts, and explain less. An empty store
 * would show every informer that nothing exists.
 */
import type { Settings } from '../config/settings.js';
import { healthQueryOf, type Health, type HealthEndpoint } from '../diagnostics/health.js';
import type { Refusal } from '../domain/errors.js';
import { ReloadedTogether } from '../domain/base/reloaded.js';
import { cacheServer, serverHeader } from '../domain/base/http-header.js';
import type { Exchange } from '../http/exchange.js';
import { openListener, type ServingParts } from './open-listener.js';
import type { OpenServer } from './open-cache.js';
import type { DamagedStore } from '../store/damaged-store.js';
import { failure } from '../web/formats/status.js';

/** Everybody may read this text, so only the log names the file. */
const reason = 'the store is damaged and was moved out of the way: see the log, then run strata restore';
const refusal: Refusal = { reason: 'ServiceUnavailable', message: reason };
const healthPath = /^\/(healthz|livez|readyz)(?:\?|$)/;

export async function openDamagedServer(settings: Settings, { file, problem }: DamagedStore, parts: ServingParts): Promise<OpenServer> {
  const { log, health, certificates } = parts;
  log.error('store.damaged', { file, problem, consequence: 'nothing is served until a store is restored, or this file is moved away' });
  health.add('readyz', { name: 'store', isPublic: true, failure: () => reason });
  const listener = openListener(settings, parts, {
    handle: (exchange) => answer(exchange, health),
    upgrade: ({ socket }) => void socket.destroy(),
  });
  await listener.listen();
  const reloadables = new ReloadedTogether(certificates.watch(listener));
  return {
    port: listener.port,
    reload: () => reloadables.reload(),
    stop: async (): Promise<void> => {
      reloadables.close();
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
  response.setHeader(serverHeader, cacheServer);
  const endpoint = healthPath.exec(url)?.[1] as HealthEndpoint | undefined;
  if (endpoint === undefined) {
    const { code, text } = failure(refusal);
    response.writeHead(code, { 'content-type': 'application/json' });
    response.end(text);
  } else {
    const { status, text } = health.report(endpoint, healthQueryOf(new URLSearchParams(url.slice(endpoint.length + 2))));
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
    response.end(text);
  }
  exchange.answered();
}
