/**
 * How long does a full list take a client that accepts gzip, as client-go does by default, and how
 * many bytes are sent? The client does not decompress.
 */
import { httpQuestion } from '../harness/http-question.js';
import { listValues } from '../harness/list-values.js';
import { collectionPath, exportsType } from '../harness/mixed-objects.js';

export const gzip = httpQuestion({
  name: 'gzip',
  family: 'lists',
  asks: 'How long does a full wildcard list take a client that accepts gzip?',
  protocols: ['HTTP/2'],
  bare: false,
  measure: async ({ client, target, http1, objects, bench: { options } }) => {
    const { warmUpMs, measuredMs } = options;
    const job = { kind: 'requests', operation: 'list', gzip: true, paths: [collectionPath(exportsType)], workers: 1 } as const;
    const loaded = await client.run(target, { ...job, http1, warmUpMs, measuredMs });
    const { values } = listValues('compressed list', loaded, objects);
    return { values };
  },
});
