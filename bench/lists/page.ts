/**
 * How long does a page of 500 objects take? A client reads page after page to the end and begins
 * again.
 */
import { httpQuestion } from '../harness/http-question.js';
import { noSlower, processorValue } from '../harness/loaded-values.js';
import { collectionPath, exportsType } from '../harness/mixed-objects.js';

const pageLimit = 500;

export const page = httpQuestion({
  name: 'page',
  family: 'lists',
  asks: 'How long does a page of 500 objects take?',
  protocols: ['HTTP/2'],
  bare: false,
  measure: async ({ client, target, http1, bench: { options } }) => {
    const { warmUpMs, measuredMs } = options;
    const job = { kind: 'requests', operation: 'page', pageLimit, paths: [collectionPath(exportsType)], workers: 1 } as const;
    const loaded = await client.run(target, { ...job, http1, warmUpMs, measuredMs });
    return {
      values: [
        { name: 'page', value: loaded.elapsedMs / loaded.operations, unit: 'ms', better: 'less', ...noSlower.less },
        { name: 'page, p99', value: loaded.p99Ms, unit: 'ms' },
        processorValue('paged object', loaded, loaded.objects),
      ],
    };
  },
});
