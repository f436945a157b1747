/**
 * Two caches and the network between them, which is slow, silent or half-open, or whose other end
 * is away for long (F9). Finds a change that does not arrive, a link that resyncs instead of
 * resuming from its position, and a reader that is disturbed.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { until } from '../../support/test-server.js';
import type { Way } from '../../support/tcp-proxy.js';
import { aModelShard, modelTypes, type ModelShard } from '../crash/model-shard.js';
import { anOnlooker } from './onlooker.js';
import { aProcessTree, type TreeCache, type ProcessTree } from '../../support/crash/process-tree.js';
import { converge, digestsOf } from '../crash/tree-model.js';

/** Objects of each shard at the beginning. */
const still = 1_500;
const noticeMsMax = 15_000;
/**
 * A view that is older than this is not current: three heartbeats, and some time for a busy
 * machine.
 */
const staleMsMax = 4_000;
const exports = modelTypes[0];

type Stage = Readonly<{
  tree: ProcessTree;
  root: TreeCache;
  east: TreeCache;
  amber: ModelShard;
  birch: ModelShard;
  settled: (t: ExecutionContext, when: string) => Promise<void>;
}>;

/**
 * A root to which birch pushes, and a child to which amber pushes; both caches hold both shards.
 */
async function twoCaches(t: ExecutionContext, flags: readonly string[] = []): Promise<Stage> {
  const tree = await aProcessTree(t);
  const [amber, birch] = [aModelShard(t, 'amber'), aModelShard(t, 'birch')];
  const root = await tree.start('root', { flags });
  const east = await tree.start('east', { parent: root, flags });
  for (const shard of [amber, birch]) for (let i = 0; i < still; i += 1) shard.put(`${shard.name}-still-${i}`, { bytes: 500 });
  amber.push(east);
  birch.push(root);
  const wanted = { caches: [root, east], shards: [amber, birch] };
  await converge(t, 'the beginning', wanted);
  return { tree, root, east, amber, birch, settled: (context, when) => converge(context, when, wanted) };
}

/**
 * Whether a cache reports birch as current, and the turn that it shows just after of one object.
 */
async function viewOf(cache: TreeCache): Promise<Readonly<{ showsCurrent: boolean; turn: number }>> {
  const shard = (await cache.status()).shards.find((each) => each.shard === 'birch');
  const isThere = shard?.connection.kind === 'connected';
  const showsCurrent = isThere && shard.slices.every(({ lagMs, current }) => lagMs !== null && lagMs < 1_000 && current !== false);
  const path = `/services/cache/shards/birch/clusters/*/apis/${exports.group}/${exports.version}/${exports.resource}`;
  const { items } = await cache.client.list(path);
  return { showsCurrent, turn: Number(items.find(({ metadata }) => metadata.name === 'birch-still-1')?.metadata.labels?.['turn'] ?? 0) };
}

function change({ amber, birch }: Stage, turn: number, count = 60): void {
  for (const shard of [amber, birch]) for (let i = 0; i < count; i += 1) shard.put(`${shard.name}-${i}`, { turn });
}

/**
 * Syncs that a cache has received since its start: each ends in a sweep, also one without objects.
 */
function syncs(cache: TreeCache): Promise<number> {
  return cache.metric('strata_pushes_total', 'outcome="swept"');
}

/** Runs the task, and asserts that neither end has resynced anything meanwhile. */
async function syncsNothing(t: ExecutionContext, { root, east }: Stage, task: () => Promise<void>): Promise<void> {
  const before = await Promise.all([root, east].map(syncs));
  await task();
  t.deepEqual(await Promise.all([root, east].map(syncs)), before);
}

test.serial('on a slow link changes go both ways over one connection', async (t) => {
  const stage = await twoCaches(t);
  const { east, settled } = stage;
  const { connections } = east.uplink;

  await syncsNothing(t, stage, async () => {
    for (const [turn, delayMs] of [20, 250].entries()) {
      east.uplink.delay(delayMs);
      change(stage, turn + 1);
      await settled(t, `${delayMs} ms each way`);
    }
    east.uplink.heal();
  });

  t.is(east.uplink.connections, connections);
  t.deepEqual(await digestsOf(stage.root), await digestsOf(east));
});

test.serial('over a link that is too narrow for the changes, no stale view is reported as current', async (t) => {
  const patient = ['--ping-interval=60s', '--pong-timeout=60s'];
  const { root, east, birch, settled } = await twoCaches(t, patient);
  const seen: { atMs: number; turn: number }[] = [];
  const turnAt = (ms: number): number => seen.findLast(({ atMs }) => atMs <= ms)?.turn ?? 0;
  const views: { askedMs: number; showsCurrent: boolean; turn: number }[] = [];
  const look = async (): Promise<void> => {
    const askedMs = performance.now();
    views.push({ askedMs, ...(await viewOf(east)) });
  };

  east.uplink.narrow(200_000);
  let turn = 0;
  for (const untilMs = performance.now() + 12_000; performance.now() < untilMs; await sleep(100)) {
    turn += 1;
    for (let i = 0; i < 100; i += 1) birch.put(`birch-still-${i}`, { turn, bytes: 1_000 });
    seen.push({ atMs: performance.now(), turn: (await viewOf(root)).turn });
    await look();
  }
  const [shown] = views.slice(-1);
  t.true((shown?.turn ?? 0) < turnAt(performance.now()), 'it is behind');
  east.uplink.heal();
  await settled(t, 'healed');
  for (const untilMs = performance.now() + 10_000; views.at(-1)?.showsCurrent !== true && performance.now() < untilMs; await sleep(100))
    await look();

  t.is(views.at(-1)?.showsCurrent, true);
  t.log(`${views.length} views, ${views.filter(({ showsCurrent }) => showsCurrent).length} of them reported as current; ${turn} turns`);
  const better = views.filter(({ askedMs, showsCurrent, turn: shownTurn }) => showsCurrent && shownTurn < turnAt(askedMs - staleMsMax));
  t.deepEqual(better.slice(0, 3), []);
});

for (const ways of [[], ['up'], ['down']] satisfies Way[][]) {
  const what = ways.length === 0 ? 'swallows everything' : `swallows frames that go ${ways.join()}`;
  test.serial(
    `both ends notice a link that ${what}, and the link goes on from its position; readers of the child notice nothing`,
    async (t) => {
      const stage = await twoCaches(t);
      const { root, east, amber, settled } = stage;
      const onlooker = await anOnlooker(t, east);

      await syncsNothing(t, stage, async () => {
        east.uplink.blackhole(...ways);
        change(stage, 1);
        await until(() => onlooker.of('amber-59').length === 1, 2_000);
        await until(async () => (await east.metric('strata_link_connected', 'neighbour="parent"')) === 0, noticeMsMax);
        await until(async () => (await root.metric('strata_link_connected', 'neighbour="child/east"')) === 0, noticeMsMax);
        amber.put('amber-meanwhile', { turn: 2 });
        await until(() => onlooker.of('amber-meanwhile').length === 1, 2_000);
        east.uplink.heal();
        await settled(t, 'healed');
      });

      t.is(onlooker.relists, 0);
      t.deepEqual(onlooker.of('amber-0'), ['ADDED 1']);
      t.deepEqual(onlooker.of('birch-0'), ['ADDED 1']);
      t.deepEqual(await digestsOf(root), await digestsOf(east));
    },
  );
}

test.serial('a network that stalls for less than a link may be silent costs no connection', async (t) => {
  const stage = await twoCaches(t);
  const { east, settled } = stage;
  const { connections } = east.uplink;

  for (let turn = 1; turn <= 3; turn += 1) {
    east.uplink.stall();
    change(stage, turn);
    await sleep(300);
    east.uplink.heal();
    await settled(t, `stall ${turn}`);
  }

  t.is(east.uplink.connections, connections);
});

test.serial('a link over a network that breaks every other connection loses nothing and resyncs nothing', async (t) => {
  const stage = await twoCaches(t);
  const { east, settled } = stage;
  let tried = 0;

  await syncsNothing(t, stage, async () => {
    east.uplink.refuse(() => (tried += 1) % 2 === 1);
    for (let turn = 1; turn <= 2; turn += 1) {
      east.uplink.cut();
      change(stage, turn);
      await settled(t, `cut ${turn}`);
    }
  });

  t.true(tried >= 3);
});

test.serial('20,000 changes while the parent is away are sent later without a resync, and cost less than 150 MiB', async (t) => {
  const stage = await twoCaches(t);
  const { root, east, amber, settled } = stage;
  const [changes, keys, perTurn] = [20_000, 1_000, 500];
  const before = await residentMiB(east);
  const written = await east.revision();

  await root.process.kill();
  for (let done = 0; done < changes; done += perTurn) {
    for (let i = 0; i < perTurn; i += 1) amber.put(`amber-${(done + i) % keys}`, { turn: done + i });
    // If two states of an object waited together, the pusher would send only the newest.
    await until(async () => (await east.revision()) - written >= done + perTurn, 60_000);
  }
  const { turn } = amber.objects.findLast(({ name }) => name === `amber-${keys - 1}`)!;
  t.is(turn, changes - 1);
  await until(async () => (await labelOf(east, `amber-${keys - 1}`)) === String(turn), 60_000);
  t.is((await east.revision()) - written, changes);
  const away = await residentMiB(east);
  await root.process.resume();
  const syncsBefore = await syncs(root);
  await settled(t, 'the parent is back');

  t.is(await syncs(root), syncsBefore);
  t.notRegex(await east.process.log(), /link\.(?:behind-the-log|position-unknown)/);
  t.log(`MiB resident at the child: ${before} before, ${away} while away, ${await residentMiB(east)} behind it`);
  t.true((await residentMiB(east)) < before + 150);
});

test.serial('control: when a parent has lost its disk, the count of syncs shows that everything is resynced', async (t) => {
  const { tree, root, east, birch, settled } = await twoCaches(t);
  const before = await syncs(east);

  await root.loseDisk();
  await root.process.resume();
  await tree.trustAll();
  birch.put('birch-last');
  await settled(t, 'another disk');

  t.true((await syncs(east)) > before);
});

async function labelOf({ client }: TreeCache, name: string): Promise<string | undefined> {
  const path = `/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports/${name}`;
  const found = await client.get(path).catch(() => undefined);
  return found?.metadata.labels?.['turn'];
}

async function residentMiB({ process: { pid } }: TreeCache): Promise<number> {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1_024);
}
