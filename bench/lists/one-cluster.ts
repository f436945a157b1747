/**
 * How long does a list of one logical cluster among many take? One client lists one cluster after
 * the other.
 */
import { httpQuestion } from '../harness/http-question.js';
import { requestValues } from '../harness/loaded-values.js';
import { collectionPath, exportsType, mixedClusters } from '../harness/mixed-objects.js';

export const oneCluster = httpQuestion({
  name: 'one-cluster',
  family: 'lists',
  asks: 'How many lists of one logical cluster a second, one at a time?',
  protocols: ['HTTP/2'],
  measure: async ({ client, target, http1, bench: { options } }) => {
    const { warmUpMs, measuredMs } = options;
    const paths = mixedClusters().map(({ cluster }) => collectionPath(exportsType, '%2A', cluster));
    const loaded = await client.run(target, { kind: 'requests', operation: 'list', http1, paths, workers: 1, warmUpMs, measuredMs });
    return { values: requestValues('list of a cluster', loaded) };
  },
});
