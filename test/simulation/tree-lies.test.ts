/**
 * The smallest trees in which random-tree.test.ts once found caches that reported more than was
 * true (freshness-check.ts).
 */
import { rounds } from '../support/sizes.js';
import { test } from '../support/test.js';
import { aGrownTree, aPusher, everything } from './a-grown-tree.js';
import { FreshnessCheck } from './freshness-check.js';
import { aSimObject } from './sim-objects.js';
import { Tamperer } from './tamperer.js';

/**
 * Longer than every freshness bound, so that reports from the time of growth are compared with the
 * calm tree.
 */
const calmMs = 60_000;

async function aCalmTree(...options: Parameters<typeof aGrownTree>) {
  const grown = await aGrownTree(...options);
  const check = new FreshnessCheck(grown.world, grown.tree);
  await check.pass(calmMs);
  const put = (...names: readonly string[]): void => {
    for (const name of names) grown.amber.put(aSimObject({ shard: 'amber', name }));
  };
  return { ...grown, check, put };
}

const many = Array.from({ length: 60 }, (_, number) => `many-${number}`);

test('without trouble every cache is as fresh as it reports, however much changes', async (t) => {
  const { check, put, world } = await aCalmTree();
  for (let round = 0; round < rounds(40); round += 1) {
    put(`new-${round % 7}`);
    await check.pass(300);
  }
  await check.pass(30_000);

  t.deepEqual([...check.lies('freshness'), ...check.lies('absence')], []);
  t.deepEqual(world.faults, []);
});

test('three links away, no cache reports a shard as connected 14 s after its pusher left', async (t) => {
  const { amber, check, put, tree } = await aCalmTree();
  tree.quit(amber);
  put('new');
  for (let seconds = 0; seconds < 16; seconds += 1) await check.pass(1_000);

  t.deepEqual(check.lies('freshness'), []);
});

// A narrower and a wider offer in turn, while changes flow.
test('no cache reports a slice as current that a change of policies left wrong', async (t) => {
  const { check, put, tree } = await aCalmTree();
  for (let round = 0; round < rounds(60); round += 1) {
    put(`new-${round % 7}`);
    const rules = round % 20 < 10 ? [{ types: ['apiexports.apis.kcp.io'], labels: { visibility: 'public' } }] : everything;
    if (round % 10 === 5) tree.cache('root').changePolicies({ children: { '*': { accept: everything, offer: rules } } });
    await check.pass(400);
  }
  await check.pass(30_000);

  t.deepEqual([...check.lies('freshness'), ...check.lies('absence')], []);
});

test('changes that wait for a slow link show as lag at its other end', async (t) => {
  const { check, put, world } = await aCalmTree({}, { intakeOf: { eu: { creditMutations: 4 } } });
  world.network.set('eu-1', 'eu', { delayMs: 1_000 });
  put(...many);
  await check.pass(30_000);

  t.deepEqual(check.lies('freshness'), []);
});

test('changes that wait for lost acknowledgements show as lag at the other end', async (t) => {
  const { check, put, world } = await aCalmTree({}, { intakeOf: { eu: { creditMutations: 4 } } });
  world.network.stall('eu', 'eu-1', 16_000);
  put(...many.slice(0, 5));
  await check.pass(16_000);

  t.deepEqual(check.lies('freshness'), []);
});

test('a shard behind a silent link is reported as not connected long before an end gives up the link', async (t) => {
  const { check, put, world } = await aCalmTree();
  world.network.partition('eu-1', 'eu');
  put('new');
  await check.pass(16_000);

  t.deepEqual(check.lies('freshness'), []);
});

test('a shard behind a link that stalls one way is reported as not connected meanwhile', async (t) => {
  const { check, put, world } = await aCalmTree();
  world.network.stall('eu-1', 'eu', 16_000);
  put('new');
  await check.pass(16_000);

  t.deepEqual(check.lies('freshness'), []);
});

test('a cache two links away notices a silent link at most the bound of one link later', async (t) => {
  const { check, put, world } = await aCalmTree();
  world.network.stall('eu-1', 'eu', 19_000);
  world.network.partition('us', 'root');
  put('new');
  await check.pass(19_000);

  t.deepEqual(
    check.lies('freshness').filter((lie) => lie.includes('root:')),
    [],
  );
});

test('a shard behind a cache whose process is paused is reported as not connected', async (t) => {
  const { check, put, tree } = await aCalmTree();
  tree.cache('eu').freeze();
  put('new');
  await check.pass(16_000);

  t.deepEqual(check.lies('freshness'), []);
});

test('a cache that resumes after a pause does not report itself as fresh before it has heard from its peers', async (t) => {
  const { check, put, tree } = await aCalmTree();
  tree.cache('eu').freeze();
  put('new');
  await check.pass(12_000);
  tree.cache('eu').thaw();
  await check.look();

  t.deepEqual(
    check.lies('freshness').filter((lie) => lie.includes('eu:')),
    [],
  );
});

test('a cache that has lost a change reports no false freshness after the next report arrives', async (t) => {
  const { check, put, world } = await aCalmTree();
  new Tamperer(world.network).arrange({ from: 'eu-1', to: 'eu' }, 'dropped');
  put('new');
  await check.pass(30_000);

  t.deepEqual(check.lies('freshness'), []);
});

test('a slice with a refused object is not current and proves no absence', async (t) => {
  const { check, amber } = await aCalmTree({}, { intakeOf: { eu: { bodyBytesMax: 600 } } });
  amber.put(aSimObject({ shard: 'amber', name: 'large' }, { spec: { content: 'large '.repeat(100) } }));
  await check.pass(16_000);

  t.deepEqual([...check.lies('freshness'), ...check.lies('absence')], []);
});

const large = { spec: { content: 'large '.repeat(100) } };

test('a cache that refused an object as too large never reports the slice as current, also after a new connection', async (t) => {
  const { check, amber, world } = await aCalmTree({}, { intakeOf: { eu: { bodyBytesMax: 600 } } });
  amber.put(aSimObject({ shard: 'amber', name: 'large' }, large));
  await check.pass(16_000);
  world.network.cut('eu-1', 'eu');
  await check.pass(30_000);

  t.deepEqual([...check.lies('freshness'), ...check.lies('absence')], []);
});

test('a cache that refused an object as too large in a sync never reports the slice as current', async (t) => {
  const { check, amber, world, tree } = await aCalmTree({}, { intakeOf: { eu: { bodyBytesMax: 600 } } });
  amber.put(aSimObject({ shard: 'amber', name: 'large' }, large));
  tree.cache('eu').crash();
  tree.cache('eu').wipe();
  await tree.cache('eu').start();
  await check.pass(30_000);
  world.network.cut('eu-1', 'eu');
  await check.pass(30_000);

  t.deepEqual([...check.lies('freshness'), ...check.lies('absence')], []);
});

test('a slice is whole again once its too large object is small enough', async (t) => {
  const { check, amber, tree } = await aCalmTree({}, { intakeOf: { eu: { bodyBytesMax: 600 } } });
  amber.put(aSimObject({ shard: 'amber', name: 'one-0' }, large));
  await check.pass(16_000);
  amber.put(aSimObject({ shard: 'amber', name: 'one-0' }));
  await check.pass(120_000);

  const { shards } = await tree.cache('eu').report();
  t.deepEqual(
    shards.flatMap(({ slices }) => slices.filter(({ whole }) => !whole)),
    [],
  );
});

// The cache refuses the object as too large. Then the object changes, and the cache accepts it
// before the end of the same sync.
test('a slice is whole if an object that was too large when the sync began is small enough before its end', async (t) => {
  const { amber, put, tree, world } = await aCalmTree({}, { intakeOf: { eu: { bodyBytesMax: 600, creditMutations: 8 } } });
  put(...many);
  amber.put(aSimObject({ shard: 'amber', name: 'a' }, large));
  await world.time.advance(20_000);
  tree.cache('eu').crash();
  tree.cache('eu').wipe();
  world.network.set('eu-1', 'eu', { delayMs: 300 });
  await tree.cache('eu').start();
  await world.time.advance(5_000);
  put('a');
  await world.time.advance(120_000);

  const { shards } = await tree.cache('eu').report();
  t.deepEqual(
    shards.flatMap(({ slices }) => slices.filter(({ whole }) => !whole)),
    [],
  );
});

// The answers of eu-1 arrive after 1.6 s, so for 0.2 s at a time the last answer is too old. A
// change just then is reported as not connected.
test('a quiet slice is connected again at every cache after a link was silent for less than a second', async (t) => {
  const { amber, tree, world } = await aCalmTree();
  const silences = 30;
  const stale: string[] = [];
  for (let round = 0; round < silences; round += 1) {
    world.network.set('eu-1', 'eu', { delayMs: 800 });
    await world.time.advance(3_000 + ((round * 37) % 1_700));
    amber.put(aSimObject({ shard: 'amber', name: `new-${round}` }));
    await world.time.advance(810 + ((round * 53) % 400));
    world.network.set('eu-1', 'eu', { delayMs: 5 });
    await world.time.advance(20_000);
    const { shards } = await tree.cache('root').report();
    const slices = shards.flatMap((each) => each.slices);
    if (slices.some(({ sourceConnected }) => sourceConnected !== true)) stale.push(`round ${round}`);
  }

  t.deepEqual(stale, []);
});

test('no cache proves an absence behind a link that is down', async (t) => {
  const { check, put, world } = await aCalmTree();
  world.network.partition('eu', 'root');
  await check.pass(30_000);
  put('new');
  await check.pass(30_000);

  t.deepEqual(check.lies('absence'), []);
});

test('no cache proves an absence while the pusher of the shard is away', async (t) => {
  const { amber, check, put, tree } = await aCalmTree();
  tree.quit(amber);
  put('new');
  await check.pass(16_000);

  t.deepEqual(check.lies('absence'), []);
});

test('no cache proves an absence while a child is away, because it may bring a shard that nobody knows yet', async (t) => {
  const { check, tree, world } = await aCalmTree();
  world.network.partition('eu', 'root');
  tree.plainWrites(aPusher('cedar'), 'eu');
  await check.pass(16_000);

  t.deepEqual(
    check.lies('absence').filter((lie) => lie.includes('cedar')),
    [],
  );
});

test('a sender reconnects if acknowledgements stop', async (t) => {
  const { tree, put, world } = await aCalmTree({}, { intakeOf: { eu: { creditMutations: 4 } } });
  new Tamperer(world.network).arrange({ from: 'eu-1', to: 'eu' }, 'dropped');
  put(...many.slice(0, 4));

  await t.notThrowsAsync(tree.converge(120_000));
});

test('a child that moved for good keeps every cache incomplete until its old parent forgets it', async (t) => {
  const { tree, world } = await aGrownTree();
  const moved = tree.cache('eu-1');
  const areComplete = async (): Promise<readonly (boolean | undefined)[]> =>
    (await Promise.all(tree.caches.map((cache) => cache.report()))).map((report) => report.tree?.complete);
  moved.crash();
  moved.follow('root');
  await moved.start();
  await world.time.advance(600_000);
  t.deepEqual(await areComplete(), [false, false, false, false]);

  const forgotten = tree.cache('eu').tree.forgetting.leave('eu-1');
  await world.time.advance(20_000);
  await forgotten;

  t.deepEqual(await areComplete(), [true, true, true, true]);
});

test('a new child makes its parent incomplete from the moment that the parent remembers it', async (t) => {
  const { tree, world } = await aCalmTree();
  const us = tree.cache('us');
  const isComplete = async () => (await us.report()).tree?.complete;
  tree.cache('eu-1').crash();
  tree.cache('eu-1').follow('us');
  const before = await isComplete();
  await tree.start();
  while (!us.remembers('eu-1')) await world.time.advance(1);

  t.true(before);
  t.false(await isComplete());
});

// No neighbour can know of the shard. A cache that starts empty believes that the neighbours that
// came back are all there are.
test('no look-up proves an absence wrongly because the only cache that knew a shard crashed before it acknowledged anything', async (t) => {
  const { check, tree } = await aCalmTree();
  const cedar = aPusher('cedar');
  tree.plainWrites(cedar, 'us');
  tree.cache('us').crash();
  tree.quit(cedar);
  await tree.start();
  await check.pass(60_000);

  t.deepEqual(check.lies('absence'), []);
});

test.failing('a cache that has lost its disk proves no absence before all of its shards are back', async (t) => {
  const { amber, check, tree } = await aCalmTree();
  for (const cache of tree.caches) cache.crash();
  for (const cache of tree.caches) cache.wipe();
  tree.quit(amber);
  await tree.start();
  await check.pass(30_000);

  t.deepEqual(check.lies('absence'), []);
});
