/**
 * Two servers of one etcd in the middle of a tree; the leader has the links. Finds a shard above,
 * below or at them whose objects differ between caches.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { aModelShard } from '../crash/model-shard.js';
import { seeded } from '../../support/crash/random.js';
import { aProcessTree } from '../../support/crash/process-tree.js';
import { converge, digestsOf } from '../crash/tree-model.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/test-server.js';
import { members } from './with-members.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const rounds = 4;

test('objects go up and down through two servers of one etcd, whichever leads, is killed, stops or is cut off', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  const tree = await aProcessTree(t);
  const flags = [`--etcd-servers=${etcd.endpoints.join(',')}`, '--etcd-prefix=/cache'];
  const root = await tree.start('root');
  const west = [await tree.start('west', { parent: root, flags }), await tree.start('west', { parent: root, flags })] as const;
  const leaf = await tree.start('leaf', { parent: west[0] });
  const ports = west.map(({ process }) => process.port);
  leaf.uplink.redirect(...ports);
  const balancer = await TcpProxy.start(0);
  t.teardown(() => balancer.close());
  balancer.redirect(...ports);

  const [amber, birch, cedar] = [aModelShard(t, 'amber'), aModelShard(t, 'birch'), aModelShard(t, 'cedar')];
  const shards = [amber, birch, cedar];
  for (const shard of shards) for (let i = 0; i < 20; i += 1) shard.put(`${shard.name}-${i}`);
  amber.push(leaf);
  birch.push(root);
  cedar.push(west[0], { port: balancer.port, caFile: tree.trustedFile });
  await converge(t, 'the beginning', { caches: [root, ...west, leaf], shards });

  for (let round = 1; round <= rounds; round += 1) {
    const i = random.below(2);
    const [gone, left] = [west[i]!, west[1 - i]!];
    await (random.below(2) === 0 ? gone.process.kill() : gone.process.stop());
    for (const shard of shards) {
      shard.put(`${shard.name}-in-round-${round}`);
      shard.put(`${shard.name}-${round}`);
      shard.delete(`${shard.name}-${random.below(20)}`);
    }
    await converge(t, `round ${round}, without server ${i}`, { caches: [root, left, leaf], shards });
    await gone.process.resume();
    await converge(t, `round ${round}, with both`, { caches: [root, ...west, leaf], shards });
  }

  for (const { uplink } of west) {
    uplink.refuse();
    uplink.cut();
  }
  for (const shard of shards) {
    for (let i = 0; i < 20; i += 2) shard.delete(`${shard.name}-${i}`);
    await sleep(200);
    for (let i = 0; i < 20; i += 4) shard.put(`${shard.name}-${i}`);
  }
  for (const { uplink } of west) uplink.heal();
  await converge(t, 'deletes and creates while the links up were broken', { caches: [root, ...west, leaf], shards });
  await until(async () => {
    const digests = await Promise.all([root, ...west, leaf].map(digestsOf));
    return digests.every((each) => JSON.stringify(each) === JSON.stringify(digests[0]));
  }, 10_000);
});

test('a parent learns the state of a pusher that is connected to the server which does not lead', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const tree = await aProcessTree(t);
  const flags = [`--etcd-servers=${etcd.endpoints.join(',')}`, '--etcd-prefix=/cache'];
  const root = await tree.start('root');
  await tree.start('west', { parent: root, flags });
  const { process: server } = await tree.start('west', { parent: root, flags });
  const slice = sliceOf('apiexports');
  const pusher = await RawPusher.open(server);
  pusher.types([slice]);
  await pusher.sync(slice, [pushedExport('one')]);
  const says = async (isThere: boolean): Promise<void> => {
    pusher.socket.send({
      kind: 'status',
      freshness: [{ slice, connected: isThere, synced: true, lagMs: 0, whole: isThere }],
      withdrawn: [],
    });
    await until(async () => {
      const { shards } = await root.status();
      const shown = shards.find(({ shard }) => shard === slice.shard)?.slices[0];
      return shown?.whole === isThere && shown.sourceConnected === isThere;
    }, 10_000);
  };

  for (const isThere of [true, false, true]) await says(isThere);
  t.pass();
});
