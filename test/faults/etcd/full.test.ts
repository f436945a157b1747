/** While etcd's quota is used up: which deletes etcd takes, and what a starting server does. */
import { test } from '../../support/test.js';
import { fires } from '../../support/alerts.js';
import { aClaim, aFullSync, anUpsert, aRetract, mustPush } from '../../support/pushes.js';
import { aDelete, aPut } from '../../support/objects.js';
import type { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';
import { BalancedServers } from './balanced-servers.js';
import type { EtcdMembers } from './etcd-members.js';
import { Maintenance } from './maintenance.js';
import { opened } from './open-stores.js';
import { bytes, members } from './with-members.js';

const flags = ['--quota-backend-bytes=16777216'];
const fillingBytes = 500_000;

/** Writes until etcd has no space left. */
async function fill(etcd: EtcdMembers): Promise<void> {
  const client = etcd.client();
  const put = (i: number) =>
    client.txn({ compare: [], success: [{ kind: 'put', key: bytes(`/fill/${i}`), value: Buffer.alloc(fillingBytes) }], failure: [] });
  try {
    for (let i = 0; i < 200; i += 1) await put(i);
    throw new Error('it was never full');
  } catch (error) {
    if (!/space exceeded/.test(String(error))) throw error;
  } finally {
    client.close();
  }
}

async function makeRoom(etcd: EtcdMembers): Promise<void> {
  const client = etcd.client();
  const maintenance = new Maintenance(etcd.endpoints[0]!);
  for (let i = 0; i < 200; i += 1) await client.txn({ compare: [], success: [{ kind: 'delete', key: bytes(`/fill/${i}`) }], failure: [] });
  await client.compact(await client.revision());
  await until(async () => {
    await maintenance.defragment();
    return (await client.status()).size < 8_000_000;
  }, 20_000);
  await maintenance.disarm();
  maintenance.close();
  client.close();
}

test('a full etcd takes deletes of plain writers and pushers that write nothing else, and refuses other deletes', async (t) => {
  const etcd = await members(t, { flags });
  if (etcd === undefined) return;
  await using _ = etcd;
  const store = await opened(t, etcd);
  const lane = store.writer.lane();
  for (const name of ['alone', 'other']) await store.writer.submit(aPut({ shard: 'birch', name }, 'absent'));
  await store.writer.submit(aPut({ shard: 'cedar', name: 'other' }, 'absent'));
  await mustPush(lane, [aClaim(), ...aFullSync({}, [anUpsert({ name: 'pushed' }), anUpsert({ name: 'retracted' })])]);
  await fill(etcd);

  t.is((await store.writer.submit(aDelete({ shard: 'birch', name: 'alone' }))).kind, 'written', 'by a plain writer');
  t.deepEqual(
    (await lane.push([aRetract({ name: 'retracted' })])).map(({ kind }) => kind),
    ['written'],
  );
  // Another shard has an object of this name, and the delete must write that again.
  t.is((await store.writer.submit(aDelete({ shard: 'birch', name: 'other' }))).kind, 'unavailable');
  // The delete must record that the pusher of the shard is to sync again.
  t.is((await store.writer.submit(aDelete({ name: 'pushed' }))).kind, 'unavailable');
});

test('a server that starts while etcd is full waits, and joins the running server once there is room', async (t) => {
  const etcd = await members(t, { flags });
  if (etcd === undefined) return;
  await using _ = etcd;
  await using servers = await BalancedServers.start(etcd, { count: 1 });
  const first = servers.servers[0]!;
  await fill(etcd);
  await until(async () => (await first.client().raw('GET', '/readyz')).status === 500, 20_000);
  const metrics = (await first.client().raw('GET', '/metrics')).text;
  t.true(fires('StrataStoreFailing', metrics));
  t.notRegex(metrics, /^strata_disk_/m, 'the disk is etcd’s');

  let isReady = false;
  const starting = servers.add().then(() => (isReady = true));
  starting.catch(() => {});
  // Waits for longer than a start looks for a running server.
  await until(async () => /"full"|space exceeded/.test(await first.log()), 10_000);
  const beganMs = performance.now();
  await until(() => performance.now() - beganMs > 14_000, 20_000);
  t.false(isReady);
  const lines = (await first.log()).match(/peers\.report-failed/g)?.length ?? 0;
  t.true(lines <= 2, `${lines} lines`);
  await makeRoom(etcd);
  await starting;
  const second = servers.servers[1]!;
  t.is(await epochOf(second), await epochOf(first));
  await until(async () => (await first.client().raw('GET', '/readyz')).status === 200, 20_000);
  t.notRegex((await first.log()) + (await second.log()), /another life/);
});

async function epochOf(server: StrataProcess): Promise<number> {
  const { text } = await server.client().raw('GET', '/services/cache/status');
  return (JSON.parse(text) as { cache: { epoch: number } }).cache.epoch;
}
