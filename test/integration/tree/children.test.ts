import { setImmediate as turn } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { Caller } from '../../../src/domain/caller.js';
import type { FrameOf } from '../../../src/frames/frame.js';
import { aClaimFrame } from '../../support/tree/a-claim-frame.js';
import { ConnectionEnd } from './connection-pair.js';
import { aBeginning, aCaller, aHello, byesOf, TreeRig, type RigCache } from './tree-rig.js';

type Caught = Readonly<{ child: ConnectionEnd; root: ConnectionEnd; over: Promise<void> }>;

/** A child that has sent a hello and nothing else. */
async function greet(
  rig: TreeRig,
  root: RigCache,
  hello: FrameOf<'hello'> = aHello(),
  caller: Caller = aCaller(hello.name),
): Promise<Caught> {
  const [child, end] = ConnectionEnd.pair([hello.name, 'root']);
  rig.connections.push([child, end]);
  const over = root.tree.accept(end, { hello, frames: end.frames(), caller });
  await rig.settle();
  return { child, root: end, over };
}

function names({ tree }: RigCache): readonly string[] {
  return [...tree.children].map(({ name, term }) => `${name} ${term}`);
}

test('a parent first welcomes a child and sends it its place in the tree', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');

  const { root: end } = await greet(rig, root);

  t.deepEqual(
    end.sent.slice(0, 4).map(({ kind }) => kind),
    ['welcome', 'route', 'policy', 'resume'],
  );
  t.like(end.sent[0], { cacheId: root.store.cacheId, epoch: root.store.epoch });
  t.like(end.sent[1], { route: [root.store.cacheId] });
  t.deepEqual(names(root), ['east 1000']);
});

test('a child that is not allowed gets the reason, and a long wait before it may retry', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const table: readonly (readonly [string, FrameOf<'hello'>, Caller | undefined, string])[] = [
    ['an older protocol', aHello({ protocol: 0 }), undefined, 'unsupported'],
    ['the name of another cache', aHello(), aCaller('west'), 'forbidden'],
    ['a shard', aHello(), { user: 'x', groups: ['strata'] }, 'forbidden'],
    ['no name', aHello({ name: 'a/b' }), { user: 'x', groups: ['system:masters'] }, 'forbidden'],
    ['this very cache', aHello({ route: [root.store.cacheId] }), undefined, 'loop'],
    ['without an id', aHello({ route: [] }), undefined, 'protocol'],
    ['without credit', aHello({ credit: undefined }), undefined, 'protocol'],
    ['without limits', aHello({ limits: undefined }), undefined, 'protocol'],
  ];
  for (const [what, hello, caller, reason] of table) {
    const { root: end, over } = await greet(rig, root, hello, caller);

    await over;
    t.deepEqual(byesOf(end), [reason], what);
    t.like(end.sent[0], { retryAfterMs: 10_000 }, what);
    t.deepEqual(names(root), []);
  }
});

test('a child that sends a route breaks the protocol', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const { child, root: end, over } = await greet(rig, root);

  child.send({ kind: 'route', route: ['id-of-east'] });
  await over;

  t.deepEqual(byesOf(end), ['protocol']);
});

test('a master may connect as any cache', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');

  await greet(rig, root, aHello(), { user: 'admin', groups: ['system:masters'] });

  t.deepEqual(names(root), ['east 1000']);
});

test('a later process of the same name, or the same process again, replaces the connection; an earlier process is refused', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const first = await greet(rig, root);
  const again = await greet(rig, root);
  await first.over;

  t.deepEqual(byesOf(first.root), ['replaced']);
  t.true(again.root.isOpen);
  const later = await greet(rig, root, aHello({ term: 2_000 }));
  await again.over;
  t.deepEqual(byesOf(again.root), ['replaced']);
  t.deepEqual(names(root), ['east 2000']);

  const earlier = await greet(rig, root);
  await earlier.over;
  t.deepEqual(byesOf(earlier.root), ['forbidden']);
  t.true(later.root.isOpen);
});

test('the log has the close code and the reason for which a child left', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const stopped = await greet(rig, root);
  const broken = await greet(rig, root, aHello({ name: 'west', route: ['id-of-west'] }));

  stopped.child.close('shutdown', 'the cache is stopping');
  await stopped.over;
  broken.child.terminate();
  await broken.over;

  const left = root.logged.filter(({ event }) => event === 'link.child-disconnected').map(({ fields }) => fields);
  t.is(left.length, 2);
  t.like(left[0], { name: 'east', code: 4001, reason: 'shutdown' });
  t.like(left[1], { name: 'west', code: 1006, reason: undefined });
});

test('no other child may use the last id of a child, even after that child has left', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const east = await greet(rig, root);

  const copied = await greet(rig, root, aHello({ name: 'west' }));
  await copied.over;

  t.deepEqual(byesOf(copied.root), ['forbidden']);
  t.true(east.root.isOpen);
  east.child.terminate();
  await east.over;
  const still = await greet(rig, root, aHello({ name: 'west' }));
  await still.over;
  t.deepEqual(byesOf(still.root), ['forbidden']);
  const back = await greet(rig, root, aHello({ route: ['another-disk-of-east'] }));
  t.true(back.root.isOpen);
});

test('a child that is being forgotten is admitted afterwards, and a connected child is not forgotten', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const east = await greet(rig, root);
  await t.throwsAsync(root.tree.forgetting.leave('east'), {
    message: 'the cache east is connected: only a disconnected cache can be forgotten',
  });
  east.child.terminate();
  await east.over;

  const leaving = root.tree.forgetting.leave('east');
  await rig.settle();
  t.deepEqual(await leaving, { shards: 0 });
  const back = await greet(rig, root);

  t.true(back.root.isOpen);
  t.is(await root.tree.forgetting.leave('west'), undefined);
});

test('children of different names stay connected side by side', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');

  const east = await greet(rig, root);
  await greet(rig, root, aHello({ name: 'west', route: ['id-of-west'] }));

  t.deepEqual([...names(root)].toSorted(), ['east 1000', 'west 1000']);
  east.child.terminate();
  await east.over;
  t.deepEqual(names(root), ['west 1000']);
});

test('a frame out of order ends the session', async (t) => {
  const slice = { shard: 'amber', resource: { group: '', resource: 'secrets', identity: '' } } as never;
  const table: readonly (readonly [string, Parameters<ConnectionEnd['send']>[0]])[] = [
    ['a second hello', aHello()],
    ['a put before the policy', { kind: 'put', sequence: 1, slice, version: 'v1', objects: [] }],
    ['a claim before the policy', aClaimFrame({ term: 1 })],
    ['an ack of nothing', { kind: 'ack', sequence: 1, credit: { mutations: 1, bytes: 1 } }],
    ['a sync of a logical cluster, which only a shard sends', { kind: 'clusterBegin', sequence: 1, slice, cluster: 'acme' as never }],
    ['its end', { kind: 'clusterEnd', sequence: 1, slice, cluster: 'acme' as never, count: 0 }],
    ['a policy that is none', { kind: 'policy', up: '{', down: '[]' }],
  ];
  for (const [what, frame] of table) {
    const rig = new TreeRig();
    const root = await rig.cache('root');
    const { child, root: end, over } = await greet(rig, root);

    child.send(frame);
    await over;

    t.deepEqual(byesOf(end), ['protocol'], what);
  }
});

test('a cache knows its chain up to the root, and refuses any cache of that chain as a child', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const middle = await rig.cache('middle', { urls: ['root'] });
  const leaf = await rig.cache('leaf', { urls: ['middle'] });
  await rig.advance(1_000);
  t.deepEqual(leaf.tree.route, [leaf.store.cacheId, middle.store.cacheId, root.store.cacheId]);

  for (const above of [root, middle]) {
    const { root: end, over } = await greet(rig, leaf, aHello({ name: above.name, route: [above.store.cacheId] }));
    await over;
    t.deepEqual(byesOf(end), ['loop'], above.name);
  }
  for (const cache of [leaf, middle, root]) cache.stop();
});

test('a loop that forms later is found by the route: here the root begins to follow its grandchild', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const middle = await rig.cache('middle', { urls: ['root'] });
  const leaf = await rig.cache('leaf', { urls: ['middle'] });
  await rig.advance(1_000);

  root.stop();
  await rig.settle();
  const reconfigured = await rig.cache('root', { disk: root.disk, urls: ['leaf'], term: 2_000 });
  for (let i = 0; i < 20; i++) await rig.advance(5_000);

  const open = [reconfigured, middle, leaf].filter(({ tree }) => tree.parent?.kind === 'open');
  t.true(open.length < 3, 'one link of the ring is open');
  t.true(rig.connections.flat().some((end) => byesOf(end).includes('loop')));
  for (const cache of [reconfigured, middle, leaf]) cache.stop();
});

test('two caches that begin to follow each other at the same moment notice it', async (t) => {
  const rig = new TreeRig();
  const one = await rig.cache('one', { urls: ['two'] });
  const two = await rig.cache('two', { urls: ['one'] });

  await rig.advance(1_000);

  t.true([one, two].some(({ tree }) => tree.parent?.kind !== 'open'));
  for (const cache of [one, two]) cache.stop();
});

test('a cache that stops sends its children a bye', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const { child, root: end, over } = await greet(rig, root);
  for (const frame of aBeginning()) child.send(frame);
  await turn();

  root.stop();
  await over;

  t.deepEqual(byesOf(end), ['shutdown']);
  t.deepEqual(names(root), []);
});
