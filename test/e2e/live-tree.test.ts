/**
 * An unmodified kcp of two shards that share no cache: each has a leaf of its own, and a parent
 * joins the leaves. Each shard must read what the other writes, and the three caches must hold the
 * same. This must also hold after the parent was dead, after a leaf was restored from a snapshot,
 * and after a leaf moved to another parent and back.
 *
 * Runs where TEST_KCP_BIN names a folder with kcp's binaries, for about ten minutes; otherwise it
 * is skipped with a log line.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { isForeign } from '../support/strata-process.js';
import { Lateness } from '../support/lateness.js';
import { assertPassed } from './assert-passed.js';
import { LiveKcp, neededBinaries } from './live-kcp.js';
import { LiveTree } from './live-tree.js';
import { LiveWorkspaces, type Workspace } from './live-workspaces.js';
import { countRelists } from './relists.js';

/** kcp's controllers take some seconds to clean up. */
const convergeMsMax = 150_000;
const troubleMs = 10_000;
/**
 * Within this time the other caches must have what one holds, also while the parent was dead or the
 * leaf moved.
 */
const lateMsMax = 3_000;
const lookEveryMs = 200;
/**
 * A shard with a backlog writes five times a second, so a shard that writes nothing for so long has
 * finished.
 */
const throughMs = 1_000;
const createEveryMs = 250;

/** A link repairs a wrong digest and a broken connection, so only these log lines show them. */
const alarms = ['link.digest-differs', 'link.conflict', 'link.failed', 'link.refused', 'link.refused-here', 'link.too-large'];

const binaries = process.env['TEST_KCP_BIN'];
const missing = binaries === undefined ? [] : neededBinaries.filter((name) => !existsSync(join(binaries, name)));

test.serial('two kcp shards, each with a cache of its own, work as one through a parent cache', async (t) => {
  if (binaries === undefined || missing.length > 0 || isForeign) {
    const why = binaries === undefined ? 'TEST_KCP_BIN is not set' : `${binaries} lacks ${missing.join(', ')}, or the server is not ours`;
    t.log(`SKIPPED: ${why}`);
    t.pass();
    return;
  }
  t.timeout(1_800_000);
  await using tree = await LiveTree.start();
  await using kcp = await LiveKcp.start(binaries, await tree.kubeconfigs());
  t.log('kcp is ready');
  await assertSame(t, tree, 'once kcp was ready');

  // These tests also write to the cache they read, as a plain writer of the root shard.
  assertPassed(t, await kcp.test('e2e-reconciler-cache.test', '^TestReplication$'), { atLeast: 6 });
  // These tests only read, at the other leaf, what the root shard wrote to its own.
  const acrossLinks = await kcp.test('e2e-reconciler-cache.test', '^TestReplication$/^(APIExport|APIResourceSchema|WorkspaceType)$', {
    cache: 1,
  });
  assertPassed(t, acrossLinks, { atLeast: 3 });
  assertPassed(t, await kcp.test('e2e-cache.test', '^TestCacheServerReplicationAPI$'), { atLeast: 10 });
  await assertSame(t, tree, 'after kcp’s tests of replication');

  const client = await kcp.client();
  t.teardown(() => client.close());
  const workspaces = new LiveWorkspaces(client);
  const onRoot = await workspaces.create('strata-one', 'root');
  const onOther = await workspaces.create('strata-two', 'shard-1');
  await bindsAcross(t, { workspaces, tree, provider: onOther, consumer: onRoot });
  await bindsAcross(t, { workspaces, tree, provider: onRoot, consumer: onOther });

  await parentDies(t, { kcp, tree, workspaces, origins: [onRoot, onOther] });
  await leafMoves(t, { kcp, tree, workspaces, origins: [onRoot, onOther] });
  const wrong = await leafIsRestored(t, { kcp, tree, workspaces, origins: [onRoot, onOther] });

  for (const workspace of [onRoot, onOther]) await workspaces.remove(workspace);
  await assertSame(t, tree, 'after the workspaces were deleted');
  t.deepEqual(await tree.logged(...alarms), []);
  t.deepEqual(wrong, [], 'the shard recreates what its leaf lost in the restore');
});

type Binding = Readonly<{ workspaces: LiveWorkspaces; tree: LiveTree; provider: Workspace; consumer: Workspace }>;

/**
 * The two workspaces are on different shards, so kcp reads the export that it binds from the cache.
 */
async function bindsAcross(t: ExecutionContext, { workspaces, tree, provider, consumer }: Binding): Promise<void> {
  const startedMs = performance.now();
  await workspaces.exportCowboys(provider);
  await workspaces.bindCowboys(consumer, provider);
  const boundMs = performance.now() - startedMs;
  const cowboy = await workspaces.createCowboy(consumer, 'jane');
  t.is(cowboy.metadata.annotations?.['kcp.io/cluster'], consumer.cluster);
  t.true(await isStored(tree, provider), `the export of ${provider.path} is stored as one of ${provider.shard}`);
  t.log(`${consumer.shard} bound an export of ${provider.shard} ${(boundMs / 1_000).toFixed(1)} s after it was created`);
  await assertSame(t, tree, `while ${consumer.shard} had bound an export of ${provider.shard}`);

  await workspaces.removeCowboy(consumer, 'jane');
  await workspaces.unbindCowboys(consumer);
  await workspaces.removeCowboys(provider);
  await assertSame(t, tree, 'after the binding and the export were removed');
  t.false(await isStored(tree, provider), 'the deletion has reached every cache');
}

/** Whether every cache has an APIExport with this workspace's shard and logical cluster. */
async function isStored({ parent, leaves }: LiveTree, { shard, cluster }: Workspace): Promise<boolean> {
  const lists = await Promise.all(
    [parent, ...leaves].map(async (cache) => {
      const client = cache.client();
      const list = await client.list(`/services/cache/shards/${shard}/clusters/${cluster}/apis/apis.kcp.io/v1alpha2/apiexports`);
      client.close();
      return list.items.length;
    }),
  );
  return lists.some((count) => count > 0) && new Set(lists).size === 1;
}

type Trouble = Readonly<{ kcp: LiveKcp; tree: LiveTree; workspaces: LiveWorkspaces; origins: readonly Workspace[] }>;

/**
 * Kills the parent while both shards create and delete. Each shard must go on with its leaf, and
 * the leaf's informers must not relist.
 */
async function parentDies(t: ExecutionContext, { kcp, tree, ...stage }: Trouble): Promise<void> {
  const ends = await kcp.logEnds();
  const lateness = new Lateness();
  const written = await whileWriting(stage, 'died', async () => {
    await sleep(2_000);
    await tree.parent.kill();
    await sleep(troubleMs);
    await tree.parent.resume();
    await lookFor(2_000, tree, lateness);
  });

  t.log(`${written} exports created in each workspace around the death of the parent`);
  await assertSame(t, tree, 'after the parent came back', lateness);
  t.true(lateness.latest.atLeastMs <= lateMsMax, lateness.latest.difference);
  const relists = countRelists(await kcp.logsSince(ends));
  t.is(relists, 0, 'no informer of kcp relisted when the parent died');
}

/** Moves a leaf to another parent and back, as a load balancer may. */
async function leafMoves(t: ExecutionContext, { kcp, tree, ...stage }: Trouble): Promise<void> {
  const ends = await kcp.logEnds();
  const lateness = new Lateness();
  const written = await whileWriting(stage, 'moved', async () => {
    tree.lead(1, tree.another);
    await tree.arrived(1, tree.another);
    await sleep(troubleMs);
    tree.lead(1, tree.parent);
    await tree.arrived(1, tree.parent);
    await lookFor(2_000, tree, lateness);
  });

  t.log(`${written} exports created in each workspace while a leaf was at another parent`);
  await assertSame(t, tree, 'after the leaf was back', lateness);
  t.true(lateness.latest.atLeastMs <= lateMsMax, lateness.latest.difference);
  t.is(countRelists(await kcp.logsSince(ends)), 0, 'no informer of kcp relisted when the leaf moved');
}

/**
 * Restores a leaf from an older snapshot. Its shard relists, and recreates what the snapshot lacks
 * once the parent has removed it and the leaf has reported that (swept-keys.ts). Until then the
 * parent keeps what the leaf has lost, so at one moment all caches may be equal. Returns the
 * exports in which the parent and kcp differ.
 */
async function leafIsRestored(t: ExecutionContext, { tree, ...stage }: Trouble): Promise<readonly string[]> {
  const [plainWrites] = stage.origins;
  if (plainWrites === undefined) throw new Error('there is a workspace');
  const written = await whileWriting(stage, 'restored', async () => {
    await sleep(2_000);
    const copy = await tree.snapshot(0);
    await sleep(troubleMs);
    await tree.restore(0, copy);
  });

  t.log(`${written} exports created in each workspace around the restore of a leaf`);
  await assertSame(t, tree, 'after the leaf was restored');
  const wanted = new Set(await stage.workspaces.exports(plainWrites));
  const held = new Set(await tree.exportsOf(plainWrites));
  const wrong = [...wanted, ...held].filter((name) => !wanted.has(name) || !held.has(name));
  t.log(`… the parent has ${held.size} exports of that workspace, kcp ${wanted.size}; they differ in ${wrong.length}`);
  return wrong;
}

/** Both shards create and delete exports while `task` runs. Returns how many each shard created. */
async function whileWriting(
  { workspaces, origins }: Pick<Trouble, 'workspaces' | 'origins'>,
  name: string,
  task: () => Promise<void>,
): Promise<number> {
  let isOver = false;
  const writing = (async () => {
    let created = 0;
    for (; !isOver; created++) {
      for (const plainWrites of origins) {
        await workspaces.exportNothing(plainWrites, `${name}-${created}`);
        if (created % 3 === 2) await workspaces.removeExport(plainWrites, `${name}-${created - 2}`);
      }
      await sleep(createEveryMs);
    }
    return created;
  })();
  try {
    await task();
  } finally {
    isOver = true;
  }
  return writing;
}

/**
 * Asserts that all caches are equal once the shards have finished writing, which takes kcp a while
 * (lateness.ts).
 */
async function assertSame(t: ExecutionContext, tree: LiveTree, when: string, lateness = new Lateness()): Promise<void> {
  const startedMs = performance.now();
  const writesBefore = await tree.writes();
  let [writes, writtenMs] = [writesBefore, startedMs];
  for (;;) {
    const differences = await look(tree, lateness);
    const writesNow = await tree.writes();
    if (writesNow !== writes) [writes, writtenMs] = [writesNow, performance.now()];
    if (differences.length === 0 && performance.now() - writtenMs > throughMs) break;
    if (performance.now() - startedMs > convergeMsMax) {
      t.deepEqual(differences, [], when);
      break;
    }
    await sleep(lookEveryMs);
  }
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
  const { atLeastMs, atMostMs } = lateness.latest;
  const lasted = `the difference that was seen for longest lasted ${seconds(atLeastMs)} to ${seconds(atMostMs)}`;
  t.log(`${when}: all three caches hold the same ${await tree.objects()} objects (${seconds(performance.now() - startedMs)})`);
  t.log(`… the shards wrote ${writes - writesBefore} times meanwhile, last after ${seconds(writtenMs - startedMs)}; ${lasted}`);
}

async function lookFor(ms: number, tree: LiveTree, lateness: Lateness): Promise<void> {
  for (const startedMs = performance.now(); performance.now() - startedMs < ms; await sleep(lookEveryMs)) await look(tree, lateness);
}

async function look(tree: LiveTree, lateness: Lateness): Promise<readonly string[]> {
  const beganMs = performance.now();
  const differences = await tree.differences();
  const endedMs = performance.now();
  lateness.see(differences, { beganMs, endedMs });
  return differences;
}
