/**
 * A cache moves to another parent and back, again and again. Finds a move that sends what the new
 * parent has already, and a shard that is not found by its path after a move.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { hurried, until, type TestServer } from '../../support/test-server.js';
import { aTree, holds } from '../../support/test-tree.js';
import { aModelShard } from '../crash/model-shard.js';
import { aProcessTree, type TreeCache } from '../../support/crash/process-tree.js';
import { converge } from '../crash/tree-model.js';

const exports = sliceOf('apiexports');
const objects = 2_000;
/** The bytes of a move, as a share of the bytes of the first sync. */
const shareMax = 0.05;
const moves = 260;
const moveMsMax = 30_000;
const settleMs = 2_000;
const nobodyListens = 1;

function bytesOf({ uplink: { passed } }: TreeCache): number {
  return passed.up + passed.down;
}

test.serial('a cache that moves to another parent and back sends and receives almost nothing if nothing is missing', async (t) => {
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const west = await tree.start('west', { parent: root });
  const east = await tree.start('east', { parent: root });
  const [amber, birch] = [aModelShard(t, 'amber'), aModelShard(t, 'birch')];
  for (let i = 0; i < objects; i += 1) for (const shard of [amber, birch]) shard.put(`${shard.name}-${i}`, { bytes: 500 });
  birch.push(root);
  await converge(t, 'birch', { caches: [root, west, east], shards: [birch] });
  const leaf = await tree.start('leaf', { parent: west });
  amber.push(leaf);
  const wanted = { caches: [root, west, east, leaf], shards: [amber, birch] };
  await converge(t, 'the beginning', wanted);
  const first = bytesOf(leaf);

  for (const parent of [east, west]) {
    const before = bytesOf(leaf);
    leaf.uplink.redirect(parent.process.port);
    leaf.uplink.cut();
    amber.put(`below-${parent.name}`);
    birch.put(`above-${parent.name}`);
    await converge(t, `below ${parent.name}`, wanted);
    const moved = bytesOf(leaf) - before;
    t.log(`${moved} bytes went to ${parent.name} and back, ${first} at first`);
    t.true(moved <= first * shareMax, `${moved}`);
  }
});

test.serial(
  'a shard whose cache moves to another branch with a new disk is found there, though the cache is away when the branch joins',
  async (t) => {
    const tree = await aProcessTree(t);
    const root = await tree.start('root');
    const east = await tree.start('east', { parent: root });
    const west = await tree.start('west', { parent: root });
    const leaf = await tree.start('leaf', { parent: west });
    const south = await tree.start('south', { parent: nobodyListens });
    const amber = aModelShard(t, 'amber');
    amber.put('before');
    amber.push(leaf);
    await converge(t, 'the beginning', { caches: [root, east, west, leaf], shards: [amber] });

    await leaf.loseDisk();
    leaf.uplink.redirect(south.process.port);
    await leaf.process.resume();
    await tree.trustAll();
    await converge(t, 'below south', { caches: [leaf, south], shards: [amber] });
    leaf.uplink.refuse();
    leaf.uplink.cut();
    south.uplink.redirect(east.process.port);
    await until(async () => (await south.status()).tree?.hops === 2, moveMsMax);
    await sleep(settleMs);
    leaf.uplink.heal();
    amber.put('after');

    await converge(t, 'south has joined', { caches: [root, east, west, south, leaf], shards: [amber] }, moveMsMax);
  },
);

test.serial(`a cache that has moved ${moves} times is still found by its path, also with a new disk`, async (t) => {
  t.timeout(10 * 60_000);
  const { root, parents, moveTo, leafWithNewDisk } = await aMovingLeaf(t);
  const leaf = await leafWithNewDisk();
  const process = 'one process';
  const amber = await RawPusher.open(leaf, { process });
  await amber.syncWhole(exports, [pushedExport('one')]);
  await holds(t, root, 'one');

  for (let move = 1; move <= moves; move += 1) {
    const to = parents[move % 2]!;
    moveTo(to.server);
    await until(async () => (await viaOf(to.server)) === 'child/leaf' && (await viaOf(root)) === `child/${to.name}`, moveMsMax);
  }
  await leaf.stop();
  moveTo(parents[(moves + 1) % 2]!.server);
  const back = await RawPusher.open(await leafWithNewDisk(), { process, named: amber.term });
  await back.syncWhole(exports, [pushedExport('one'), pushedExport('two')]);

  await holds(t, root, 'one,two');
});

/**
 * A leaf that moves between two parents and trusts the certificates of both. All clocks run fast.
 */
async function aMovingLeaf(t: ExecutionContext) {
  const clock = hurried(20);
  const tree = await aTree(t);
  const root = await tree.cache('root', { clock });
  const west = { name: 'west', server: await tree.cache('west', { parent: root, clock }) };
  const east = { name: 'east', server: await tree.cache('east', { parent: root, clock }) };
  const both = join(dirname(tree.authority.certificateFile), 'both.crt');
  const texts = [west, east].map(({ server }) => readFile(server.certificateFile, 'utf8'));
  await writeFile(both, (await Promise.all(texts)).join('\n'));
  const proxy = await TcpProxy.start(west.server.port);
  t.teardown(() => proxy.close());
  const flags = { 'parent-ca-file': both };
  const link = { parent: west.server, urls: [`https://127.0.0.1:${proxy.port}`], flags, clock };
  const leafWithNewDisk = (): Promise<TestServer> => tree.cache('leaf', link);
  const moveTo = ({ port }: TestServer): void => {
    proxy.redirect(port);
    proxy.cut();
  };
  return { root, parents: [west, east], moveTo, leafWithNewDisk };
}

async function viaOf(server: TestServer): Promise<string | null | undefined> {
  const { shards } = JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
  return shards.find(({ shard }) => shard === exports.shard)?.via;
}
