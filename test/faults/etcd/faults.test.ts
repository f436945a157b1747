/**
 * What clients, pushers and operators see of servers whose etcd has no quorum, is full, loses its
 * data, or outlives a server's lease.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { freeze, thaw } from '../../support/freeze.js';
import { KubeError, type KubeClient } from '../../support/kube-client.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import type { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';
import { BalancedServers } from './balanced-servers.js';
import type { EtcdMembers } from './etcd-members.js';
import { Maintenance } from './maintenance.js';
import { members } from './with-members.js';

const path = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';

function anExport(name: string, filling = ''): unknown {
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name }, spec: { filling } };
}

async function ready(server: StrataProcess): Promise<string> {
  const client = server.client();
  const { status, text } = await client.raw('GET', '/readyz?verbose', { timeoutMs: 5_000 });
  client.close();
  return `${status} ${text.split('\n').find((line) => line.startsWith('[-]')) ?? ''}`.trim();
}

/** 200, or the code of the Status that the server answered. */
async function codeOf(asked: Promise<unknown>): Promise<number> {
  try {
    await asked;
    return 200;
  } catch (error) {
    if (error instanceof KubeError) return error.status;
    throw error;
  }
}

/** The keys of servers in etcd, with the revision and the lease of each. */
async function recordsOf(etcd: EtcdMembers): Promise<readonly string[]> {
  const client = etcd.client();
  const { kvs } = await client.range({ key: Buffer.from('/cache/'), rangeEnd: Buffer.from('/cache0') });
  client.close();
  return kvs
    .map(({ key, revision, lease }) => `${Buffer.from(key).toString()} ${revision} ${lease}`)
    .filter((key) => /leader|server|heartbeat/.test(key));
}

async function lifeOf(client: KubeClient): Promise<Readonly<{ id: string; epoch: number }>> {
  const { text } = await client.raw('GET', '/services/cache/status');
  const { id, epoch } = (JSON.parse(text) as { cache: { id: string; epoch: number } }).cache;
  return { id, epoch };
}

test('without a quorum a server lists only what it holds, and writes fail; with a quorum again all goes on', async (t) => {
  const etcd = await members(t, { members: 3, isSecure: true });
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd, { count: 1 });
  const [server, client] = [servers.servers[0]!, servers.client({ http2: true })];
  await client.create(path, anExport('before'));
  const seen: string[] = [];
  const stop = new AbortController();
  const { resourceVersion = '' } = (await client.list(path)).metadata;
  const watching = (async () => {
    for await (const { type, object } of client.watch(path, { query: { resourceVersion }, signal: stop.signal }))
      seen.push(`${type} ${object.metadata.name}`);
  })().catch(() => {});

  await Promise.all([etcd.signal(0, 'SIGKILL'), etcd.signal(1, 'SIGKILL')]);
  await until(async () => (await ready(server)).startsWith('500'), 20_000);
  t.regex(await ready(server), /^500 \[-\]store/);
  t.is((await client.list(`${path}?resourceVersion=0`)).items.length, 1);
  t.is(await codeOf(client.list(path)), 503);
  t.is(await codeOf(client.raw('GET', `${path}/before?resourceVersion=0`)), 200);
  const writing = codeOf(client.create(path, anExport('during')));
  const written = await writing;
  t.true([500, 503].includes(written), String(written));

  for (const i of [0, 1]) etcd.begin(i);
  await Promise.all([etcd.untilReady(0), etcd.untilReady(1)]);
  await until(async () => (await ready(server)) === '200', 20_000);
  await client.create(path, anExport('after'));
  await until(() => seen.includes('ADDED after'), 5_000);
  t.deepEqual(new Set(seen).size, seen.length);
  stop.abort();
  await watching;
});

test('while etcd’s quota is used up, deletes and lists work; once there is room, the server is ready by itself', async (t) => {
  const etcd = await members(t, { flags: ['--quota-backend-bytes=16777216'] });
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd, { count: 1 });
  const [server, client] = [servers.servers[0]!, servers.client({ http2: true })];
  let codes = 200;
  let created = 0;
  for (; codes === 200 && created < 200; created += 1)
    codes = await codeOf(client.create(path, anExport(`n${created}`, 'x'.repeat(200_000))));
  t.is(codes, 503);
  t.regex(await ready(server), /^500 \[-\]store/);
  const answered = Array.from({ length: created - 1 }, (_, i) => `n${i}`);
  const listed = (await client.list(path)).items.map(({ metadata }) => metadata.name);
  // etcd may refuse the write that reaches its quota and apply it all the same (quotaApplierV3).
  t.deepEqual(listed.filter((name) => name !== `n${created - 1}`).toSorted(), answered.toSorted());
  t.is(await codeOf(client.delete(`${path}/n0`)), 200);

  const room = etcd.client();
  await room.compact(await room.revision());
  room.close();
  const maintenance = new Maintenance(etcd.endpoints[0]!);
  for (let i = 1; i < created - 1; i += 1) await client.delete(`${path}/n${i}`);
  const again = etcd.client();
  await again.compact(await again.revision());
  // etcd goes on compacting after its answer.
  await until(async () => {
    await maintenance.defragment();
    return (await again.status()).size < 8_000_000;
  }, 20_000);
  again.close();
  await maintenance.disarm();
  maintenance.close();
  await until(async () => (await ready(server)) === '200', 10_000);
  await client.create(path, anExport('after'));
});

test('an object that is larger than etcd takes is answered 413, and the server stays ready', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd, { count: 1, flags: ['--body-bytes-max=3MiB'] });
  const client = servers.client({ http2: true });
  t.is(await codeOf(client.create(path, anExport('large', 'x'.repeat(2_000_000)))), 413);
  t.is(await ready(servers.servers[0]!), '200');
});

const losses: readonly (readonly [what: string, lose: (etcd: EtcdMembers) => Promise<void>])[] = [
  ['restored to an earlier state', (etcd) => etcd.putBack(0)],
  ['wiped', (etcd) => etcd.wipe(0)],
];

for (const [what, lose] of losses)
  test(`when etcd was ${what}, its server ends, and the next start begins another life of the cache`, async (t) => {
    const etcd = await members(t, { isDurable: true });
    if (etcd === undefined) return;
    await using _ = etcd;
    await using servers = await BalancedServers.start(etcd, { count: 1 });
    const server = servers.servers[0]!;
    const slice = sliceOf('apiexports', { shard: 'cedar' });
    const pusher = await RawPusher.open(servers, { name: 'cedar' });
    await pusher.sync(slice, [pushedExport('kept')]);
    const before = await lifeOf(server.client());

    await etcd.signal(0, 'SIGTERM');
    await etcd.keep(0);
    etcd.begin(0);
    await etcd.untilReady(0);
    await until(async () => (await ready(server)) === '200', 20_000);
    for (let i = 0; i < 20; i += 1) await server.client().create(path, anExport(`lost${i}`));
    await etcd.signal(0, 'SIGKILL');
    await lose(etcd);
    etcd.begin(0);
    await etcd.untilReady(0);

    t.is(await server.ended(), 1, 'it has shown what etcd has lost');
    await server.resume();
    const client = server.client();
    const { id, epoch } = await lifeOf(client);
    t.true(id !== before.id || epoch > before.epoch);
    t.is((await client.list(path)).items.length, 0);
    pusher.socket.terminate();
    const back = await RawPusher.open(servers, { name: 'cedar', position: pusher.position });
    t.deepEqual(back.synced, [], 'the pusher is asked to sync everything');
    back.socket.terminate();
  });

test('a server that was frozen for longer than its lease follows the new leader, and serves what was written meanwhile', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd);
  const [first, second] = servers.servers as [StrataProcess, StrataProcess];
  await until(async () => /peers\.leads/.test(await first.log()), 20_000);
  await freeze(first.pid);
  try {
    await until(async () => /peers\.leads/.test(await second.log()), 60_000).catch(async (error: unknown) => {
      for (const server of [first, second])
        t.log(await server.log(), (await readFile(`/proc/${server.pid}/stat`, 'utf8').catch(String)).slice(0, 40));
      t.log(await ready(second).catch(String), await recordsOf(etcd));
      throw error;
    });
    await second.client().create(path, anExport('meanwhile'));
  } finally {
    thaw(first.pid);
  }
  t.is((await first.client().list(path)).items.length, 1, 'a consistent read waits');
  await until(async () => /peers\.follows/.test(await first.log()), 60_000);
  await sleep(1_000);
  t.is(leads(await first.log()), 1);
  t.is(await ready(first), '200');
});

test('a server that is frozen while it waits in its start joins the running server', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd);
  const [running, starting] = servers.servers as [StrataProcess, StrataProcess];
  const life = await lifeOf(running.client());
  await starting.kill();
  const before = await leasesGranted(etcd);
  const started = starting.resume(60_000);
  // A waiting server is granted a lease each time it looks for a running one.
  await until(async () => (await leasesGranted(etcd)) > before);
  process.kill(starting.pid, 'SIGSTOP');
  try {
    await sleep(12_500);
  } finally {
    process.kill(starting.pid, 'SIGCONT');
  }
  await started;
  t.deepEqual(await lifeOf(starting.client()), life);
  t.is(await ready(running), '200');
});

async function leasesGranted(etcd: EtcdMembers): Promise<number> {
  const text = await (await fetch(`${etcd.endpoints[0]}/metrics`)).text();
  return Number(/^etcd_debugging_lease_granted_total (\S+)/m.exec(text)?.[1]);
}

function leads(log: string): number {
  return log.match(/peers\.leads/g)?.length ?? 0;
}

test('bookmarks advance while only other clients write to the same etcd', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd, { count: 1, flags: ['--bookmark-interval=100ms'] });
  const client = servers.client({ http2: true });
  await client.create(path, anExport('one'));
  const { resourceVersion = '' } = (await client.list(path)).metadata;
  const writer = etcd.client();
  const stop = new AbortController();
  let [last, wanted] = [0, 0];
  const watching = (async () => {
    for await (const { object } of client.watch(path, { query: { resourceVersion, allowWatchBookmarks: 'true' }, signal: stop.signal }))
      last = Number(object.metadata.resourceVersion);
  })().catch(() => {});
  for (let i = 0; i < 20; i += 1)
    wanted = (
      await writer.txn({ compare: [], success: [{ kind: 'put', key: Buffer.from('/others'), value: Buffer.from('x') }], failure: [] })
    ).revision;
  await until(() => last >= wanted, 5_000);
  t.true(last >= wanted);
  stop.abort();
  await watching;
  writer.close();
});
