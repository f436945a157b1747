/**
 * Paths over the wire: shards push entries over websockets, links carry them, and `GET
 * /services/cache/resolve` says where a path leads.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { PathAnswer } from '../../../src/domain/path-resolution.js';
import { pathEntryVersion } from '../../../src/domain/path-entry.js';
import { openPathResolver } from '../../../src/client.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { clusterSlice, pushedCluster, pushedWorkspace, syncPaths, workspaceSlice, type Entries } from '../../support/path-pusher.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { aTree, holds } from '../../support/test-tree.js';

const root: Entries = {
  clusters: { root: { path: 'root', parentless: true }, org1: { path: 'root:org' } },
  workspaces: { 'root org': { cluster: 'org1' }, 'org1 team': { cluster: 'team1' }, 'org1 mnt': { url: 'https://mounts.example.com/a' } },
};
const birch: Entries = {
  clusters: { team1: { path: 'root:org:team' }, al1: { path: 'home:alice', parentless: true } },
  workspaces: { 'team1 off': { cluster: 'org1', unavailable: true } },
};

async function resolved(server: TestServer, path: string): Promise<PathAnswer> {
  const { status, text } = await server.client().raw('GET', `/services/cache/resolve?${new URLSearchParams({ path }).toString()}`);
  if (status !== 200) throw new Error(`${status}: ${text}`);
  return JSON.parse(text) as PathAnswer;
}

/** The answer in one line, without its freshness. */
async function shown(server: TestServer, path: string): Promise<string> {
  const answer = await resolved(server, path);
  switch (answer.kind) {
    case 'cluster':
      return `${answer.cluster} on ${answer.shard}, ${answer.path ?? 'no path'}${answer.unavailable ? ', unavailable' : ''}`;
    case 'mount':
      return answer.url;
    case 'uncertain':
      return `uncertain: ${answer.shards.join()}`;
    case 'disputed':
      return `disputed: ${answer.cluster} on ${answer.shards.join()}`;
    case 'ambiguous':
      return `ambiguous: ${answer.clusters.join()}`;
    case 'unknown':
      return 'unknown';
  }
}

async function becomes(t: ExecutionContext, server: TestServer, path: string, wanted: string): Promise<void> {
  let last = '';
  await until(async () => (last = await shown(server, path)) === wanted).catch(() => {});
  t.is(last, wanted, path);
}

async function both(t: ExecutionContext, server: TestServer): Promise<Readonly<{ root: RawPusher; birch: RawPusher }>> {
  const pushers = { root: await RawPusher.open(server, { name: 'root' }), birch: await RawPusher.open(server, { name: 'birch' }) };
  await syncPaths(pushers.root, 'root', root);
  await syncPaths(pushers.birch, 'birch', birch);
  t.teardown(() => {
    for (const { socket } of Object.values(pushers)) socket.terminate();
  });
  return pushers;
}

test('a path leads to a logical cluster on another shard, and the answer says how fresh the entries on the way are', async (t) => {
  const server = await aServer(t);
  await both(t, server);

  t.deepEqual(await resolved(server, 'root:org:team'), {
    kind: 'cluster',
    shard: 'birch' as never,
    cluster: 'team1' as never,
    path: 'root:org:team',
    unavailable: false,
    shards: ['root' as never, 'birch' as never],
    freshness: [
      { shard: 'root' as never, current: true, lagMs: 0 },
      { shard: 'birch' as never, current: true, lagMs: 0 },
    ],
  });
  for (const [path, wanted] of [
    ['team1', 'team1 on birch, root:org:team'],
    ['org1:team', 'team1 on birch, root:org:team'],
    ['root:org:mnt:child', 'https://mounts.example.com/a'],
    ['root:org:team:off', 'org1 on root, root:org, unavailable'],
    ['home:alice', 'al1 on birch, home:alice'],
    ['root:nope', 'unknown'],
    ['nope', 'unknown'],
    ['Root', 'unknown'],
    ['*', 'unknown'],
    ['system:admin', 'unknown'],
    ['', 'unknown'],
  ] as const)
    t.is(await shown(server, path), wanted, path);
});

test('when a Workspace is created, changed or deleted, the answer changes no later than the acknowledgement', async (t) => {
  const server = await aServer(t);
  const pushers = await both(t, server);

  await pushers.birch.acknowledged(pushers.birch.put(clusterSlice('birch'), [pushedCluster('new1', {})], pathEntryVersion));
  await pushers.root.acknowledged(
    pushers.root.put(workspaceSlice('root'), [pushedWorkspace('root new', { cluster: 'new1' })], pathEntryVersion),
  );
  t.is(await shown(server, 'root:new'), 'new1 on birch, no path');
  await pushers.root.acknowledged(
    pushers.root.put(workspaceSlice('root'), [pushedWorkspace('root new', { cluster: 'org1' })], pathEntryVersion),
  );
  t.is(await shown(server, 'root:new'), 'org1 on root, root:org');
  await pushers.root.acknowledged(pushers.root.delete(workspaceSlice('root'), ['new'], 'root'));
  t.is(await shown(server, 'root:new'), 'unknown');
});

test('a path that is not found is unknown only if every shard that could have it is whole and connected', async (t) => {
  const server = await aServer(t);
  t.is(await shown(server, 'nope'), 'uncertain: ', 'no shard is known');
  const pushers = await both(t, server);
  // The state of all shards may be cached for a tenth of a second.
  await becomes(t, server, 'nope', 'unknown');

  // cedar pushes no entries, so it may have any logical cluster. It cannot be the parent of a
  // Workspace that root lacks.
  const cedar = await RawPusher.open(server, { name: 'cedar' });
  t.teardown(() => cedar.socket.terminate());
  await cedar.syncWhole(sliceOf('apiexports', { shard: 'cedar' }), [pushedExport('one')]);
  await becomes(t, server, 'nope', 'uncertain: cedar');
  t.is(await shown(server, 'root:nope'), 'unknown');

  pushers.root.socket.terminate();
  await becomes(t, server, 'root:nope', 'uncertain: root');
  t.is(await shown(server, 'root:org'), 'org1 on root, root:org', 'an entry that was there is found all the same');
  const answer = await resolved(server, 'root:org');
  t.deepEqual(answer.kind === 'cluster' && answer.freshness.map(({ shard, current }) => [shard, current]), [['root', false]]);
});

test('while a slice is resynced, its former entries are found, and a missing entry is uncertain', async (t) => {
  const server = await aServer(t);
  const pushers = await both(t, server);
  await pushers.root.acknowledged(pushers.root.begin(workspaceSlice('root')));
  await becomes(t, server, 'root:nope', 'uncertain: root');
  t.is(await shown(server, 'root:org'), 'org1 on root, root:org');
});

test('entries cross a link only when the policies of both ends name their types', async (t) => {
  const tree = await aTree(t);
  const types = `types: [logicalclusters.paths.strata, workspaces.paths.strata]`;
  const top = await tree.cache('top', { config: `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}, {${types}}]}}` });
  const withPaths = await tree.cache('west', {
    parent: top,
    config: `parent: {forward: [{types: ['*']}], follow: [{types: ['*']}, {${types}}]}`,
  });
  const without = await tree.cache('east', { parent: top, config: `parent: {forward: [{types: ['*']}], follow: [{types: ['*']}]}` });
  const { root: pusher } = await both(t, top);
  await pusher.syncWhole(sliceOf('apiexports', { shard: 'root' }), [pushedExport('one')]);

  await becomes(t, withPaths, 'root:org:team', 'team1 on birch, root:org:team');
  await becomes(t, withPaths, 'home:alice', 'al1 on birch, home:alice');
  await becomes(t, withPaths, 'root:nope', 'unknown');
  await holds(t, without, 'one');
  t.regex(await shown(without, 'root:org:team'), /^uncertain/);

  await pusher.acknowledged(pusher.delete(workspaceSlice('root'), ['org'], 'root'));
  await becomes(t, withPaths, 'root:org', 'unknown');
});

test('entries are not Kubernetes objects: no client can list, get, write or discover them', async (t) => {
  const server = await aServer(t);
  await both(t, server);
  const place = '/services/cache/shards/*/clusters/*';
  const body = JSON.stringify({ apiVersion: 'paths.strata/v1', kind: 'Workspace', metadata: { name: 'evil' }, cluster: 'org1' });
  for (const [method, path] of [
    ['GET', `${place}/apis/paths.strata/v1/workspaces`],
    ['GET', '/services/cache/shards/root/clusters/root/apis/paths.strata/v1/workspaces/org'],
    ['GET', `${place}/apis/paths.strata/v1/workspaces?watch=true`],
    ['DELETE', '/services/cache/shards/root/clusters/root/apis/paths.strata/v1/workspaces/org'],
    ['POST', '/services/cache/shards/root/clusters/root/apis/paths.strata/v1/workspaces'],
  ] as const)
    t.is((await server.client().raw(method, path, method === 'POST' ? { body } : {})).status, 404, `${method} ${path}`);
  t.notRegex((await server.client().raw('GET', `${place}/apis`)).text, /paths\.strata/);
  t.is(await shown(server, 'root:org'), 'org1 on root, root:org');
});

test('an entry with an unsafe target is refused alone, and the former entry stays', async (t) => {
  const server = await aServer(t);
  const { root: pusher } = await both(t, server);
  const put = async (entry: unknown, place = 'root org') => {
    const frames = await pusher.acknowledged(pusher.put(workspaceSlice('root'), [pushedWorkspace(place, entry)], pathEntryVersion));
    return frames.filter(({ kind }) => kind === 'refuse').length;
  };
  for (const entry of [
    { url: 'http://mounts.example.com/' },
    { url: 'https://user:secret@mounts.example.com/' },
    { cluster: 'system:admin' },
    { cluster: 'org1', url: 'https://mounts.example.com/' },
    {},
    'org1',
  ])
    t.is(await put(entry), 1, JSON.stringify(entry));
  t.is(await put({ cluster: 'org1' }, 'system:admin org'), 1);
  t.is(await put({ cluster: 'org1' }, 'root a.b'), 1);
  t.is(await shown(server, 'root:org'), 'org1 on root, root:org');
  t.notRegex(JSON.stringify(server.logged), /secret/);
});

test('only callers who may read may resolve a path, and only one path at a time', async (t) => {
  const server = await aServer(t);
  await both(t, server);
  const nobody = server.authority.issue({ user: 'nobody', groups: ['team'] });
  t.is((await server.client({ as: null }).raw('GET', '/services/cache/resolve?path=root')).status, 403);
  t.is((await server.client({ as: nobody }).raw('GET', '/services/cache/resolve?path=root')).status, 403);
  for (const query of ['', '?path=a&path=b', '?path=a&shard=root', '?paths=a'])
    t.is((await server.client().raw('GET', `/services/cache/resolve${query}`)).status, 400, query);
});

test('entries survive a restart, and a missing entry is not unknown before its pusher is back', async (t) => {
  const server = await aServer(t);
  const pushers = await both(t, server);
  for (const { socket } of Object.values(pushers)) socket.terminate();
  const again = await server.restart();
  t.teardown(() => again.close());
  t.is(await shown(again, 'root:org:team'), 'team1 on birch, root:org:team');
  t.is(await shown(again, 'home:alice'), 'al1 on birch, home:alice');
  t.is(await shown(again, 'root:nope'), 'uncertain: root');
});

test('a program resolves paths with what the package exports', async (t) => {
  const server = await aServer(t);
  await both(t, server);
  const { certificate, key } = server.master;
  const resolver = openPathResolver({ cache: server.url, identity: { ca: server.certificate, certificate, key } });
  t.teardown(() => resolver.close());
  t.like(await resolver.resolve('root:org:team'), { kind: 'cluster', shard: 'birch', cluster: 'team1' });
  t.deepEqual(await resolver.resolve('root:nope'), { kind: 'unknown' });
});

test('a logical cluster that migrates is where its Workspace says, as kcp moves it, and disputed in between', async (t) => {
  const server = await aServer(t);
  const { root: onAmber, birch: onBirch } = await both(t, server);
  const put = async (pusher: RawPusher, shard: string, entry: object): Promise<void> =>
    void (await pusher.acknowledged(
      pusher.put(clusterSlice(shard), [pushedCluster('team1', { path: 'root:org:team', ...entry })], pathEntryVersion),
    ));
  const said = async (shard: string): Promise<void> => {
    const workspace = pushedWorkspace('org1 team', { cluster: 'team1', shard });
    await onAmber.acknowledged(onAmber.put(workspaceSlice('root'), [workspace], pathEntryVersion));
  };
  const is = async (wanted: string): Promise<void> => {
    for (const path of ['team1', 'root:org:team']) t.is(await shown(server, path), wanted, path);
  };
  await said('birch');
  await is('team1 on birch, root:org:team');
  // The origin refuses requests until the migration ends.
  await put(onBirch, 'birch', { migrating: true });
  await put(onAmber, 'root', { migrating: true });
  await is('team1 on birch, root:org:team');
  t.false(server.logged.some(({ event }) => event === 'path.conflict'));
  await onBirch.acknowledged(onBirch.delete(clusterSlice('birch'), ['cluster'], 'team1'));
  await put(onAmber, 'root', {});
  await is('disputed: team1 on root');
  t.true(server.logged.some(({ event }) => event === 'path.conflict'));
  t.regex((await server.client().raw('GET', '/metrics')).text, /strata_path_conflicts_total [1-9]/);
  await said('root');
  await is('team1 on root, root:org:team');
});
