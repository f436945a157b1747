/**
 * How long does a change take from its PUT at one server to watchers at another server of the same
 * etcd, at a steady pace?
 *
 * It is like `delay`, with a second server. Limit: the delay of upstream's cache server to its own
 * watchers.
 */
import { httpQuestion } from '../harness/http-question.js';
import { busy } from '../harness/loaded-values.js';
import { atMost } from '../harness/question.js';
import { pacedWrites, watchChecks } from '../harness/watch-load.js';

const perSecond = 100;
const watchers = 8;

export const delayAcross = httpQuestion({
  name: 'delay-across',
  family: 'watches',
  asks: `How long does a change take to ${watchers} watchers at another server of the same etcd, at a steady ${perSecond}/s?`,
  protocols: ['HTTP/2'],
  needs: ['etcd'],
  measure: async ({ client, target, http1, objects, bench: { options, startAnother } }) => {
    await using other = target.role === 'measured' ? await startAnother?.() : undefined;
    const { measuredMs } = options;
    const loaded = await client.run(target, {
      ...pacedWrites({ objects, http1, watchers, perSecond, measuredMs }),
      ...(other !== undefined && { watched: { server: other.url, ca: other.certificateFile } }),
    });
    return {
      values: [
        { name: 'delay p50', value: loaded.delayP50Ms, unit: 'ms', better: 'less', note: busy(loaded) },
        { name: 'delay p99', value: loaded.delayP99Ms, unit: 'ms', better: 'less', ratioLimit: atMost(1) },
        { name: 'PUT answered p50', value: loaded.p50Ms, unit: 'ms' },
      ],
      checks: watchChecks(loaded),
    };
  },
});
