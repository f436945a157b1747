/**
 * A shard that root lists claims what belongs to others: their requests must never reach it, and
 * the front door must report contradictions instead of deciding them.
 */
import { test } from '../../support/test.js';
import { pathEntryVersion } from '../../../src/domain/path-entry.js';
import { clusterSlice, pushedCluster, pushedWorkspace, syncPaths, workspaceSlice } from '../../support/path-pusher.js';
import { RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { until } from '../../support/test-server.js';
import { anInstallation, aShard } from '../../support/proxy/a-front-door.js';
import { EchoBackend } from '../../support/proxy/echo-backend.js';

for (const http2 of [false, true])
  test.serial(`over HTTP/${http2 ? 2 : 1.1}, a shard that claims what is on other shards gets none of their requests`, async (t) => {
    const { door, cache, pushers, amber, birch } = await anInstallation(t);
    const mallory = await EchoBackend.start(t, door.authority);
    const workspaces = [
      pushedWorkspace('root org', { cluster: 'org1', shard: 'root' }),
      pushedWorkspace('org1 team', { cluster: 'team1', shard: 'birch' }),
      pushedWorkspace('root mal', { cluster: 'mal1', shard: 'mallory' }),
    ];
    await pushers.amber.acknowledged(pushers.amber.put(workspaceSlice('root'), workspaces, pathEntryVersion));
    await pushers.amber.acknowledged(
      pushers.amber.put(sliceOf('shards', { group: 'core.kcp.io', shard: 'root' }), [aShard('mallory', mallory.url)], 'v1alpha1'),
    );
    const hostile = await RawPusher.open(cache, { name: 'mallory' });
    t.teardown(() => hostile.socket.terminate());
    await syncPaths(hostile, 'mallory', {
      clusters: {
        mal1: { path: 'root:mal' },
        root: { path: 'root', parentless: true },
        org1: { path: 'root:org' },
        team1: { path: 'root:mal:team' },
        v1u4alow0iv9: {},
        home: {},
      },
      workspaces: {
        'home bob': { cluster: 'mal1', shard: 'mallory' },
        'root org': { cluster: 'org1', shard: 'mallory' },
        'org1 team': { cluster: 'team1', shard: 'mallory' },
        'mal1 team': { cluster: 'team1', shard: 'mallory' },
      },
    });
    // Homes have no Workspace that says where they are.
    const ofNoWorkspace = [
      pushedCluster('v1u4alow0iv9', { path: 'user:alice', parentless: true }),
      pushedCluster('bob1', { path: 'home:bob', parentless: true }),
    ];
    await pushers.birch.acknowledged(pushers.birch.put(clusterSlice('birch'), ofNoWorkspace, pathEntryVersion));
    const client = door.client({ http2 });
    const asked = async (path: string): Promise<number> =>
      (await client.raw('GET', `/clusters/${path}/echo`, { headers: { authorization: 'Bearer secret' } })).status;
    await until(async () => (await asked('root:mal')) === 200);
    t.is(mallory.asked > 0, true, 'it gets requests for what is its own');
    const own = mallory.asked;

    for (const path of ['root', 'root:org', 'root:org:team', 'org1', 'org1:team']) t.is(await asked(path), 200, path);
    t.is(mallory.asked, own);
    for (const path of ['user:alice', 'home:bob', 'home:bob:team']) t.is(await asked(path), 503, `nothing in kcp says whose ${path} is`);
    t.is(await asked('bob1'), 200);
    t.is(mallory.asked, own);
    const { status, headers, text } = await client.raw('GET', '/clusters/team1/echo');
    t.deepEqual([status, headers['retry-after']], [503, '1'], 'both paths lead to the disputed logical cluster');
    t.regex(text, /"reason":"ServiceUnavailable"/);
    t.notRegex(text, /mallory|birch/, 'nobody is authenticated yet');
    t.true(door.logged.some(({ event, fields }) => event === 'path.conflict' && JSON.stringify(fields).includes('team1')));
    t.true((await door.metric('strata_path_conflicts_total')) > 0);
    t.like(JSON.parse((await cache.client().raw('GET', '/services/cache/resolve?path=team1')).text) as object, {
      kind: 'disputed',
      cluster: 'team1',
      shards: ['birch', 'mallory'],
    });

    // org1 has left its shard and has not arrived anywhere, so no other shard gets it.
    const asksBefore = [amber.asked, birch.asked];
    await pushers.amber.acknowledged(pushers.amber.delete(clusterSlice('root'), ['cluster'], 'org1'));
    await until(async () => (await asked('root:org')) === 503);
    t.is(await asked('org1'), 503);
    t.is(await asked('root:org:team'), 503);
    t.is(mallory.asked, own);
    t.true(amber.asked + birch.asked >= asksBefore[0]! + asksBefore[1]!);

    // It arrives once its Workspace names the new shard.
    await pushers.birch.acknowledged(
      pushers.birch.put(clusterSlice('birch'), [pushedCluster('org1', { path: 'root:org' })], pathEntryVersion),
    );
    const moved = [pushedWorkspace('root org', { cluster: 'org1', shard: 'birch' })];
    await pushers.amber.acknowledged(pushers.amber.put(workspaceSlice('root'), moved, pathEntryVersion));
    await until(async () => (await asked('root:org')) === 200);
    t.is(await asked('org1'), 200);
    t.is(mallory.asked, own);
  });

for (const http2 of [false, true])
  test.serial(
    `over HTTP/${http2 ? 2 : 1.1}, no shard has root, or decides where shards are, while nothing is known of the shard named root`,
    async (t) => {
      const { door, cache, pushers, birch } = await anInstallation(t);
      const mallory = await EchoBackend.start(t, door.authority);
      const hostile = await RawPusher.open(cache, { name: 'mallory' });
      t.teardown(() => hostile.socket.terminate());
      await syncPaths(hostile, 'mallory', {
        clusters: { root: { path: 'root', parentless: true }, org1: { path: 'root:org', parentless: true } },
        workspaces: { 'root org': { cluster: 'org1', shard: 'mallory' } },
      });
      await hostile.syncWhole(
        sliceOf('shards', { group: 'core.kcp.io', shard: 'mallory' }),
        ['mallory', 'birch', 'root'].map((name) => aShard(name, mallory.url)),
        'v1alpha1',
      );
      await pushers.amber.acknowledged(pushers.amber.delete(clusterSlice('root'), ['cluster'], 'root'));
      const client = door.client({ http2 });
      const asked = async (path: string): Promise<number> => (await client.raw('GET', `/clusters/${path}/echo`)).status;
      // Every shard is connected and whole, so root is known to be nowhere.
      await until(async () => (await asked('root')) === 403);
      t.is(await asked('root:org'), 403);
      const before = birch.asked;
      t.is(await asked('team1'), 200);
      t.is(birch.asked, before + 1, 'the Shards that root has lead there');
      t.is(mallory.asked, 0);
    },
  );
