/**
 * How long does a change take from its PUT to its watchers, at a steady pace?
 *
 * A delay begins when a PUT is due and ends when its event arrives at a watcher. All watchers and
 * changes count. One process takes both times. The writer and each watcher have their own
 * connections. A server that cannot keep up shows, because a late PUT stays late. Limit: half of
 * the delay of upstream's cache server.
 */
import { httpQuestion } from '../harness/http-question.js';
import { busy, processorValue } from '../harness/loaded-values.js';
import type { Protocol } from '../harness/client.js';
import { atMost, type Question } from '../harness/question.js';
import { pacedWrites, watchChecks } from '../harness/watch-load.js';

const shareOfUpstreamMax = 0.5;

type Load = Readonly<{ perSecond: number; watchers: number; protocols: readonly Protocol[]; isLong?: true }>;

export const delays: readonly Question[] = [
  delayAt({ perSecond: 100, watchers: 8, protocols: ['HTTP/2', 'HTTP/1.1'] }),
  delayAt({ perSecond: 1_000, watchers: 8, protocols: ['HTTP/2'] }),
  delayAt({ perSecond: 100, watchers: 256, protocols: ['HTTP/2'] }),
  delayAt({ perSecond: 1_000, watchers: 256, protocols: ['HTTP/2'], isLong: true }),
];

function delayAt({ perSecond, watchers, protocols, isLong }: Load): Question {
  return httpQuestion({
    name: `delay-${perSecond}-${watchers}`,
    family: 'watches',
    asks: `How long does a change take to ${watchers} watchers at a steady ${perSecond.toLocaleString('en')}/s?`,
    protocols,
    ...(isLong && { isLong }),
    measure: async ({ client, target, http1, objects, bench: { options } }) => {
      const { measuredMs } = options;
      const loaded = await client.run(target, pacedWrites({ objects, http1, watchers, perSecond, measuredMs }));
      return {
        values: [
          {
            name: 'delay p50',
            value: loaded.delayP50Ms,
            unit: 'ms',
            better: 'less',
            ratioLimit: atMost(shareOfUpstreamMax),
            note: busy(loaded),
          },
          { name: 'delay p99', value: loaded.delayP99Ms, unit: 'ms', better: 'less' },
          { name: 'PUT answered p50', value: loaded.p50Ms, unit: 'ms' },
          processorValue('event', loaded, loaded.events),
        ],
        checks: watchChecks(loaded),
      };
    },
  });
}
