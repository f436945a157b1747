import { test } from '../../support/test.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { until, type TestServer } from '../../support/test-server.js';
import { aTree } from '../../support/test-tree.js';

const exports = sliceOf('apiexports');
const schemas = sliceOf('apiresourceschemas');
const schema = pushedObject({ apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIResourceSchema', metadata: { name: 's.acme', uid: 'u' } });
const followsNothing = `
parent:
  forward: [{types: ['*']}]
  follow: []
children:
  '*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}
`;

async function schemasAt(server: TestServer): Promise<number> {
  const { shards } = JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
  return shards.find(({ shard }) => shard === 'amber')?.slices.find(({ resource }) => resource === 'apiresourceschemas')?.objects ?? 0;
}

for (const [title, begins] of [
  ['', false],
  [', and began to sync', true],
] as const)
  test(`a slice that a pusher named at a cache without its objects${title} leaves the other caches when it is withdrawn`, async (t) => {
    const tree = await aTree(t);
    const root = await tree.cache('root');
    const east = await tree.cache('east', { parent: root });
    const far = await tree.cache('far', { parent: root });
    const one = await RawPusher.open(east, { term: 1_000, process: 'p' });
    await one.syncWhole(exports, [pushedExport('a')]);
    await one.syncWhole(schemas, [schema], 'v1alpha1');
    await until(async () => (await schemasAt(far)) === 1);
    one.socket.terminate();
    await east.stop();

    const west = await tree.cache('west', { parent: root, config: followsNothing });
    const two = await RawPusher.open(west, { term: 1_001, process: 'p', takesOver: true });
    two.types([exports, schemas]);
    await two.syncWhole(exports, [pushedExport('a')]);
    if (begins) two.begin(schemas);
    // The slice stays while it is named; by now west has claimed the shard at the root.
    await until(async () => (await root.client().raw('GET', '/services/cache/status')).text.includes('"child/west"'));
    t.is(await schemasAt(far), 1);

    two.types([exports]);
    for (const cache of [root, far]) await until(async () => (await schemasAt(cache)) === 0);
  });
