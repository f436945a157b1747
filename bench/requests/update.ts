/**
 * How many updates a second are acknowledged, each durable before its answer, 16 at a time on one
 * connection? Each has a resourceVersion. Limit: nine times the rate of upstream's cache server.
 */
import { httpQuestion } from '../harness/http-question.js';
import { requestValues } from '../harness/loaded-values.js';
import { atLeast } from '../harness/question.js';

/** Limited, because the client first reads each object once. */
const updatedMax = 2_000;
const timesUpstreamMin = 9;
const shareOfCeilingMin = 0.3;

export const update = httpQuestion({
  name: 'update',
  family: 'requests',
  asks: 'How many updates a second are acknowledged, each durable, 16 at a time on one connection?',
  measure: async ({ client, target, http1, objects, bench: { options } }) => {
    const { workers, warmUpMs, measuredMs } = options;
    const to = Math.min(objects, updatedMax);
    const loaded = await client.run(target, { kind: 'requests', operation: 'update', http1, from: 0, to, workers, warmUpMs, measuredMs });
    return { values: requestValues('update', loaded, { ratioLimit: atLeast(timesUpstreamMin), ceilingLimit: atLeast(shareOfCeilingMin) }) };
  },
});
