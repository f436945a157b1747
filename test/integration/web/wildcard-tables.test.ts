import { test } from '../../support/test.js';
import type { KubeClient } from '../../support/kube-client.js';
import { aPath, anApiExport, type Place } from '../../support/objects.js';
import { aServer } from '../../support/test-server.js';

const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

type Table = Readonly<{
  columnDefinitions: readonly Readonly<{ name: string; priority: number }>[];
  rows: readonly Readonly<{ cells: readonly unknown[] }>[];
}>;

async function tableOf(client: KubeClient, place: Place): Promise<Table> {
  return JSON.parse((await client.raw('GET', aPath(place), { headers: { accept } })).text) as Table;
}

/** The column names, then all cells except the ages, which are last. */
function shown({ columnDefinitions, rows }: Table): readonly (readonly unknown[])[] {
  return [columnDefinitions.map(({ name }) => name), ...rows.map(({ cells }) => cells.slice(0, -1))];
}

test('a table has a column for each wildcard of its URL, after the name', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(aPath({ shard: 'amber', cluster: 'acme' }), anApiExport());
  await client.create(aPath({ shard: 'birch', cluster: 'beta' }), anApiExport());

  const everywhere = await tableOf(client, { shard: '*', cluster: '*' });

  t.deepEqual(shown(everywhere), [
    ['Name', 'Shard', 'Cluster', 'Age'],
    ['one', 'amber', 'acme'],
    ['one', 'birch', 'beta'],
  ]);
  t.true(everywhere.columnDefinitions.every(({ priority }) => priority === 0));
  t.deepEqual(shown(await tableOf(client, { shard: '*', cluster: 'acme' })), [
    ['Name', 'Shard', 'Age'],
    ['one', 'amber'],
  ]);
  t.deepEqual(shown(await tableOf(client, { shard: 'birch', cluster: '*' })), [
    ['Name', 'Cluster', 'Age'],
    ['one', 'beta'],
  ]);
  t.deepEqual(shown(await tableOf(client, { shard: 'amber', cluster: 'acme' })), [['Name', 'Age'], ['one']]);
});

test('a table shows where an object is even if the object is too long for its other cells, also in a watch', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(aPath({ shard: 'birch', cluster: 'beta' }), { ...anApiExport(), spec: { text: 'x'.repeat(70_000) } });

  const events: Table[] = [];
  const query = { watch: 'true', timeoutSeconds: '1' };
  for await (const { object } of client.watch(aPath({ shard: '*', cluster: '*' }), { query, headers: { accept } }))
    events.push(object as never);

  t.deepEqual(shown(await tableOf(client, { shard: '*', cluster: '*' }))[1], ['one', 'birch', 'beta']);
  t.deepEqual(shown(events[0] ?? { columnDefinitions: [], rows: [] })[1], ['one', 'birch', 'beta']);
});

test('a table shows the place where the object is stored, whatever its annotations claim', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(aPath(), anApiExport({ annotations: { 'kcp.io/cluster': 'other' } }));

  t.deepEqual(shown(await tableOf(client, { shard: '*', cluster: '*' }))[1], ['one', 'amber', 'acme']);
});
