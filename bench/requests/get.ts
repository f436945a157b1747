/**
 * How many gets a second does a client in Go complete, 16 at a time on one connection? Limit: five
 * times the rate of upstream's cache server.
 */
import { httpQuestion } from '../harness/http-question.js';
import { requestValues } from '../harness/loaded-values.js';
import { atLeast } from '../harness/question.js';

const timesUpstreamMin = 5;
const shareOfCeilingMin = 1 / 3;

export const get = httpQuestion({
  name: 'get',
  family: 'requests',
  asks: 'How many gets a second, 16 at a time on one connection?',
  measure: async ({ client, target, http1, objects, bench: { options } }) => {
    const { workers, warmUpMs, measuredMs } = options;
    const loaded = await client.run(target, {
      kind: 'requests',
      operation: 'get',
      http1,
      from: 0,
      to: objects,
      workers,
      warmUpMs,
      measuredMs,
    });
    return { values: requestValues('get', loaded, { ratioLimit: atLeast(timesUpstreamMin), ceilingLimit: atLeast(shareOfCeilingMin) }) };
  },
});
