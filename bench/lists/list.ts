/**
 * How long does a full wildcard list of a type take, on an open connection?
 *
 * The ceiling is the bare server, which sends prepared bytes. Limits: three times its time, and a
 * thirtieth of that of upstream's cache server.
 */
import { httpQuestion } from '../harness/http-question.js';
import { listValues } from '../harness/list-values.js';
import { collectionPath, exportsType } from '../harness/mixed-objects.js';
import { atMost } from '../harness/question.js';

const shareOfUpstreamMax = 1 / 30;
const timesCeilingMax = 3;

export const list = httpQuestion({
  name: 'list',
  family: 'lists',
  asks: 'How long does a full wildcard list of a type take?',
  measure: async ({ client, target, http1, objects, bench: { options } }) => {
    const loaded = await client.run(target, {
      kind: 'requests',
      operation: 'list',
      http1,
      paths: [collectionPath(exportsType)],
      workers: 1,
      warmUpMs: options.warmUpMs,
      measuredMs: options.measuredMs,
    });
    return listValues('list', loaded, objects, { ratioLimit: atMost(shareOfUpstreamMax), ceilingLimit: atMost(timesCeilingMax) });
  },
});
