/**
 * What do watchers that read nothing cost the others and the server's memory? A tenth of 40
 * wildcard watchers never reads, while all are sent 200 updates a second. A delay is from the time
 * at which a PUT was due to its event at a watcher that reads.
 */
import { httpQuestion } from '../harness/http-question.js';
import { busy, noSlower, processorValue } from '../harness/loaded-values.js';
import { readProcessMemory } from '../harness/process-usage.js';
import { watchChecks, writesOfExports } from '../harness/watch-load.js';

const watchers = 40;
const silent = 4;
const perSecond = 200;
const measuredTimes = 3;
const lateMs = 30_000;
const mib = 1_024 ** 2;

export const slowWatchers = httpQuestion({
  name: 'slow-watchers',
  family: 'watches',
  asks: 'What do 4 of 40 watchers that read nothing cost the others?',
  measure: async ({ client, target, http1, objects, bench: { options } }) => {
    const { pid } = target;
    const resident = async (): Promise<number> => (pid === undefined ? Number.NaN : (await readProcessMemory(pid)).residentBytes);
    let [before, after] = [Number.NaN, Number.NaN];
    const loaded = await client.run(
      target,
      {
        ...writesOfExports(objects),
        kind: 'watches',
        http1,
        clients: watchers,
        silent,
        perSecond,
        measuredMs: options.measuredMs * measuredTimes,
        lateMs,
      },
      async (step) => {
        if (step === 'begin') before = await resident();
        if (step === 'end') after = await resident();
      },
    );
    return {
      values: [
        {
          name: 'delay p50',
          value: loaded.delayP50Ms,
          unit: 'ms',
          better: 'less',
          ...noSlower.less,
          note: busy(loaded),
        },
        { name: 'delay p99', value: loaded.delayP99Ms, unit: 'ms', better: 'less' },
        { name: 'memory grows by', value: (after - before) / mib, unit: 'MiB' },
        processorValue('event', loaded, loaded.events),
      ],
      checks: watchChecks(loaded),
    };
  },
});
