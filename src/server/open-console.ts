/** Opens the console, which shows the reports of the cache and its log. */
import { randomBytes } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { ActivityLog } from '../console/activity.js';
import { overviewOf } from '../console/overview.js';
import type { Overview } from '../console/page/overview.js';
import { readPageFiles, type PageFiles } from '../console/page-files.js';
import { ConsoleSessions } from '../console/sessions.js';
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import type { LastLines } from '../diagnostics/last-lines.js';
import type { Metrics } from '../diagnostics/metrics.js';
import type { Catalogue } from '../domain/catalogue/catalogue.js';
import type { Clock, Freshness } from '../domain/ports.js';
import type { ConsoleParts } from '../web/console-routes.js';

/** 150 samples, one every 2 s: five minutes. */
const activityOptions = { intervalMs: 2_000, samplesMax: 150 };

/**
 * All viewers share one overview. The cache computes it at most this often, and spends at most a
 * tenth of its time on it.
 */
const overviewMs = 500;
const pauseFactor = 9;

type Parts = Readonly<{
  cacheId: string;
  freshness: Freshness;
  catalogue: Catalogue;
  metrics: Metrics;
  lastLines: LastLines;
  clock: Clock;
  log: Log;
}>;

export type OpenConsole = ConsoleParts & Readonly<{ close: () => void }>;

/** When `readFiles` has failed, the next request calls it again. */
export function openConsole(
  { cacheId, freshness, catalogue, metrics, lastLines, clock, log }: Parts,
  readFiles = readPageFiles,
): OpenConsole {
  const totals = () => ({
    requests: metrics.requests.total(),
    written: metrics.mutations.total(),
    events: metrics.eventsSent.total(),
    refused: metrics.refusals.total(),
  });
  const activity = new ActivityLog({ clock, totals }, activityOptions);
  let read: Promise<PageFiles> | undefined;
  let last: Readonly<{ nextMs: number; overview: Promise<Overview> }> | undefined;
  const look = async (): Promise<Overview> => {
    const builtIn = catalogue.forCluster('*').filter(({ identity }) => identity === '');
    const types = [...builtIn, ...catalogue.declared()];
    const report = await freshness.report();
    return overviewOf({ report, types, activity: activity.read(), lines: lastLines.read() }, turn);
  };
  return {
    cacheId,
    log: new BoundedLog({ clock, log }),
    sessions: new ConsoleSessions({ clock, randomBytes }),
    files: () =>
      (read ??= readFiles().catch((error: unknown) => {
        read = undefined;
        throw error;
      })),
    overview: () => {
      const startedMs = clock.now();
      if (last !== undefined && startedMs < last.nextMs) return last.overview;
      const overview = look();
      const settled = (): void => {
        const nowMs = clock.now();
        last = { nextMs: Math.max(startedMs + overviewMs, nowMs + (nowMs - startedMs) * pauseFactor), overview };
      };
      // Concurrent callers wait for the same overview.
      last = { nextMs: Infinity, overview };
      overview.then(settled, settled);
      return overview;
    },
    close: () => activity.close(),
  };
}
