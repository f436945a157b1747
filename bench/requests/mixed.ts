/**
 * What does a minute of mixed load give? It has 100 updates a second to 8 wildcard watchers, and
 * 200 gets a second. Every two seconds a type or a logical cluster is listed, and every five
 * seconds an informer starts. Each request is sent when it is due.
 */
import { httpQuestion } from '../harness/http-question.js';
import { busy, noSlower } from '../harness/loaded-values.js';
import type { Value } from '../harness/merge-rounds.js';
import { collectionPath, exportsType, mixedClusters, mixedTypes } from '../harness/mixed-objects.js';
import { watchChecks, writesOfExports } from '../harness/watch-load.js';

const measuredMs = 60_000;
const perSecond = 100;
const watchers = 8;
const lateMs = 30_000;

export const mixed = httpQuestion({
  name: 'mixed',
  family: 'requests',
  asks: 'What does a minute of mixed load give: updates, watches, gets, lists, informers?',
  protocols: ['HTTP/2'],
  roundsMax: 1,
  isLong: true,
  measure: async ({ client, target, http1, objects }) => {
    const clusters = mixedClusters()
      .slice(0, 8)
      .map(({ cluster }) => collectionPath(exportsType, '%2A', cluster));
    const paths = [...mixedTypes.map((type) => collectionPath(type)), ...clusters];
    const job = { ...writesOfExports(objects), kind: 'mixed', http1, paths, clients: watchers, perSecond, measuredMs, lateMs } as const;
    const loaded = await client.run(target, job);
    const kinds = Object.entries(loaded.details ?? {}).flatMap(([kind, { p50Ms, p99Ms, count }]): readonly Value[] => [
      { name: `${kind} p50`, value: p50Ms, unit: 'ms', better: 'less', ...noSlower.less, note: `${count} of them` },
      { name: `${kind} p99`, value: p99Ms, unit: 'ms', better: 'less' },
    ]);
    return {
      values: [
        ...kinds.toSorted((a, b) => a.name.localeCompare(b.name)),
        { name: 'event p50', value: loaded.delayP50Ms, unit: 'ms', better: 'less', ...noSlower.less, note: busy(loaded) },
        { name: 'event p99', value: loaded.delayP99Ms, unit: 'ms', better: 'less' },
        { name: 'processor time', value: (loaded.processorMs / measuredMs) * 1_000, unit: 'ms/s', better: 'less', ...noSlower.less },
      ],
      checks: watchChecks(loaded),
    };
  },
});
