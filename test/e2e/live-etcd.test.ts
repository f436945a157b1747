/**
 * An unmodified kcp of two shards uses two servers over three members of etcd, behind a TCP
 * balancer. kcp's own tests must pass, also while a server and a member are killed. A second test
 * moves a kcp from its own cache server to Strata on the same etcd and back; its tests must pass
 * each time.
 *
 * Runs where TEST_KCP_BIN names a folder with kcp's binaries, for about ten minutes; otherwise it
 * is skipped with a log line. The second test needs `cache-server` among them. TEST_KEEP keeps the
 * folder with all logs.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { BalancedServers } from '../faults/etcd/balanced-servers.js';
import { EtcdMembers } from '../faults/etcd/etcd-members.js';
import { etcdProgram } from '../faults/etcd/etcd-program.js';
import type { KubeObject } from '../support/kube-client.js';
import { isForeign } from '../support/strata-process.js';
import { keyOf } from '../support/watch-history.js';
import { writeCacheKubeconfig } from './cache-kubeconfig.js';
import { assertPassed } from './assert-passed.js';
import { LiveKcp, neededBinaries } from './live-kcp.js';
import { countListings, countRelists } from './relists.js';

const binaries = process.env['TEST_KCP_BIN'] ?? '';
/** client-go waits up to 30 s, with jitter, before it calls an unreachable server again. */
const backoffMsMax = 45_000;
const testMsMax = 1_800_000;

async function etcdMembers(t: ExecutionContext, needed: readonly string[]): Promise<EtcdMembers | undefined> {
  const missing = needed.filter((name) => !existsSync(join(binaries, name)));
  const found = await etcdProgram();
  const why =
    binaries === '' || isForeign
      ? 'TEST_KCP_BIN is not set, or the server is not ours'
      : missing.length > 0
        ? `${binaries} lacks ${missing.join(', ')}`
        : 'why' in found
          ? found.why
          : undefined;
  if (why === undefined && 'program' in found) {
    t.timeout(testMsMax);
    return EtcdMembers.start(found, { members: 3, isSecure: true });
  }
  t.log(`SKIPPED: ${why}`);
  t.pass();
  return undefined;
}

async function startKcp(servers: BalancedServers, folder: string): Promise<LiveKcp> {
  const { url, authority, master } = servers;
  const file = await writeCacheKubeconfig(join(folder, 'balanced.kubeconfig'), { url, authorityFile: authority.certificateFile, master });
  return LiveKcp.start(binaries, [file, file]);
}

test.serial('kcp’s tests pass on two servers over three members of etcd, also while one of each is killed', async (t) => {
  const etcd = await etcdMembers(t, neededBinaries);
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd);
  await using kcp = await startKcp(servers, servers.servers[0]!.folder);

  await replicates(t, kcp);
  const begin = new Map([...(await kcp.logEnds()).keys()].map((name) => [name, 0]));
  const listings = countListings(await kcp.logsSince(begin));
  const ends = await kcp.logEnds();
  const testing = kcp.test('e2e-reconciler-cache.test', '^TestReplication$');
  await sleep(3_000);
  await Promise.all([servers.kill(0), etcd.signal(1, 'SIGKILL')]);
  assertPassed(t, await testing, { atLeast: 6 });
  await sleep(backoffMsMax);
  const relists = countRelists(await kcp.logsSince(ends));
  t.log(`a server and a member killed: ${relists} relists; ${listings} listings before, at start`);
  t.true(listings > 40, 'kcp’s log reports listings');
  t.is(relists, 0, 'watches resume at the other server without a relist');

  etcd.begin(1);
  await Promise.all([servers.resume(0), etcd.untilReady(1)]);
  await Promise.all([servers.kill(1), etcd.signal(2, 'SIGKILL')]);
  await replicates(t, kcp);
});

test.serial('a kcp can move from its own cache server to Strata on the same etcd, and back', async (t) => {
  const etcd = await etcdMembers(t, [...neededBinaries, 'cache-server']);
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd, { count: 0 });
  await servers.add(join(binaries, 'cache-server'));
  await using kcp = await startKcp(servers, servers.servers[0]!.folder);
  await replicates(t, kcp);
  const before = await objectsOf(servers);

  await servers.stop(0);
  await servers.add();
  await servers.add();
  t.deepEqual(await objectsOf(servers), before, 'Strata serves what kcp’s own cache server has stored');
  await replicates(t, kcp);
  const ours = await objectsOf(servers);

  await Promise.all([servers.stop(1), servers.stop(2)]);
  await servers.resume(0);
  t.deepEqual(await objectsOf(servers), ours, 'kcp’s own cache server serves what Strata has stored');
  await replicates(t, kcp);
});

/** The APIExports of every shard, with their resourceVersions, by key. */
async function objectsOf(servers: BalancedServers): Promise<Readonly<Record<string, KubeObject>>> {
  const { items } = await servers.client().list('/services/cache/shards/%2A/clusters/%2A/apis/apis.kcp.io/v1alpha2/apiexports');
  return Object.fromEntries(items.map((item) => [keyOf(item), item]));
}

async function replicates(t: ExecutionContext, kcp: LiveKcp): Promise<void> {
  assertPassed(t, await kcp.test('e2e-reconciler-cache.test', '^TestReplication$'), { atLeast: 6 });
  assertPassed(t, await kcp.test('e2e-cache.test', '^(TestCacheServerReplicationAPI|TestReplicationWithWildcardListing)$'), {
    atLeast: 11,
  });
}
