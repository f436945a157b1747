import { test } from '../../support/test.js';
import { pushedExport, RawPusher } from '../../support/raw-pusher.js';
import { until, type TestServer } from '../../support/test-server.js';
import { aTree } from '../../support/test-tree.js';
import { aSlice } from '../../support/pushes.js';

async function names(server: TestServer): Promise<string[]> {
  const { text } = await server.client().raw('GET', '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports');
  return (JSON.parse(text) as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name).sort();
}

test('an object pushed at one leaf is listed at the other, and removed there when it is deleted', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root });
  const west = await tree.cache('west', { parent: root });
  const amber = await RawPusher.open(east);

  await amber.sync(aSlice(), [pushedExport('one'), pushedExport('two')]);

  await until(async () => (await names(west)).join() === 'one,two');
  t.deepEqual(await names(root), ['one', 'two']);
  amber.delete(aSlice(), ['one']);
  await until(async () => (await names(west)).join() === 'two');
  t.deepEqual(await names(root), ['two']);
});
