import { largeTest } from '../support/sizes.js';
import { test } from '../support/test.js';
import { shardName } from '../support/objects.js';
import { aGrownTree, aPusher, everything } from './a-grown-tree.js';
import { frameSize } from './frame-size.js';
import type { ModelRule } from './model-rule.js';
import { play } from './random-tree.js';
import { aSimDeclaration, aSimObject, declaredResource, resourcesOf, simResources } from './sim-objects.js';
import { SimPusher } from './sim-pusher.js';
import { SimRemoval } from './sim-removal.js';
import { SimWriter } from './sim-writer.js';
import type { SimWorld } from './sim-world.js';
import { Tamperer } from './tamperer.js';

const amberShard = shardName('amber');
const plum = shardName('plum');

function anInstance(name: string) {
  const { group, resource, identity } = declaredResource(amberShard);
  return aSimObject({ shard: amberShard, group, resource, identity, name });
}

/**
 * Four times a second the writer creates one object, updates one and deletes one, of some forty.
 */
function aBusyWriter(world: SimWorld) {
  const object = (index: number, content = 0) => aSimObject({ shard: plum, name: `busy-${index}` }, { spec: { content } });
  const writer = new SimWriter({ shard: plum, resources: simResources, beat: (content) => object(0, content) });
  let last = 0;
  const writeFor = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 250) {
      last += 1;
      writer.put(object(last));
      if (last > 20) writer.put(object(last - 20, last));
      if (last > 40) writer.remove(object(last - 40));
      await world.time.advance(250);
    }
  };
  return { writer, writeFor };
}

test('a cache that lost its disk and follows another parent has its shards on the new path, and the old path is dropped', async (t) => {
  const { world, tree, amber } = await aGrownTree();
  tree.cache('eu-1').crash({ isNoticed: false });
  tree.cache('eu-1').wipe();
  tree.cache('eu-1').follow('us');
  await tree.start();
  amber.put(aSimObject({ shard: 'amber', name: 'since' }));

  await tree.converge(120_000);

  t.is(tree.cache('root').via(amberShard), 'child/us');
  t.false(amber.isFenced);
  t.deepEqual(world.faults, []);
});

test('a shard of a cache that moved with its parent and then leaves that parent is found on its new path', async (t) => {
  const { world, tree } = await aGrownTree();
  await world.time.awaited(tree.cache('eu').stop(), 60_000);
  tree.cache('eu').follow('us');
  await tree.start();
  await tree.converge(120_000);
  await world.time.awaited(tree.cache('eu-1').stop(), 60_000);
  tree.cache('eu-1').follow('root');
  await tree.start();

  await tree.converge(120_000);

  t.is(tree.cache('root').via(amberShard), 'child/eu-1');
  t.deepEqual(world.faults, []);
});

test('a cache that is made to follow its own child fences nobody, loses nothing, and recovers when its parent is corrected', async (t) => {
  const { world, tree, amber } = await aGrownTree();
  const held = tree.cache('eu').digests.size;
  for (const name of ['eu', 'eu-1']) tree.cache(name).crash();
  tree.cache('eu').follow('eu-1');
  await tree.start();
  await world.time.advance(300_000);
  const meanwhile = tree.cache('eu').digests.size;
  amber.put(aSimObject({ shard: 'amber', name: 'meanwhile' }));
  tree.cache('eu').crash();
  tree.cache('eu').follow('root');
  await tree.start();

  await tree.converge(300_000);

  t.is(meanwhile, held);
  t.false(amber.isFenced);
  t.deepEqual(world.faults, []);
});

test('objects of a declared type are at every cache while the type is declared, and at none before and after', async (t) => {
  const { world, tree } = await aGrownTree();
  const later = new SimPusher({ shard: amberShard, process: 'process-2', resources: resourcesOf(amberShard) });
  later.put(anInstance('one'));
  tree.plainWrites(later, 'eu-1');
  await tree.converge(60_000);
  const before = tree.model().objects('us').length;

  later.put(aSimDeclaration(amberShard));
  await tree.converge(60_000);
  const between = tree.model().objects('us').length;
  const warned = [...world.warnings.keys()];
  later.remove(aSimDeclaration(amberShard).key);
  await tree.converge(60_000);

  t.is(between, before + 2);
  t.is(tree.model().objects('us').length, before);
  t.deepEqual(warned, []);
  t.deepEqual(world.faults, []);
});

for (const how of ['dropped', 'doubled', 'swapped'] as const) {
  test(`a frame that is ${how} ends its connection, and nothing is lost`, async (t) => {
    const { world, tree, amber } = await aGrownTree();
    const tamperer = new Tamperer(world.network);
    tamperer.arrange({ from: 'eu', to: 'root' }, how);
    for (const name of ['new', 'newer']) {
      amber.put(aSimObject({ shard: 'amber', name }));
      await world.time.advance(1_000);
    }

    await tree.converge(700_000);

    t.true(world.warnings.has('link.disconnected'));
    t.is(world.warnings.get('link.digest-differs'), undefined);
    t.deepEqual(world.faults, []);
  });
}

test('a plain writer that moves to another cache takes its shard along once its old cache has seen no write for a while', async (t) => {
  const { world, tree } = await aGrownTree();
  const writer = new SimWriter({
    shard: plum,
    resources: simResources,
    beat: (content) => aSimObject({ shard: plum, name: 'beat' }, { spec: { content } }),
  });
  writer.put(aSimObject({ shard: plum, name: 'written' }));
  tree.plainWrites(writer, 'eu-1');
  await tree.converge(120_000);
  writer.move();
  tree.plainWrites(writer, 'us');
  writer.remove(aSimObject({ shard: plum, name: 'written' }));

  const tookMs = await tree.converge(120_000);

  t.true(tookMs > 30_000, `${tookMs}`);
  t.is(tree.cache('eu-1').via(plum), 'parent');
  t.deepEqual(world.faults, []);
});

for (const dead of ['eu', 'root', 'eu-1'])
  test(`what a busy plain writer deletes while ${dead} is dead is gone everywhere within three seconds of its return`, async (t) => {
    const { world, tree } = await aGrownTree();
    const { writer, writeFor } = aBusyWriter(world);
    tree.plainWrites(writer, 'eu-1');
    await writeFor(20_000);
    tree.cache(dead).crash();
    await writeFor(10_000);
    await tree.cache(dead).start();
    await writeFor(3_000);
    const isTakenForAll = [...tree.cache('eu-1').known.slicesOf(plum)].some(({ syncedTerm }) => syncedTerm !== 0);

    const tookMs = await tree.converge(60_000);

    t.true(tookMs <= 500, `${tookMs} ms after the last write`);
    t.false(isTakenForAll);
    t.deepEqual(world.faults, []);
  });

largeTest('a cache that moves to another parent and back sends a hundredth of its first sync if nothing is missing there', async (t) => {
  const { world, tree } = await aGrownTree();
  let bytes = 0;
  world.network.observe(({ frame }) => (bytes += frameSize(frame)));
  const many = new SimPusher({ shard: amberShard, process: 'process-2', resources: simResources });
  for (let i = 0; i < 5_000; i += 1) many.put(aSimObject({ shard: 'amber', name: `many-${i}` }));
  tree.plainWrites(many, 'eu-1');
  await tree.converge(60_000);
  const first = bytes;

  for (const parent of ['us', 'eu']) {
    bytes = 0;
    await world.time.awaited(tree.cache('eu-1').stop(), 60_000);
    tree.cache('eu-1').follow(parent);
    await tree.start();
    await tree.converge(120_000);

    t.log(`5,000 objects: ${first} bytes at first, ${bytes} with ${parent}`);
    t.true(bytes <= first / 100, `${bytes}`);
  }
  many.remove(aSimObject({ shard: 'amber', name: 'many-7' }).key);
  await tree.converge(60_000);
  t.deepEqual(world.faults, []);
});

test('a shard removed at a cache whose clock is hours ahead is gone everywhere, and nobody has it', async (t) => {
  const { world, tree } = await aGrownTree();
  const us = tree.cache('us');
  us.crash();
  await us.start({ skewMs: 3 * 3_600_000 });
  await tree.converge(60_000);
  tree.plainWrites(new SimRemoval(amberShard), 'us');
  await tree.converge(60_000);

  for (const name of ['root', 'eu', 'us', 'eu-1']) t.is(tree.cache(name).via(amberShard), undefined, name);
  t.deepEqual(world.faults, []);
});

test('a shard removed at any cache is gone everywhere, and its pusher stays out', async (t) => {
  const { world, tree, amber } = await aGrownTree();
  tree.plainWrites(new SimRemoval(amberShard), 'us');
  await tree.converge(60_000);
  amber.put(aSimObject({ shard: 'amber', name: 'too-late' }));
  await tree.converge(60_000);
  const removed = amber.isFenced;
  tree.plainWrites(aPusher('amber', 2, 'process-2'), 'eu');
  await tree.converge(60_000);

  t.true(removed);
  t.is(tree.cache('root').via(amberShard), 'child/eu');
  t.deepEqual(world.faults, []);
});

for (const [what, accept] of [
  ['may claim it', everything],
  ['may not', [{ shards: ['amber', 'birch'] }]],
] as const)
  test(`the removal of a shard reaches a child that was away and ${what}, and one that had crashed`, async (t) => {
    const { world, tree } = await aGrownTree({ root: { children: { '*': { accept, offer: everything } } } });
    const cedar = shardName('cedar');
    const pusher = aPusher('cedar');
    tree.plainWrites(pusher, 'root');
    await tree.converge(60_000);
    tree.quit(pusher);

    tree.cache('us').crash();
    world.network.partition('eu', 'root');
    void tree
      .cache('root')
      .store.writer.lane()
      .push([{ kind: 'clear', shard: cedar, fence: true, nowMs: world.time.now() }]);
    await world.time.advance(1_000);
    t.not([...tree.cache('eu').store.state.slicesOf(cedar)].length, 0);
    world.network.heal('eu', 'root');
    await tree.cache('us').start();
    await world.time.advance(30_000);

    for (const name of ['root', 'eu', 'eu-1', 'us']) {
      const { state } = tree.cache(name).store;
      t.deepEqual([state.shard(cedar)?.removed, [...state.slicesOf(cedar)]], [true, []], name);
    }
  });

test('the removal of a shard reaches a parent that was away, which may not even accept claims of it', async (t) => {
  const { world, tree } = await aGrownTree({
    root: { children: { '*': { accept: [{ shards: ['amber', 'birch'] }], offer: everything } } },
  });
  for (const shard of [amberShard, plum]) {
    const pusher = aPusher(shard, 3, 'process-2');
    tree.plainWrites(pusher, 'eu-1');
    await world.time.advance(10_000);
    tree.quit(pusher);
  }

  world.network.partition('eu', 'root');
  for (const shard of [amberShard, plum])
    void tree
      .cache('eu')
      .store.writer.lane()
      .push([{ kind: 'clear', shard, fence: true, nowMs: world.time.now() }]);
  await world.time.advance(1_000);
  t.not([...tree.cache('root').store.state.slicesOf(amberShard)].length, 0);
  world.network.heal('eu', 'root');
  await world.time.advance(30_000);

  const { state } = tree.cache('root').store;
  t.deepEqual([state.shard(amberShard)?.removed, [...state.slicesOf(amberShard)]], [true, []]);
  t.is(state.shard(plum), undefined, 'root accepts no claim of it');
});

test('a digest that is on its way while a policy is narrowed does not count as a difference', async (t) => {
  const narrowed = play({
    seed: 0,
    follows: [0, 0],
    steps: [
      { kind: 'write', object: 0, isPublic: false, content: 0 },
      { kind: 'pass', ms: 30_000 },
      { kind: 'stop', cache: 11 },
      { kind: 'policy', cache: 4, forward: 0, follow: 21, accept: 0, offer: 0 },
    ],
  });

  await t.notThrowsAsync(narrowed);
});

test('a pusher that starts while its shard is being removed gets it: the removal of earlier processes does not fence it', async (t) => {
  const started = play({
    seed: 0,
    follows: [0],
    steps: [
      { kind: 'clear', shard: 0, cache: 0 },
      { kind: 'stop', cache: 1 },
      { kind: 'moveOrigin', shard: 0, cache: 0, objects: 4 },
    ],
  });

  await t.notThrowsAsync(started);
});

test('the last object of a type, deleted while a cache is down, also goes below that cache, whatever policies changed there and above', async (t) => {
  const { world, tree } = await aGrownTree();
  const isPublic = { labels: { visibility: 'public' } };
  const beat = (content: number) => aSimObject({ shard: plum, name: 'beat' }, { ...isPublic, spec: { content } });
  const last = aSimObject({ shard: plum, resource: 'apiresourceschemas', name: 'last' }, isPublic);
  const writer = new SimWriter({ shard: plum, resources: simResources, beat });
  const offer = (name: string, rule: ModelRule) =>
    tree.cache(name).changePolicies({ children: { '*': { accept: everything, offer: [rule] } } });
  writer.put(last);
  tree.plainWrites(writer, 'root');
  await world.time.advance(60_000);
  tree.cache('eu').crash();
  writer.remove(last);
  tree.plainWrites(new SimRemoval(plum), 'root');
  offer('root', isPublic);
  offer('eu', { labels: { visibility: 'private' } });
  await world.time.advance(60_000);
  await tree.start();

  await t.notThrowsAsync(tree.converge(60_000));

  t.deepEqual(world.faults, []);
});

test('a digest made before a policy was narrowed, which arrives with the results of that, does not count as a difference', async (t) => {
  const narrowed = play({
    seed: 6,
    follows: [3, 17, 0],
    steps: [
      { kind: 'write', object: 18, isPublic: true, content: 15 },
      { kind: 'pass', ms: 30_000 },
      { kind: 'pass', ms: 15 },
      { kind: 'freeze', cache: 10 },
      { kind: 'policy', cache: 13, forward: 2, follow: 23, accept: 14, offer: 7 },
      { kind: 'pass', ms: 50 },
    ],
  });

  await t.notThrowsAsync(narrowed);
});

test('an object that a link no longer lets through after its path moved leaves with that move, though it was deleted just before', async (t) => {
  const moved = play({
    seed: 1,
    follows: [1, 1, 7, 2],
    creditMutations: 2048,
    steps: [
      { kind: 'declare', shard: 2, isDeclared: false },
      { kind: 'path', shard: 2, cluster: 23, path: 0 },
      { kind: 'pass', ms: 400 },
      { kind: 'clear', shard: 0, cache: 5 },
      { kind: 'pass', ms: 15 },
      { kind: 'crash', cache: 8, isKept: false, isNoticed: true },
      { kind: 'moveOrigin', shard: 3, cache: 21, objects: 8 },
      { kind: 'crash', cache: 6, isKept: true, isNoticed: false },
      { kind: 'mute', cache: 13 },
      { kind: 'path', shard: 2, cluster: 3, path: 15 },
      { kind: 'moveOrigin', shard: 2, cache: 20, objects: 1 },
      { kind: 'policy', cache: 16, forward: 21, follow: 22, accept: 0, offer: 8 },
      { kind: 'pass', ms: 50 },
      { kind: 'policy', cache: 3, forward: 0, follow: 22, accept: 17, offer: 8 },
      { kind: 'path', shard: 2, cluster: 11, path: 17 },
    ],
  });

  await t.notThrowsAsync(moved);
});

test('a cache loses what its shard no longer has, even of a type that no cache above has ever known', async (t) => {
  const { world, tree } = await aGrownTree();
  const beat = (content: number) => aSimObject({ shard: plum, name: 'beat' }, { spec: { content } });
  const last = aSimObject({ shard: plum, resource: 'apiresourceschemas', name: 'last' });
  const writer = new SimWriter({ shard: plum, resources: simResources, beat });
  writer.put(last);
  tree.plainWrites(writer, 'root');
  await world.time.advance(60_000);
  for (const name of ['eu-1', 'eu', 'root']) tree.cache(name).crash();
  for (const name of ['eu', 'us', 'root']) {
    if (tree.cache(name).isRunning) tree.cache(name).crash();
    tree.cache(name).wipe();
  }
  writer.remove(last);
  await tree.start();

  await t.notThrowsAsync(tree.converge(120_000));

  t.deepEqual(world.faults, []);
});

test('a cache loses what its shard no longer has of a type, even if the origin lost its disk and never knew the type', async (t) => {
  const { world, tree } = await aGrownTree();
  const cedar = shardName('cedar');
  const [first, second] = [simResources, simResources.slice(0, 1)].map(
    (resources, number) => new SimPusher({ shard: cedar, process: `process-${number}`, resources }),
  );
  if (first === undefined || second === undefined) throw new Error('there are two');
  for (const { resource } of simResources) first.put(aSimObject({ shard: 'cedar', resource, name: 'one' }));
  second.put(aSimObject({ shard: 'cedar', name: 'one' }));
  tree.plainWrites(first, 'root');
  await tree.converge(60_000);
  tree.quit(first);
  tree.cache('root').crash();
  tree.cache('root').wipe();
  await tree.start();
  tree.plainWrites(second, 'root');
  await world.time.advance(5_000);
  tree.join(first);

  await t.notThrowsAsync(tree.converge(120_000));

  t.true(first.isFenced);
  t.deepEqual(world.faults, []);
});
