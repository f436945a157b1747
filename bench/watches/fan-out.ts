/**
 * How many events a second reach 32 wildcard watchers while 16 writers update at full speed?
 *
 * Time counts from the first PUT to the last event at the slowest watcher, so nothing may pile up.
 * Each watcher has its own connection. Limits: 25 times the rate of upstream's cache server, and 99
 * of 100 events within 20 ms of the writing of their update.
 */
import { httpQuestion } from '../harness/http-question.js';
import { busy, processorValue } from '../harness/loaded-values.js';
import { atLeast, atMost } from '../harness/question.js';
import { watchChecks, writesOfExports } from '../harness/watch-load.js';

const timesUpstreamMin = 25;
const delayP99MsMax = 20;
const lateMs = 60_000;
const msPerSecond = 1_000;

export const fanOut = httpQuestion({
  name: 'fan-out',
  family: 'watches',
  asks: 'How many events a second reach 32 wildcard watchers while 16 writers update at full speed?',
  measure: async ({ client, target, http1, objects, bench: { options } }) => {
    const { workers, watchers, measuredMs } = options;
    const loaded = await client.run(target, {
      ...writesOfExports(objects),
      kind: 'watches',
      http1,
      clients: watchers,
      workers,
      measuredMs,
      lateMs,
    });
    const { events, eventsMs, operations, elapsedMs } = loaded;
    return {
      values: [
        {
          name: 'events',
          value: events / (eventsMs / msPerSecond),
          unit: '/s',
          better: 'more',
          ratioLimit: atLeast(timesUpstreamMin),
          note: busy(loaded),
        },
        { name: 'updates', value: operations / (elapsedMs / msPerSecond), unit: '/s', better: 'more' },
        { name: 'event after its update p99', value: loaded.delayP99Ms, unit: 'ms', limit: atMost(delayP99MsMax) },
        { name: 'last event after last answer', value: eventsMs - elapsedMs, unit: 'ms' },
        processorValue('event', loaded, events),
      ],
      checks: watchChecks(loaded),
    };
  },
});
