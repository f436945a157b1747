/**
 * Starts a server: its certificates, its store, and then the cache over that store (open-cache.ts).
 * Tests start this same function.
 *
 *   certificates ─▶ store: lock, checks, life ┬▶ the committer's thread starts ─┬▶ cache ─▶ listen
 *                                             └▶ the cache's modules are loaded ┘
 */
import type { Settings } from '../config/settings.js';
import { TypesFile } from '../config/files/types-file.js';
import { Health } from '../diagnostics/health.js';
import { LastLines } from '../diagnostics/last-lines.js';
import type { Log } from '../diagnostics/log.js';
import { createMetrics } from '../diagnostics/metrics.js';
import type { Clock } from '../domain/ports.js';
import { storeObserver } from './describe-server.js';
import type { OpenServer, WatchPolicies } from './open-cache.js';
import { openCertificates } from './open-certificates.js';
import type { FrontDoorSettings } from './open-front-door.js';
import { openStore } from './open-store.js';
import { DamagedStore } from '../store/damaged-store.js';
import type { StartCommitter } from '../store/sqlite/committer-messages.js';
import { Quotas } from '../http/quotas.js';

/** Bytes of requests that wait, for milliseconds, for a turn of the event loop. */
const waitingBytesMax = 64 * 1024 * 1024;
/** Bytes of backend answers that a front door holds because no client has read them yet. */
const unreadBytesMax = 256 * 1024 * 1024;

export type RunningServer = OpenServer & Readonly<{ url: string }>;

export type ServerParts = Readonly<{
  log: Log;
  clock: Clock;
  /** Returns a number in [0, 1). */
  random: () => number;
  /** Without it policies never change while the server runs. */
  watchPolicies?: WatchPolicies | undefined;
  /** With it the server is the front door of an installation, and not a cache. */
  frontDoor?: FrontDoorSettings | undefined;
  /** SQLite's committer. By default it runs in its own thread. */
  startCommitter?: StartCommitter | undefined;
}>;

/** Throws an error that says why the server cannot start. */
export async function startServer(
  settings: Settings,
  { log: given, clock, random, watchPolicies, frontDoor, startCommitter }: ServerParts,
): Promise<RunningServer> {
  const typesFile = new TypesFile(settings.typesFile);
  const lastLines = new LastLines(clock);
  const log = lastLines.wrap(given);
  const metrics = createMetrics({ processMetrics: true });
  const health = new Health();
  const certificates = await openCertificates(settings, { clock, log }, frontDoor);
  const quotas = new Quotas(
    {
      requests: settings.requestsInFlightMax,
      watches: settings.openWatchesMax,
      connections: settings.connectionsMax,
      bufferedBytes: settings.bufferedBytesMax,
      waitingBytes: waitingBytesMax,
      unreadBytes: unreadBytesMax,
      selectorBytes: settings.openSelectorBytesMax,
    },
    settings,
  );
  const storeParts = { log, clock, random, observe: storeObserver(metrics) };
  const [store, { openCache }] = await Promise.all([openStore(settings, storeParts, startCommitter), import('./open-cache.js')]);
  const parts = { log, clock, metrics, health, certificates, quotas };
  if (store instanceof DamagedStore) {
    const { openDamagedServer } = await import('./damaged-server.js');
    return reachable(settings, await openDamagedServer(settings, store, parts));
  }
  return reachable(settings, await openCache(settings, { ...parts, store, random, typesFile, watchPolicies, frontDoor, lastLines }));
}

function reachable(settings: Settings, open: OpenServer): RunningServer {
  return { ...open, url: urlOf(settings, open.port) };
}

function urlOf({ bindAddress }: Settings, port: number): string {
  if (bindAddress === '0.0.0.0' || bindAddress === '::') return `https://localhost:${port}`;
  return `https://${bindAddress.includes(':') ? `[${bindAddress}]` : bindAddress}:${port}`;
}
