/** limit and continue: pages of one revision, the remaining count, and tokens that are too old. */
import { test } from '../../support/test.js';
import type { KubeClient, KubeList, KubeStatus } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { aServer, hurried, until } from '../../support/test-server.js';

async function fill(client: KubeClient, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, i) =>
      client.create(aPath(), anApiExport({ name: `n${String(i).padStart(3, '0')}`, labels: { odd: String(i % 2) } })),
    ),
  );
}

function names({ items }: KubeList): readonly string[] {
  return items.map(({ metadata }) => metadata.name ?? '');
}

test('pages of a list show the first page’s revision, whatever is written between them', async (t) => {
  const client = (await aServer(t)).client();
  await fill(client, 25);
  const expected = await client.list(aPath());
  const pages: KubeList[] = [];

  for (let token: string | undefined = ''; token !== undefined; token = pages.at(-1)?.metadata.continue) {
    pages.push(await client.list(`${aPath()}?limit=7${token === '' ? '' : `&continue=${token}`}`));
    await client.delete(aPath({ name: `n00${pages.length}` }));
    await client.create(aPath(), anApiExport({ name: `n0${pages.length}5x` }));
    await client.mergePatch(aPath({ name: `n02${pages.length}` }), { spec: { changed: true } });
  }

  t.deepEqual(
    pages.flatMap(({ items }) => items),
    expected.items,
  );
  t.deepEqual(
    pages.map(({ items }) => items.length),
    [7, 7, 7, 4],
  );
  t.true(pages.every(({ metadata }) => metadata.resourceVersion === expected.metadata.resourceVersion));
  t.deepEqual(
    pages.slice(0, -1).map(({ metadata }) => typeof metadata.remainingItemCount),
    ['number', 'number', 'number'],
  );
  t.is(pages.at(-1)?.metadata.continue, undefined);
});

test('only lists without a selector have a remaining count, and a page that ends exactly at the end has no token', async (t) => {
  const client = (await aServer(t)).client();
  await fill(client, 20);

  const [first, selected, whole] = [
    await client.list(`${aPath()}?limit=5`),
    await client.list(`${aPath()}?limit=5&labelSelector=odd%3D1`),
    await client.list(`${aPath()}?limit=20`),
  ];

  t.is(first.metadata.remainingItemCount, 15);
  t.is(selected.metadata.remainingItemCount, undefined);
  t.truthy(selected.metadata.continue);
  t.is(whole.metadata.continue, undefined);
  t.is(whole.items.length, 20);
  const rest = await client.list(`${aPath()}?limit=5&labelSelector=odd%3D1&continue=${selected.metadata.continue}`);
  t.deepEqual(names(rest), ['n011', 'n013', 'n015', 'n017', 'n019']);
  t.is(rest.metadata.continue, undefined);
});

test('a token without a limit returns the whole rest', async (t) => {
  const client = (await aServer(t)).client();
  await fill(client, 12);
  const first = await client.list(`${aPath()}?limit=5`);

  t.is((await client.list(`${aPath()}?continue=${first.metadata.continue}`)).items.length, 7);
});

test('a token of another list, a malformed one, or one with a resourceVersion is refused', async (t) => {
  const client = (await aServer(t)).client();
  await fill(client, 3);
  const token = (await client.list(`${aPath()}?limit=1`)).metadata.continue;

  for (const [path, options] of [
    [aPath({ cluster: 'beta' }), `continue=${token}`],
    [aPath({ shard: '*' }), `continue=${token}`],
    [aPath(), 'continue=junk'],
    [aPath(), `continue=${token}&resourceVersion=7`],
  ] as const)
    t.is((await client.raw('GET', `${path}?${options}`)).status, 400, options);
});

test('a token that is too old gets 410 with another token, which continues after the same key at the newest state', async (t) => {
  const server = await aServer(t, { flags: { 'history-changes-max': '0', 'tombstones-max': '0' }, clock: hurried(100) });
  const client = server.client();
  await fill(client, 10);
  const first = await client.list(`${aPath()}?limit=4`);
  const revision = await server.metric('strata_published_revision');
  await client.delete(aPath({ name: 'n001' }));
  await client.delete(aPath({ name: 'n005' }));
  await client.create(aPath(), anApiExport({ name: 'n007x' }));
  const at = BigInt(first.metadata.resourceVersion ?? '');
  await until(async () => (await server.metric('strata_compacted_revision')) > revision);

  const late = await client.raw('GET', `${aPath()}?limit=100&continue=${first.metadata.continue}`);
  const status = JSON.parse(late.text) as KubeStatus;
  const rest = await client.list(`${aPath()}?limit=100&continue=${status.metadata.continue}`);

  t.is(late.status, 410);
  t.is(status.reason, 'Expired');
  t.deepEqual(names(rest), ['n004', 'n006', 'n007', 'n007x', 'n008', 'n009']);
  t.true(BigInt(rest.metadata.resourceVersion ?? '') > at);
  t.is((await client.raw('GET', `${aPath()}?resourceVersion=${at}&resourceVersionMatch=Exact`)).status, 410);
  t.is((await client.raw('GET', `${aPath()}?resourceVersion=${at}`)).status, 200);
  const events = client.watch(`${aPath()}?watch=true&resourceVersion=${at}`);
  t.like((await events.next()).value, { type: 'ERROR', object: { code: 410, reason: 'Expired' } });
  t.true((await events.next()).done);
});
