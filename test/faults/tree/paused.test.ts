/**
 * Pauses servers for some seconds (SIGSTOP, SIGCONT), longer than their peers wait for an answer
 * (F7). Finds a broken promise to a client and a stale view that is reported as current. Also finds
 * a peer that does not come back, or that loses something because of the pause.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { freeze, thaw } from '../../support/freeze.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';
import { aModelShard, modelTypes } from '../crash/model-shard.js';
import { anOnlooker } from './onlooker.js';
import { aProcessTree, type TreeCache } from '../../support/crash/process-tree.js';
import { converge, digestsOf } from '../crash/tree-model.js';
import { WatchedLoad } from '../crash/watched-load.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
/** Both ends of every connection send a ping after 1 s, and wait 1 s for the pong. */
const hurry = ['--ping-interval=1s', '--pong-timeout=1s'];
const pauseMs = 5_000;
const noticeMsMax = 3_500;

test.serial('a server that is paused again and again under load keeps every promise, and sends no missed bookmarks at once', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  const bookmarkMs = 100;
  await using server = await StrataProcess.start({ flags: [...hurry, `--bookmark-interval=${bookmarkMs}ms`] });
  const load = await WatchedLoad.begin(t, server, seed);
  const bookmarks = await seenBookmarks(t, server);

  for (let round = 1; round <= 3; round += 1) {
    const writing = new AbortController();
    const written = load.write(writing.signal);
    await sleep(500);
    await freeze(server.pid);
    await sleep(pauseMs);
    const before = bookmarks.length;
    thaw(server.pid);
    await sleep(1_000);
    writing.abort();
    await written;
    const burst = bookmarks.length - before;
    t.true(burst > 0 && burst < 2_000 / bookmarkMs, `${burst} bookmarks within a second`);
    await load.check(`round ${round}`);
  }

  load.finish();
  t.true(load.acknowledged > 500);
});

test.serial('the time in which a server was paused does not count as absence of a shard with a plain writer', async (t) => {
  await using server = await StrataProcess.start({ flags: ['--shard-away-max=2s'] });
  const client = server.client();
  const created = await client.create(aPath(), anApiExport());
  const one = aPath({ name: 'one' });
  let isOver = false;
  const writing = (async () => {
    for (; !isOver; await sleep(100)) await client.replace(one, created);
  })();

  for (let pause = 0; pause < 3; pause += 1) {
    await sleep(700);
    await freeze(server.pid);
    await sleep(pauseMs);
    thaw(server.pid);
    await sleep(700);
    t.is((await client.raw('GET', one)).status, 200);
  }
  isOver = true;
  await writing;

  t.is((await client.get(one)).metadata.resourceVersion, created.metadata.resourceVersion, 'nothing was removed and recreated');
  await until(async () => (await client.raw('GET', one)).status === 404, 10_000);
  t.pass('a shard whose writer stays away is removed');
});

test.serial('a child that was paused never reports a stale view as current, and its link resumes from its position', async (t) => {
  const { root, west, amber, birch, wanted, syncs } = await twoCaches(t);
  const onlooker = await anOnlooker(t, west);
  const connections = west.uplink.connections;

  await west.freeze();
  await until(async () => (await root.metric('strata_link_connected', 'neighbour="child/west"')) === 0, noticeMsMax);
  for (let i = 0; i < 50; i += 1) amber.put(`n${i}`, { turn: 1 });
  amber.delete('n450');
  amber.delete('n451');
  amber.put('n451', { turn: 2 });
  birch.put('b460', { turn: 1 });
  await converge(t, 'the parent', { caches: [root], shards: [amber] });
  await sleep(pauseMs - noticeMsMax);
  const asked = Promise.all(Array.from({ length: 5 }, () => viewOf(west)));
  west.thaw();
  const views = [...(await asked)];
  while (views.at(-1)!.turn !== '1') views.push(await viewOf(west));

  t.deepEqual(views.filter(({ turn, showsCurrent }) => turn !== '1' && showsCurrent).slice(0, 3), [], `${views.length} views`);
  await converge(t, 'the end', wanted);
  amber.put('last');
  await until(() => onlooker.of('last').length === 1);
  t.is(onlooker.relists, 0);
  t.deepEqual(onlooker.of('n2'), ['MODIFIED 1']);
  t.deepEqual(onlooker.of('n450'), ['DELETED 0']);
  t.true(['MODIFIED 2', 'DELETED 0 ADDED 2'].includes(onlooker.of('n451').join(' ')), onlooker.of('n451').join(' '));
  t.deepEqual(onlooker.of('b460'), ['MODIFIED 1']);
  t.deepEqual(await digestsOf(root), await digestsOf(west));
  t.deepEqual([amber.syncs, birch.syncs], syncs, 'nothing was resynced');
  t.true(west.uplink.connections - connections <= 3, `${west.uplink.connections - connections} connections`);
});

test.serial('while its parent is paused a child serves its view, but not as current; its link resumes from its position', async (t) => {
  const { root, west, amber, birch, wanted, syncs } = await twoCaches(t);
  const onlooker = await anOnlooker(t, west);
  const connections = west.uplink.connections;

  await root.freeze();
  await sleep(noticeMsMax);
  const views = [];
  birch.put('b460', { turn: 1 });
  amber.put('n1', { turn: 1 });
  for (const untilMs = performance.now() + pauseMs - noticeMsMax; performance.now() < untilMs; await sleep(50))
    views.push(await viewOf(west));
  root.thaw();

  t.true(views.length > 5);
  t.deepEqual(views.filter(({ showsCurrent }) => showsCurrent).slice(0, 3), []);
  await until(() => onlooker.of('b460').length === 1);
  await converge(t, 'the end', wanted);
  await until(async () => (await viewOf(west)).showsCurrent);
  amber.put('last');
  await until(() => onlooker.of('last').length === 1);
  t.is(onlooker.relists, 0);
  t.deepEqual(onlooker.of('n1'), ['MODIFIED 1']);
  t.deepEqual(await digestsOf(root), await digestsOf(west));
  t.deepEqual([amber.syncs, birch.syncs], syncs, 'nothing was resynced');
  t.true(west.uplink.connections - connections <= 8, `${west.uplink.connections - connections} connections`);
});

const listed = `/services/cache/shards/amber/clusters/*/apis/${modelTypes[0].group}/${modelTypes[0].version}/${modelTypes[0].resource}`;

/**
 * A root to which amber pushes, and a child to which birch pushes; both caches hold both shards.
 */
async function twoCaches(t: ExecutionContext) {
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const west = await tree.start('west', { parent: root });
  const [amber, birch] = [aModelShard(t, 'amber'), aModelShard(t, 'birch')];
  // No namesakes, because to delete an object that has one is two changes.
  for (let i = 0; i < 500; i += 1) {
    amber.put(`n${i}`);
    birch.put(`b${i}`);
  }
  amber.push(root);
  birch.push(west);
  const wanted = { caches: [root, west], shards: [amber, birch] };
  await converge(t, 'the beginning', wanted);
  await until(async () => (await viewOf(west)).showsCurrent);
  return { root, west, amber, birch, wanted, syncs: [amber.syncs, birch.syncs] as readonly number[] };
}

/** Whether a cache reports amber as current, and the turn that it shows just after of `n1`. */
async function viewOf(cache: TreeCache): Promise<Readonly<{ showsCurrent: boolean; turn: string | undefined }>> {
  const { shards } = await cache.status();
  const shard = shards.find((each) => each.shard === 'amber');
  const isConnected = shard?.connection.kind === 'connected';
  const showsCurrent = isConnected && shard.slices.every(({ lagMs, current }) => lagMs !== null && lagMs < 1_000 && current !== false);
  const { items } = await cache.client.list(listed);
  return { showsCurrent, turn: items.find(({ metadata }) => metadata.name === 'n1')?.metadata.labels?.['turn'] };
}

/** Records the times of bookmarks on a watch of a type that does not change. */
async function seenBookmarks(t: ExecutionContext, server: StrataProcess): Promise<readonly number[]> {
  const { group, version, resource } = modelTypes[1];
  const path = `/services/cache/shards/*/clusters/*/apis/${group}/${version}/${resource}`;
  const [seen, stop]: [number[], AbortController] = [[], new AbortController()];
  const watching = (async () => {
    while (!stop.signal.aborted) {
      const query = { allowWatchBookmarks: 'true', resourceVersion: '0' };
      try {
        for await (const { type } of server.client().watch(path, { query, signal: stop.signal }))
          if (type === 'BOOKMARK') seen.push(performance.now());
      } catch {
        // The connection broke; the loop opens another.
      }
    }
  })();
  t.teardown(() => {
    stop.abort();
    return watching;
  });
  await until(() => seen.length > 0);
  return seen;
}
