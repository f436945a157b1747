/**
 * Three members of etcd are restored from a snapshot, and its leader changes while a server starts
 * on them. What pushers were acknowledged since the snapshot is gone, so the start must begin
 * another life of the cache, in which pushers send it again. Finds a start that takes a server of
 * the earlier life for a running one.
 *
 * TEST_SEED=n repeats the choices of a round, but not its timing. TEST_RESTORES=n does n rounds
 * (3).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { seeded, type Random } from '../../support/crash/random.js';
import { freeze, thaw } from '../../support/freeze.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import type { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';
import { BalancedServers } from './balanced-servers.js';
import type { EtcdMembers } from './etcd-members.js';
import { moveLeader } from './maintenance.js';
import { members } from './with-members.js';

const firstSeed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const rounds = Number(process.env['TEST_RESTORES'] ?? 2);

type Installation = Readonly<{ etcd: EtcdMembers; servers: BalancedServers; folder: string }>;

/**
 * `left`: runs before the restore, and ends servers. `amid`: runs while the first server starts
 * again.
 */
type Course = Readonly<{
  what: string;
  round: number;
  count: number;
  beforeSnapshot?: () => Promise<void>;
  left: () => Promise<void>;
  amid: () => Promise<void>;
}>;

async function anInstallation(t: ExecutionContext): Promise<Installation | undefined> {
  const etcd = await members(t, { members: 3 });
  if (etcd === undefined) return undefined;
  t.teardown(() => etcd[Symbol.asyncDispose]());
  const folder = await mkdtemp(join(tmpdir(), 'restored-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const servers = await BalancedServers.start(etcd);
  t.teardown(() => servers[Symbol.asyncDispose]());
  return { etcd, servers, folder };
}

/**
 * Asserts that a pusher which was acknowledged after the snapshot finds another life, and syncs
 * again.
 */
async function assertAnotherLife(t: ExecutionContext, { etcd, servers, folder }: Installation, course: Course): Promise<void> {
  const { what, round, count, beforeSnapshot, left, amid } = course;
  const [first] = servers.servers as [StrataProcess];
  const name = `cedar${round}`;
  const slice = sliceOf('apiexports', { shard: name });
  const path = `/services/cache/shards/${name}/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports`;
  const epoch = await epochOf(first);
  const target = { url: first.url, certificate: servers.certificate, master: servers.master };
  const pusher = await RawPusher.open(target, { name });
  await pusher.sync(slice, [pushedExport('kept')]);
  await beforeSnapshot?.();
  const snapshot = join(folder, `snapshot-${round}`);
  await etcd.save(snapshot);
  const lost = Array.from({ length: count }, (_, i) => pushedExport(`lost${i}`));
  await pusher.acknowledged(pusher.put(slice, lost));
  const { position } = pusher;
  pusher.socket.terminate();
  await left();
  await etcd.restore(snapshot);

  const starting = first.resume(60_000);
  await amid();
  await starting;
  t.true((await epochOf(first)) > epoch, what);
  const back = await RawPusher.open(target, { name, position });
  t.deepEqual(back.synced, [], what);
  await back.sync(slice, [pushedExport('kept'), ...lost]);
  t.is((await first.client().list(path)).items.length, count + 1, what);
  back.socket.terminate();
}

test('whichever member leads etcd, a start does not take servers that were killed before a restore for running ones', async (t) => {
  const installation = await anInstallation(t);
  if (installation === undefined) return;
  t.timeout((rounds + 4) * 90_000);
  const { etcd, servers } = installation;
  const [first, second] = servers.servers as [StrataProcess, StrataProcess];
  for (let round = 0; round < rounds; round += 1) {
    const seed = firstSeed + round;
    const random = seeded(seed);
    const killed = random.chance(0.5) ? [first, second] : [second, first];
    await assertAnotherLife(t, installation, {
      what: `TEST_SEED=${seed}`,
      round,
      count: 1 + random.below(20),
      left: async () => {
        for (const server of killed) await server.kill();
      },
      amid: () => changeLeaders(etcd, random),
    });
    await second.resume(60_000);
    await until(async () => (await epochOf(second)) === (await epochOf(first)), 10_000);
  }
});

test('a start does not take a server that was frozen before the snapshot, and goes on meanwhile, for a running one', async (t) => {
  const installation = await anInstallation(t);
  if (installation === undefined) return;
  t.timeout(180_000);
  const [first, second] = installation.servers.servers as [StrataProcess, StrataProcess];
  await assertAnotherLife(t, installation, {
    what: 'a frozen server',
    round: 0,
    count: 5,
    beforeSnapshot: () => freeze(second.pid),
    left: () => first.kill(),
    amid: async () => {
      // The restore has given its lease the whole time again.
      await sleep(3_000);
      thaw(second.pid);
    },
  });
  await second.ended();
});

async function epochOf(server: StrataProcess): Promise<number> {
  const client = server.client();
  const { text } = await client.raw('GET', '/services/cache/status');
  client.close();
  return (JSON.parse(text) as { cache: { epoch: number } }).cache.epoch;
}

/** Moves etcd's leadership one to three times, each 0.5 to 3 s after the last. */
async function changeLeaders(etcd: EtcdMembers, random: Random): Promise<void> {
  const changes = 1 + random.below(3);
  for (let i = 0; i < changes; i += 1) {
    await sleep(500 + random.below(2_500));
    await moveLeader(etcd.endpoints, random.below);
  }
}
