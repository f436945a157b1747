/**
 * A restore of three members, servers that were killed before it, and leaders of etcd that change while the next server starts: what pushers were acknowledged
 * since the snapshot is gone, so the start begins another life, and pushers send it again.
 *
 * TEST_SEED=n repeats the choices of a round, though not its timing. TEST_RESTORES=n does so many rounds (3).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { seeded, type Random } from '../crash/random.js';
import { pushedExport, RawPusher, sliceOf } from '../support/raw-pusher.js';
import type { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';
import { BalancedServers } from './balanced-servers.js';
import type { EtcdMembers } from './etcd-members.js';
import { moveLeader } from './maintenance.js';
import { members } from './with-members.js';

const firstSeed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const rounds = Number(process.env['TEST_RESTORES'] ?? 3);

test('whatever leads etcd, servers that were killed before a restore are not taken for running ones', async (t) => {
  const etcd = await members(t, { members: 3 });
  if (etcd === undefined) return;
  t.timeout((rounds + 4) * 90_000);
  await using _ = etcd;
  const folder = await mkdtemp(join(tmpdir(), 'restored-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await using servers = await BalancedServers.start(etcd);
  const [first, second] = servers.servers as [StrataProcess, StrataProcess];

  for (let round = 0; round < rounds; round += 1) {
    const seed = firstSeed + round;
    const name = `cedar${round}`;
    const slice = sliceOf('apiexports', { shard: name });
    const path = `/services/cache/shards/${name}/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports`;
    const random = seeded(seed);
    const count = 1 + random.below(20);
    const epoch = await epochOf(first);
    const pusher = await RawPusher.open(servers, { name });
    await pusher.sync(slice, [pushedExport('kept')]);
    const snapshot = join(folder, `snapshot-${round}`);
    await etcd.save(snapshot);
    const lost = Array.from({ length: count }, (__, i) => pushedExport(`lost${i}`));
    await pusher.acknowledged(pusher.put(slice, lost));
    const { position } = pusher;
    pusher.socket.terminate();
    const killed = random.chance(0.5) ? [first, second] : [second, first];
    for (const server of killed) await server.kill();
    await etcd.restore(snapshot);

    const starting = first.resume(60_000);
    const changes = await changeLeaders(etcd, random);
    await starting;
    const what = `TEST_SEED=${seed}: ${changes} changes of the leader`;
    t.log(what);
    t.true((await epochOf(first)) > epoch, what);
    const back = await RawPusher.open(servers, { name, position });
    t.deepEqual(back.synced, [], what);
    await back.sync(slice, [pushedExport('kept'), ...lost]);
    t.is((await first.client().list(path)).items.length, count + 1, what);
    back.socket.terminate();
    await second.resume(60_000);
    await until(async () => (await epochOf(second)) === (await epochOf(first)), 10_000);
  }
});

async function epochOf(server: StrataProcess): Promise<number> {
  const client = server.client();
  const { text } = await client.raw('GET', '/services/cache/status');
  client.close();
  return (JSON.parse(text) as { cache: { epoch: number } }).cache.epoch;
}

/** Between two seconds and eight after the start has begun, some of them close together. */
async function changeLeaders(etcd: EtcdMembers, random: Random): Promise<number> {
  const changes = 1 + random.below(3);
  for (let i = 0; i < changes; i += 1) {
    await sleep(500 + random.below(2_500));
    await moveLeader(etcd.endpoints, random.below);
  }
  return changes;
}
