import { test } from '../../support/test.js';
import { parseStatusReport } from '../../../src/domain/status.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { pushedExport, RawPusher } from '../../support/raw-pusher.js';
import { hurried, until, type TestServer } from '../../support/test-server.js';
import { aTree } from '../../support/test-tree.js';
import { formatLinkPolicy } from '../../../src/domain/link-policy.js';
import { aPolicy } from '../../support/link-rules.js';

const everything = formatLinkPolicy(aPolicy({ types: ['*'] }));

async function statusOf(server: TestServer): Promise<StatusReport> {
  return parseStatusReport((await server.client().raw('GET', '/services/cache/status')).text);
}

async function names(server: TestServer): Promise<string> {
  const { text } = await server.client().raw('GET', '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports');
  return (JSON.parse(text) as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name).join();
}

test('both ends report on their link, and on where a shard comes from and goes to', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root, clock: hurried(20) });
  const amber = await RawPusher.open(east);
  await amber.sync(aSlice(), [pushedExport('one')]);
  amber.socket.send({
    kind: 'status',
    freshness: [{ slice: aSlice(), connected: true, synced: true, lagMs: 0, whole: true }],
    withdrawn: [],
  });
  const isReported = ({ shards: [shard] }: StatusReport): boolean =>
    shard?.connection.kind === 'connected' && shard.slices[0]?.current === true;
  await until(async () => isReported(await statusOf(root)));
  await until(async () => ((await statusOf(root)).tree?.children[0]?.receiving.compared ?? 0) > 0);

  const [above, below] = [await statusOf(root), await statusOf(east)];

  t.like(above.tree, { name: null, route: [above.cache.id], hops: 0, parent: null });
  t.like(above.tree?.children[0], {
    name: 'east',
    cacheId: below.cache.id,
    receiving: { slices: 1, current: 1, refused: 0, differed: 0 },
    connection: { kind: 'connected' },
  });
  t.deepEqual(above.tree?.children[0]?.policies, {
    own: { up: formatLinkPolicy(aPolicy({ shards: ['*'] })), down: everything },
    other: { up: everything, down: everything },
  });
  t.like(above.shards[0], { shard: 'amber', via: 'child/east', connection: { kind: 'connected', peer: 'east' } });
  t.like(below.tree, { name: 'east', route: [below.cache.id, above.cache.id], hops: 1, children: [] });
  t.like(below.tree?.parent, { url: root.url, cacheId: above.cache.id, failures: 0, connection: { kind: 'connected' } });
  t.like(below.tree?.parent?.sending, { slices: 1, current: 1, behind: 0, refused: 0 });
  t.like(below.shards[0], { via: 'local', connection: { kind: 'connected' } });
  t.is(above.shards[0]?.slices[0]?.digest, below.shards[0]?.slices[0]?.digest);
  t.is(await root.metric('strata_link_connected'), 1);
  t.is(await east.metric('strata_link_slices'), 1);
});

test('reports on a shard do not outlive its removal: when its next pusher leaves, the parent reports that', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root });
  const schemas = aSlice({ resource: 'apiresourceschemas' });
  const before = await RawPusher.open(east);
  const isConnected = async (server: TestServer): Promise<boolean> => (await statusOf(server)).shards[0]?.connection.kind === 'connected';
  await before.syncWhole(aSlice(), [pushedExport('one')]);
  await before.syncWhole(schemas, []);
  await until(() => isConnected(root));
  await east.client().raw('DELETE', '/services/cache/shards/amber');
  await until(async () => (await statusOf(root)).shards[0]?.removed === true);

  const after = await RawPusher.open(east, { named: 0, process: 'another' });
  await after.syncWhole(aSlice(), [pushedExport('one')]);
  await until(() => isConnected(root));
  const { connection } = (await statusOf(root)).shards[0]!;
  t.true(connection.kind === 'connected' && connection.forMs < 2_000, JSON.stringify(connection));
  after.socket.terminate();

  await until(async () => !(await isConnected(east)));
  await until(async () => !(await isConnected(root)));
  t.false(await isConnected(root));
});

test('a shard written over plain HTTP at a child is reported as such at the parent, which has no connection metric for it', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const east = await tree.cache('east', { parent: root });
  await east.client().create(aPath(), anApiExport());

  await until(async () => (await statusOf(root)).shards[0]?.slices[0]?.objects === 1);

  const [shard] = (await statusOf(root)).shards;
  t.like(shard, { shard: 'amber', via: 'child/east', connection: { kind: 'plain' } });
  t.like(shard?.slices[0], { lagMs: null, sourceConnected: null });
  const { text } = await root.client().raw('GET', '/metrics');
  t.regex(text, /^strata_slice_objects\{shard="amber"/m);
  t.notRegex(text, /strata_shard_connected\{/);
});

test('a cache that starts while its parent is away serves what its disk has, and reports that', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const amber = await RawPusher.open(root);
  await amber.sync(aSlice(), [pushedExport('one')]);
  const flags = await tree.linkFlags('east', root);
  const east = await tree.cache('east', { parent: root });
  await until(async () => (await names(east)) === 'one' && (await statusOf(east)).shards[0]?.slices[0]?.everSynced === true);

  await root.stop();
  const again = await east.restart({ flags, config: "parent: {follow: [{types: ['*']}]}" });
  t.teardown(() => again.close());
  await until(async () => ((await statusOf(again)).tree?.parent?.failures ?? 0) > 0);

  const { cache, tree: received, shards } = await statusOf(again);
  t.true(cache.ready);
  t.is(await names(again), 'one');
  t.like(received?.parent, { connection: { kind: 'away' }, sending: null, receiving: { slices: 1, current: 1 } });
  t.truthy(received?.parent?.position);
  t.regex(received?.parent?.message ?? '', /./);
  t.is(received?.hops, null);
  t.like(shards[0], { via: 'parent', connection: { kind: 'away' }, slices: [{ everSynced: true, syncedIn: 'this-term', current: true }] });
});

test('rewriting the policy file of a running cache changes what passes', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const amber = await RawPusher.open(root);
  await amber.sync(aSlice(), [pushedExport('one')]);
  let config = 'parent: {follow: [{types: [secrets]}]}\nlink: {policyPoll: 100ms}';
  const east = await tree.cache('east', { parent: root, config: () => config });
  await until(async () => (await statusOf(east)).tree?.parent?.policies.other !== null);
  t.is(await names(east), '');

  config = 'parent: {follow: [{types: [apiexports.apis.kcp.io]}]}\nlink: {policyPoll: 100ms}';

  await until(async () => (await names(east)) === 'one');
  config = 'parent: {follow: [{types: [secrets]}]}\nlink: {policyPoll: 100ms}';
  await until(async () => (await names(east)) === '');
  t.is((await statusOf(root)).tree?.children[0]?.policies.other?.down, '[{"types":["secrets"]}]');
});
