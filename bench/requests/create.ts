/**
 * How many creates a second are acknowledged, each durable before its answer? Limit: six times the
 * rate of upstream's cache server. The objects are deleted again, so that later questions find the
 * same objects.
 */
import { httpQuestion } from '../harness/http-question.js';
import { requestValues } from '../harness/loaded-values.js';
import { createdObjects } from '../harness/options.js';
import { atLeast } from '../harness/question.js';

const timesUpstreamMin = 6;
const shareOfCeilingMin = 1 / 3;

export const create = httpQuestion({
  name: 'create',
  family: 'requests',
  asks: 'How many creates a second are acknowledged, each durable, 16 at a time on one connection?',
  measure: async ({ client, target, http1, objects, bench: { options } }) => {
    const range = { kind: 'requests', http1, from: objects, to: objects + createdObjects, workers: options.workers } as const;
    const loaded = await client.run(target, { ...range, operation: 'create' });
    await client.run(target, { ...range, operation: 'delete' });
    return { values: requestValues('create', loaded, { ratioLimit: atLeast(timesUpstreamMin), ceilingLimit: atLeast(shareOfCeilingMin) }) };
  },
});
