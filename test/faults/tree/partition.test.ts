/**
 * Trees that are cut in two while objects on the far side change (F10), closed to a circle, or
 * frozen in their middle (F12). Finds a change that is lost, comes twice, or goes round in the
 * circle.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { until } from '../../support/test-server.js';
import { aModelShard } from '../crash/model-shard.js';
import { anOnlooker } from './onlooker.js';
import { aProcessTree, type TreeCache } from '../../support/crash/process-tree.js';
import { converge, digestsOf } from '../crash/tree-model.js';

const noticeMsMax = 15_000;
const nobodyListens = 1;

/**
 * Whether events are what an informer relies on: ADDED for each first state, MODIFIED for each
 * later one, DELETED only for an existing object.
 */
function isStory(events: readonly string[]): boolean {
  let isThere = false;
  return events.every((event) => {
    const fits = event.startsWith('ADDED') ? !isThere : isThere;
    isThere = !event.startsWith('DELETED');
    return fits;
  });
}

test.serial('after a partition every delete arrives once at the far leaf, and nothing that was deleted comes back', async (t) => {
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const east = await tree.start('east', { parent: root });
  const west = await tree.start('west', { parent: root });
  const amber = aModelShard(t, 'amber');
  const wanted = { caches: [root, east, west], shards: [amber] };
  amber.push(east);

  for (const [round, cutOff] of [east, west].entries()) {
    const names = ['changed', 'deleted', 'recreated', 'restored'].map((what) => `${what}-${round}`);
    const [changed, deleted, recreated, restored] = names as [string, string, string, string];
    for (const name of names) amber.put(name, { turn: 1 });
    await converge(t, `round ${round}, before`, wanted);
    const onlooker = await anOnlooker(t, west);
    cutOff.uplink.blackhole();
    await until(async () => (await root.metric('strata_link_connected', `neighbour="child/${cutOff.name}"`)) === 0, noticeMsMax);

    amber.put(changed, { turn: 2 });
    amber.delete(deleted);
    for (const [name, turn] of [
      [recreated, 2],
      [restored, 1],
    ] as const) {
      amber.delete(name);
      amber.put(name, { turn });
    }
    amber.put(`brief-${round}`, { turn: 1 });
    amber.delete(`brief-${round}`);
    await converge(t, `round ${round}, at the origin`, { caches: [east], shards: [amber] });
    cutOff.uplink.heal();
    await converge(t, `round ${round}, healed`, wanted);
    amber.put(`last-${round}`);
    await until(() => onlooker.of(`last-${round}`).length === 1);

    t.deepEqual(onlooker.of(changed), ['MODIFIED 2']);
    t.deepEqual(onlooker.of(deleted), ['DELETED 1']);
    t.true(isStory(['ADDED 1', ...onlooker.of(recreated)]), onlooker.of(recreated).join());
    t.regex(onlooker.of(recreated).at(-1)!, / 2$/);
    t.true(isStory(['ADDED 1', ...onlooker.of(restored)]), onlooker.of(restored).join());
    t.true(isStory(onlooker.of(`brief-${round}`)), onlooker.of(`brief-${round}`).join());
    t.is(onlooker.relists, 0);
  }

  await converge(t, 'the end', wanted);
  const digests = await digestsOf(root);
  for (const cache of [east, west]) t.deepEqual(await digestsOf(cache), digests, cache.name);
});

test.serial('in a chain of five caches with a frozen middle both halves go on, and each cache writes each change once', async (t) => {
  const tree = await aProcessTree(t);
  const chain: TreeCache[] = [await tree.start('c0')];
  for (let i = 1; i < 5; i += 1) chain.push(await tree.start(`c${i}`, { parent: chain[i - 1]! }));
  const [top, , middle, , leaf] = chain as [TreeCache, TreeCache, TreeCache, TreeCache, TreeCache];
  const [amber, birch] = [aModelShard(t, 'amber'), aModelShard(t, 'birch')];
  const wanted = { caches: chain, shards: [amber, birch] };
  amber.push(leaf);
  birch.push(top);
  for (const shard of [amber, birch]) for (let i = 0; i < 100; i += 1) shard.put(`${shard.name}-${i}`, { turn: 1 });
  await converge(t, 'the beginning', wanted);
  const onlooker = await anOnlooker(t, leaf);
  const before = await revisions(chain);

  await middle.freeze();
  for (const shard of [amber, birch]) for (let i = 0; i < 50; i += 1) shard.put(`${shard.name}-${i}`, { turn: 2 });
  await until(async () => (await chain[1]!.metric('strata_link_connected', 'neighbour="child/c2"')) === 0, noticeMsMax);
  await until(async () => (await chain[3]!.metric('strata_link_connected', 'neighbour="parent"')) === 0, noticeMsMax);
  await converge(t, 'frozen, above', { caches: chain.slice(0, 2), shards: [birch] });
  await converge(t, 'frozen, below', { caches: chain.slice(3), shards: [amber] });
  for (const shard of [amber, birch]) for (let i = 50; i < 100; i += 1) shard.put(`${shard.name}-${i}`, { turn: 2 });
  await sleep(1_000);
  middle.thaw();
  await converge(t, 'thawed', wanted);

  // A change that a resumed link brings a second time must not raise the revision.
  t.deepEqual(
    (await revisions(chain)).map((revision, i) => revision - before[i]!),
    chain.map(() => 200),
  );
  for (let i = 0; i < 100; i += 1) t.deepEqual(onlooker.of(`birch-${i}`), ['MODIFIED 2']);
  const digests = await digestsOf(top);
  for (const cache of chain) t.deepEqual(await digestsOf(cache), digests, cache.name);
});

test.serial('a cache that is pointed at itself, its child or its grandchild is refused, and nothing goes round in a circle', async (t) => {
  const tree = await aProcessTree(t);
  const root = await tree.start('root', { parent: nobodyListens });
  const child = await tree.start('child', { parent: root });
  const grandchild = await tree.start('grandchild', { parent: child });
  const other = await tree.start('other');
  const amber = aModelShard(t, 'amber');
  const below = [root, child, grandchild];
  amber.push(grandchild);
  for (let i = 0; i < 100; i += 1) amber.put(`n${i}`, { turn: 1 });
  await converge(t, 'the beginning', { caches: below, shards: [amber] });

  for (const [turn, above] of [root, child, grandchild].entries()) {
    const refusals = await loops(below);
    root.uplink.redirect(above.process.port);
    await root.process.restart('SIGKILL');
    await until(async () => (await loops(below)) > refusals, noticeMsMax);
    await until(async () => (await root.metric('strata_link_connected', 'neighbour="child/child"')) === 1, noticeMsMax);
    await converge(t, `back below ${above.name}`, { caches: below, shards: [amber] });
    const before = await revisions(below);
    for (let i = 0; i < 10; i += 1) amber.put(`n${i}`, { turn: turn + 2 });
    await converge(t, `below ${above.name}`, { caches: below, shards: [amber] });
    await sleep(500);

    t.deepEqual(
      (await revisions(below)).map((revision, i) => revision - before[i]!),
      [10, 10, 10],
    );
  }
  root.uplink.redirect(other.process.port);
  await root.process.restart('SIGKILL');
  await converge(t, 'set right', { caches: [other, ...below], shards: [amber] });
});

async function revisions(caches: readonly TreeCache[]): Promise<readonly number[]> {
  return await Promise.all(caches.map((cache) => cache.revision()));
}

/** How often the caches have logged a loop. */
async function loops(caches: readonly TreeCache[]): Promise<number> {
  const logs = await Promise.all(caches.map(({ process }) => process.log()));
  return logs.join('').split('"reason":"loop"').length - 1;
}
