import { test } from '../../support/test.js';
import { pathEntryVersion } from '../../../src/domain/path-entry.js';
import { clusterSlice, pushedCluster, pushedWorkspace, workspaceSlice } from '../../support/path-pusher.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import { until, type TestServer } from '../../support/test-server.js';

/**
 * Names and labels of series, without values. Leaves out series of the process itself, such as
 * garbage collections.
 */
async function seriesOf(server: TestServer): Promise<ReadonlySet<string>> {
  const { text } = await server.client().raw('GET', '/metrics');
  return new Set(text.match(/^(?:strata|proxy|kcp)_.*(?= )/gm));
}

test('logical clusters that are created, requested and deleted leave no series behind', async (t) => {
  const { door, cache, pushers } = await anInstallation(t);
  const status = async (name: string): Promise<number> => (await door.client().raw('GET', `/clusters/root:org:${name}/echo`)).status;
  const comeAndGo = async (names: readonly string[]): Promise<void> => {
    const [ofClusters, ofWorkspaces] = [clusterSlice('birch'), workspaceSlice('root')];
    for (const name of names) {
      pushers.birch.put(ofClusters, [pushedCluster(name, { path: `root:org:${name}` })], pathEntryVersion);
      pushers.amber.put(ofWorkspaces, [pushedWorkspace(`org1 ${name}`, { cluster: name, shard: 'birch' })], pathEntryVersion);
    }
    for (const name of names) {
      await until(async () => (await status(name)) === 200);
      await cache.client().raw('GET', `/services/cache/shards/birch/clusters/${name}/apis/apis.kcp.io/v1alpha2/apiexports`);
    }
    for (const name of names) {
      pushers.birch.delete(ofClusters, ['cluster'], name);
      pushers.amber.delete(ofWorkspaces, [name], 'org1');
    }
    for (const name of names) await until(async () => (await status(name)) === 403);
  };
  // Series that begin with the first request or answer of a kind stay, so they must exist first.
  await comeAndGo(['passing-first']);
  for (const server of [cache, door]) await seriesOf(server);
  const before = [await seriesOf(cache), await seriesOf(door)];

  await comeAndGo(Array.from({ length: 20 }, (_, i) => `passing-${i}`));

  for (const [i, server] of [cache, door].entries()) {
    const after = await seriesOf(server);
    t.deepEqual(
      [...after].filter((each) => !before[i]!.has(each) || each.includes('passing')),
      [],
    );
  }
});

test('a removed shard leaves no series behind, not even for requests passed on to it', async (t) => {
  const { door, cache, birch, pushers } = await anInstallation(t);
  t.is((await door.client().raw('POST', '/clusters/root:org:team/echo', { body: { a: 1 } })).status, 200);
  const of = async (server: TestServer): Promise<readonly string[]> =>
    [...(await seriesOf(server))].filter((each) => each.includes('birch'));
  t.true((await of(cache)).includes('strata_shard_connected{shard="birch"}'));
  t.true((await of(door)).includes('kcp_backend_rs_body_bytes{shard="birch"}'));
  birch.disconnect();

  pushers.birch.socket.terminate();
  await until(async () => (await cache.client().raw('DELETE', '/services/cache/shards/birch')).status === 200);

  await until(async () => (await of(cache)).length === 0 && (await of(door)).length === 0).catch(() => {});
  t.deepEqual([await of(cache), await of(door)], [[], []]);
});
