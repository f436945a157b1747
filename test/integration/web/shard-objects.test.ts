import { test } from '../../support/test.js';
import type { Certificate } from '../../support/test-authority.js';
import { aServer, hurried, until } from '../../support/test-server.js';

const exportsOf = (shard: string): string => `/services/cache/shards/${shard}/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports`;
const shardsOf = (shard: string): string => `/services/cache/shards/${shard}/clusters/root/apis/core.kcp.io/v1alpha1/shards`;
const anExport = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'widgets' } };
const aShard = (name: string): object => ({ apiVersion: 'core.kcp.io/v1alpha1', kind: 'Shard', metadata: { name } });

test('a Shard object that another shard writes and deletes removes no shard; the root shard’s does', async (t) => {
  const server = await aServer(t, { clock: hurried(20), flags: { 'shard-deleted-grace': '200ms' } });
  const as = (name: string): Certificate => server.authority.issue({ user: name, groups: ['strata'], uris: [`strata://shard/${name}`] });
  const cedar = server.client({ as: as('cedar') });
  const root = server.client({ as: as('root') });
  const removedShards = (): readonly unknown[] =>
    server.logged.filter(({ event }) => event === 'shard.removed').map(({ fields }) => (fields as { shard: string }).shard);
  await server.client().create(exportsOf('birch'), anExport);
  await server.client().create(exportsOf('dogwood'), anExport);

  await cedar.create(shardsOf('cedar'), aShard('birch'));
  await cedar.delete(`${shardsOf('cedar')}/birch`);
  await root.create(shardsOf('root'), aShard('dogwood'));
  await root.delete(`${shardsOf('root')}/dogwood`);

  await until(() => removedShards().length > 0);
  await new Promise((resolve) => setTimeout(resolve, 500));
  t.deepEqual(removedShards(), ['dogwood']);
  t.is((await server.client().raw('GET', `${exportsOf('birch')}/widgets`)).status, 200);
  t.is((await server.client().raw('GET', `${exportsOf('dogwood')}/widgets`)).status, 404);
});
