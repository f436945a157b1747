/** Opens the console: what it shows is what the other rooms report. */
import { randomBytes } from 'node:crypto';
import { ActivityLog } from './console/activity.js';
import { overviewOf } from './console/overview.js';
import type { Overview } from './console/page/overview.js';
import { readPageFiles, type PageFiles } from './console/page-files.js';
import { ConsoleSessions } from './console/sessions.js';
import type { LastLines } from './diagnostics/last-lines.js';
import type { Metrics } from './diagnostics/metrics.js';
import type { Catalogue } from './domain/catalogue.js';
import type { Clock, Freshness } from './domain/ports.js';
import type { ConsoleParts } from './web/console-routes.js';

/** Five minutes. */
const activityOptions = { intervalMs: 2_000, samplesMax: 150 };

/** However many people look, the cache looks at itself no more often. */
const overviewMs = 500;

type Parts = Readonly<{
  cacheId: string;
  freshness: Freshness;
  catalogue: Catalogue;
  metrics: Metrics;
  lastLines: LastLines;
  clock: Clock;
}>;

export type OpenConsole = ConsoleParts & Readonly<{ close: () => void }>;

export function openConsole({ cacheId, freshness, catalogue, metrics, lastLines, clock }: Parts): OpenConsole {
  const totals = () => ({
    requests: metrics.requests.total(),
    written: metrics.mutations.total(),
    events: metrics.eventsSent.total(),
    refused: metrics.refusals.total(),
  });
  const activity = new ActivityLog({ clock, totals }, activityOptions);
  let read: Promise<PageFiles> | undefined;
  let last: Readonly<{ atMs: number; overview: Promise<Overview> }> | undefined;
  const look = async (): Promise<Overview> => {
    const builtIn = catalogue.forCluster('*').filter(({ identity }) => identity === '');
    const types = [...builtIn, ...catalogue.declared()];
    return overviewOf({ report: await freshness.report(), types, activity: activity.read(), lines: lastLines.read() });
  };
  return {
    cacheId,
    sessions: new ConsoleSessions({ clock, randomBytes }),
    files: () => (read ??= readPageFiles()),
    overview: () => {
      const nowMs = clock.now();
      if (last === undefined || nowMs - last.atMs >= overviewMs) last = { atMs: nowMs, overview: look() };
      return last.overview;
    },
    close: () => activity.close(),
  };
}
