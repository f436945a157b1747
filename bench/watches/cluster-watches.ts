/**
 * What do 1,000 watches of one logical cluster each cost updates elsewhere? The same updates are
 * measured first without watches.
 */
import { httpQuestion } from '../harness/http-question.js';
import { processorValue, requestValues } from '../harness/loaded-values.js';
import { collectionPath, exportsType } from '../harness/mixed-objects.js';
import { watchChecks, writesOfExports } from '../harness/watch-load.js';

const watches = 1_000;
const streamsOfConnection = 100;
const lateMs = 0;

export const clusterWatches = httpQuestion({
  name: 'cluster-watches',
  family: 'watches',
  asks: 'What do 1,000 watches of one logical cluster each cost updates elsewhere?',
  protocols: ['HTTP/2'],
  measure: async ({ client, target, http1, objects, bench: { options } }) => {
    const { workers, measuredMs } = options;
    const paths = Array.from({ length: watches }, (_, i) => collectionPath(exportsType, '%2A', `quiet-${i}`));
    const job = { ...writesOfExports(objects), kind: 'watches', http1, operation: 'elsewhere', workers, measuredMs, lateMs } as const;
    const alone = await client.run(target, { ...job, clients: 0 });
    const loaded = await client.run(target, { ...job, paths, clients: watches, connections: watches / streamsOfConnection });
    return {
      values: [
        ...requestValues('update', loaded).filter(({ better }) => better !== undefined),
        processorValue('update without watches', alone, alone.operations),
      ],
      checks: watchChecks(loaded),
    };
  },
});
