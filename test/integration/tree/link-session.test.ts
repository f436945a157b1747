import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { ExecutionContext } from 'ava';
import { deferred } from '../../../src/domain/base/promises.js';
import { emptyDigest, formatDigest } from '../../../src/domain/slices/digest.js';
import type { Push } from '../../../src/domain/push.js';
import { childNeighbour } from '../../../src/domain/via.js';
import type { LinkPolicies } from '../../../src/domain/link-policies.js';
import { aPolicy } from '../../support/link-rules.js';
import { aKey, anApiExport, shardName } from '../../support/objects.js';
import { compose } from '../../../src/json/compose.js';
import { scanObject } from '../../../src/json/object-text.js';
import { aBegin, aClaim, anAssume, anEnd, aRetract, aSlice, aFullSync, mustPush } from '../../support/pushes.js';
import { aClaimFrame } from '../../support/tree/a-claim-frame.js';
import { anUpsert } from './an-upsert.js';
import type { Frame } from '../../../src/frames/frame.js';
import type { ConnectionEnd } from './connection-pair.js';
import { aBeginning, aWelcome, TreeRig, type RigCache } from './tree-rig.js';

const exports = aSlice();
const amber = shardName('amber');

/** A root and a child that follow each other; `pushes` go to the child. */
async function aPair(t: ExecutionContext, pushes: readonly Push[] = []) {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const east = await rig.cache('east', { urls: ['root'] });
  t.teardown(() => [east, root].forEach(({ stop }) => stop()));
  await rig.settle();
  const lane = east.store.writer.lane();
  if (pushes.length > 0) await mustPush(lane, pushes);
  await rig.settle();
  return { rig, root, east, lane };
}

/** A root that welcomes each child and has nothing; returns its end of each connection. */
function aWelcomingRoot(rig: TreeRig): readonly ConnectionEnd[] {
  const ends: ConnectionEnd[] = [];
  rig.listen('root', (end) => {
    ends.push(end);
    end.send(aWelcome());
    for (const frame of aBeginning()) end.send(frame);
  });
  return ends;
}

function digestAt({ known }: RigCache): string {
  return known.slice(exports)?.digest ?? formatDigest(emptyDigest);
}

function synced(name: string): Push & { kind: 'upsert' } {
  const push = anUpsert(name);
  if (push.kind !== 'upsert') throw new Error('it carries an object');
  return push;
}

function kinds(end: ConnectionEnd, from = 0): readonly string[] {
  return end.sent.slice(from).map(({ kind }) => kind);
}

function last(rig: TreeRig): readonly [ConnectionEnd, ConnectionEnd] {
  const pair = rig.connections.at(-1);
  if (pair === undefined) throw new Error('nobody connected');
  return pair;
}

/** Whether a frame of that kind belongs to a slice. */
function isReported(kind: string): boolean {
  return ['put', 'delete', 'begin', 'end', 'digest'].includes(kind);
}

test('a sync at a child becomes a sync at its parent, with the same digest', async (t) => {
  const { root, east } = await aPair(t, [aClaim(), ...aFullSync({}, [anUpsert(), anUpsert('two')])]);

  t.is(digestAt(root), digestAt(east));
  t.like(root.known.shard(amber), { via: childNeighbour('east'), term: 1_000 });
  t.true(root.known.isSynced(exports));
});

test('a quiet link sends its last position, so that a new connection continues from there', async (t) => {
  const { rig, root, east } = await aPair(t, [aClaim(), ...aFullSync({}, [anUpsert()])]);
  await rig.advance(5_000);
  t.is(
    [...root.store.state.links].find(({ neighbour }) => neighbour === childNeighbour('east'))?.position,
    east.store.revisions.format(east.store.revisions.published),
  );

  last(rig)[0].terminate();
  await rig.advance(1_000);
  await rig.advance(5_000);

  t.is(rig.connections.length, 2);
  t.deepEqual(kinds(last(rig)[0]).filter(isReported), []);
});

test('a cache that connects to a parent in which nothing has happened since gets its last position', async (t) => {
  const rig = new TreeRig();
  const east = await rig.cache('east');
  await mustPush(east.store.writer.lane(), [aClaim(), ...aFullSync({}, [anUpsert()])]);
  east.stop();
  const root = await rig.cache('root');
  const back = await rig.cache('east', { disk: east.disk, urls: ['root'] });
  t.teardown(() => [back, root].forEach(({ stop }) => stop()));

  await rig.advance(5_000);

  t.is(
    [...root.store.state.links].find(({ neighbour }) => neighbour === childNeighbour('east'))?.position,
    back.store.revisions.format(back.store.revisions.published),
  );
});

test('changes made while a link is down are sent as changes once it is back', async (t) => {
  const { rig, root, east, lane } = await aPair(t, [aClaim(), ...aFullSync({}, [anUpsert(), anUpsert('two')])]);
  await rig.advance(5_000);

  last(rig)[0].terminate();
  await mustPush(lane, [anUpsert('three')]);
  await rig.advance(1_000);

  t.deepEqual(kinds(last(rig)[0]).filter(isReported), ['put']);
  t.is(digestAt(root), digestAt(east));
});

test('a change on a quiet link costs one frame, which carries its position, and one acknowledgement', async (t) => {
  const { rig, root, east, lane } = await aPair(t, [aClaim(), ...aFullSync({}, [anUpsert()])]);
  await rig.advance(5_000);
  const [down, up] = last(rig);
  const before = [down.sent.length, up.sent.length] as const;

  await mustPush(lane, [anUpsert('two')]);
  await rig.advance(0);

  const position = east.store.revisions.format(east.store.revisions.published);
  t.like(down.sent.slice(before[0]), [{ kind: 'put', position }]);
  t.deepEqual(kinds(down).slice(before[0]), ['put']);
  t.deepEqual(kinds(up).slice(before[1]), ['ack']);
  t.is([...root.store.state.links].find(({ neighbour }) => neighbour === childNeighbour('east'))?.position, position);
});

test('a receiver behind the compacted log gets a full resync, and loses nothing', async (t) => {
  const { rig, root, east, lane } = await aPair(t, [aClaim(), ...aFullSync({}, [anUpsert(), anUpsert('two')])]);
  await rig.advance(5_000);

  last(rig)[0].terminate();
  await mustPush(lane, [anUpsert('three'), anUpsert('four')]);
  east.store.compact(1);
  await rig.advance(1_000);

  t.true(kinds(last(rig)[0]).includes('begin'));
  t.is(digestAt(root), digestAt(east));
});

test('a slice that is not synced yet is sent without an end, and gets its end once it is synced', async (t) => {
  const { rig, root, east, lane } = await aPair(t, [aClaim(), aBegin(), anUpsert()]);

  t.is(root.known.slice(exports)?.objects, 1);
  t.false(root.known.isSynced(exports));
  await mustPush(lane, [anEnd()]);
  await rig.settle();

  t.true(root.known.isSynced(exports));
  t.is(digestAt(root), digestAt(east));
});

test('digests are compared periodically; a slice whose digests differ is resynced', async (t) => {
  const { rig, root, east } = await aPair(t, [aClaim(), ...aFullSync({}, [anUpsert()])]);
  const [fromEast] = last(rig);
  const before = fromEast.sent.length;

  await rig.advance(600_000);

  t.deepEqual(kinds(fromEast, before).filter(isReported), ['digest']);
  const [, fromRoot] = last(rig);
  t.false(kinds(fromRoot).includes('resync'));
  t.is(digestAt(root), digestAt(east));
});

test('a cache that starts empty becomes ready once it has what its parent has, and not before', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  await mustPush(root.store.writer.lane(), [aClaim(), ...aFullSync({}, [anUpsert()])]);
  const east = await rig.cache('east', { urls: ['root'] });
  t.teardown(() => [east, root].forEach(({ stop }) => stop()));
  t.false(east.tree.isReady);

  await rig.settle();

  t.true(east.tree.isReady);
  t.is(digestAt(east), digestAt(root));
});

test('a slice that the parent reports as whole does not count here until the claim of its shard is decided', async (t) => {
  const rig = new TreeRig();
  const ends = aWelcomingRoot(rig);
  const east = await rig.cache('east', { urls: ['root'] });
  t.teardown(() => east.stop());
  await rig.settle();

  const freshness = [{ slice: exports, connected: true, synced: true, lagMs: 0, whole: true }];
  ends[0]?.send({ kind: 'report', sequence: 1, freshness, heartbeat: 1, isAll: true, isComplete: true });
  await rig.settle();

  t.false(east.tree.isReady);
  await rig.advance(10_000);
  t.true(east.tree.isReady);
});

test('a cache whose parent has nothing is ready at once', async (t) => {
  const { east } = await aPair(t);

  t.true(east.tree.isReady);
});

test('a shard counts as seen while it is connected; a shard not known yet, since the link opened', async (t) => {
  const rig = new TreeRig();
  const ends = aWelcomingRoot(rig);
  const east = await rig.cache('east', { urls: ['root'] });
  t.teardown(() => east.stop());
  await rig.advance(50_000);
  const openedMs = rig.clock.now() - 50_000;
  ends[0]?.send({ kind: 'report', sequence: 1, freshness: [], heartbeat: 1, isAll: false, isComplete: true });
  await rig.advance(0);
  const report = async (connected: boolean): Promise<void> => {
    reports += 1;
    const freshness = [{ slice: exports, connected, synced: true, lagMs: 0, whole: true }];
    ends[0]?.send({ kind: 'report', sequence: reports, freshness, heartbeat: reports, isAll: false, isComplete: true });
    await rig.settle();
  };
  let reports = 1;

  t.is(east.tree.seenMs(amber, 'parent'), openedMs);
  ends[0]?.send(aClaimFrame());
  await report(true);
  await rig.advance(2_000);
  t.is(east.tree.seenMs(amber, 'parent'), rig.clock.now());
  await report(false);
  const awayMs = rig.clock.now();
  await rig.advance(7_000);
  t.is(east.tree.seenMs(amber, 'parent'), awayMs);
});

test('a delete made while a link is down reaches the other end, even if paths moved before the link was back', async (t) => {
  const rig = new TreeRig();
  const everything = aPolicy({ types: ['*'] });
  const inTenant: LinkPolicies = { forward: aPolicy({ pathPrefix: 'root:tenant' }), follow: everything, children: new Map() };
  const root = await rig.cache('root');
  const east = await rig.cache('east', { urls: ['root'], policies: inTenant });
  t.teardown(() => [east, root].forEach(({ stop }) => stop()));
  await rig.settle();
  const lane = east.store.writer.lane();
  const at = (cluster: string, path: string): Push => anUpsert('path', { cluster, path });
  await mustPush(lane, [
    aClaim(),
    ...aFullSync({}, [at('acme', 'root:tenant:a'), at('beta', 'root:tenant:b'), anUpsert(), anUpsert('two')]),
  ]);
  await rig.advance(5_000);
  t.is(root.known.slice(exports)?.objects, 4);

  last(rig)[0].terminate();
  await mustPush(lane, [aRetract()]);
  await mustPush(lane, [at('beta', 'root:elsewhere:b')]);
  await mustPush(lane, [at('acme', 'root:elsewhere:a')]);
  await rig.advance(1_000);

  t.is(root.known.slice(exports)?.objects, 0);
  t.is(digestAt(root), formatDigest(emptyDigest));
});

test('a plain writer’s cache learns which objects it lost once its parent has swept them', async (t) => {
  const rig = new TreeRig();
  const root = await rig.cache('root');
  const east = await rig.cache('east', { urls: ['root'] });
  const put = async (name: string): Promise<void> => {
    const { key, body } = synced(name);
    t.is((await east.store.writer.submit({ kind: 'put', key, body, path: undefined, expect: 'absent' })).kind, 'written');
  };
  await put('one');
  await rig.advance(5_000);
  const older = east.disk.copy();
  for (const name of ['lost', 'deleted']) await put(name);
  await rig.advance(5_000);
  await east.store.writer.submit({ kind: 'delete', key: synced('deleted').key, expect: 'any' });
  await rig.advance(5_000);
  t.is(root.known.slice(exports)?.objects, 2);

  east.stop();
  const back = await rig.cache('east', { urls: ['root'], disk: older });
  t.teardown(() => [back, root].forEach(({ stop }) => stop()));
  await rig.advance(5_000);
  t.deepEqual(back.absent, [], 'the parent still has it');
  await mustPush(back.store.writer.lane(), [anAssume()]);
  await rig.advance(5_000);

  t.is(root.known.slice(exports)?.objects, 1);
  t.deepEqual(back.absent, ['acme|lost']);
  t.deepEqual(root.absent, []);
});

test('no neighbour is notified of objects that are removed because a policy no longer accepts them', async (t) => {
  const { rig, root, east } = await aPair(t, [aClaim(), ...aFullSync({}, [anUpsert(), anUpsert('two')])]);

  root.tree.changePolicies({ forward: aPolicy(), follow: aPolicy(), children: new Map() });
  await rig.settle();

  t.is(root.known.slice(exports)?.objects, 0);
  t.deepEqual(east.absent, []);
});

test('objects that a cache no longer offers leave its child, even if the cache has changed its parent in the meantime', async (t) => {
  const rig = new TreeRig();
  const everything = aPolicy({ types: ['*'] });
  const first = await rig.cache('first');
  const second = await rig.cache('second', { urls: ['first'] });
  const before = await rig.cache('middle', { urls: ['first'] });
  const leaf = await rig.cache('leaf', { urls: ['middle'] });
  const lane = first.store.writer.lane();
  await mustPush(lane, [aClaim(), ...aFullSync({}, [anUpsert(), anUpsert('two')])]);
  await rig.advance(5_000);
  t.is(leaf.known.slice(exports)?.objects, 2);
  await mustPush(lane, [aClaim({ term: 2_000 })]);
  await rig.advance(1_000);
  before.stop();
  await mustPush(lane, aFullSync({}, [anUpsert('one', { by: 2_000 }), anUpsert('two', { by: 2_000 })], 2_000));

  rig.refusals.set('second', new Error('not yet'));
  const offer = aPolicy({ types: ['apiresourceschemas.apis.kcp.io'] });
  const policies: LinkPolicies = {
    forward: everything,
    follow: everything,
    children: new Map([['*', { accept: aPolicy({ shards: ['*'] }), offer }]]),
  };
  const middle = await rig.cache('middle', { urls: ['second'], disk: before.disk, policies });
  t.teardown(() => [leaf, middle, second, first].forEach(({ stop }) => stop()));
  await rig.advance(10_000);
  rig.refusals.delete('second');
  await rig.advance(60_000);

  t.true(middle.known.isSynced(exports));
  t.is(leaf.known.slice(exports)?.objects, 0);
});

for (const arrives of ['at once', 'later, with what took it back'] as const)
  test(`a slice is current again once a policy that would remove much of it is reverted, which arrives ${arrives}`, async (t) => {
    const rig = new TreeRig();
    const everything = aPolicy({ types: ['*'] });
    const [narrow, open] = [{ tier: 'public' }, undefined].map((labels): LinkPolicies => ({
      forward: everything,
      follow: everything,
      children: new Map([['*', { accept: aPolicy({ shards: ['*'], ...(labels && { labels }) }), offer: everything }]]),
    }));
    if (narrow === undefined || open === undefined) throw new Error('there are two');
    const root = await rig.cache('root');
    const east = await rig.cache('east', { urls: ['root'] });
    t.teardown(() => [east, root].forEach(({ stop }) => stop()));
    const names = Array.from({ length: 120 }, (_, i) => `n${i}`);
    await mustPush(east.store.writer.lane(), [
      aClaim(),
      ...aFullSync(
        {},
        names.map((name) => anUpsert(name)),
      ),
    ]);
    await rig.advance(5_000);
    t.not(root.known.slice(exports)?.filterHash, '');
    const [end] = last(rig);
    const late: Frame[] = [];
    const flowing = deferred<void>();
    if (arrives !== 'at once') {
      end.receive = (frame) => void late.push(frame);
      end.drained = () => flowing.promise;
      await mustPush(east.store.writer.lane(), [anUpsert('n0', { path: 'root:acme' })]);
      await rig.settle();
    }

    root.tree.changePolicies(narrow);
    await rig.settle();
    t.is(root.known.slice(exports)?.filterHash, '');
    root.tree.changePolicies(open);
    await rig.settle();
    Reflect.deleteProperty(end, 'receive');
    for (const frame of late) end.receive(frame);
    await rig.settle();
    flowing.resolve();
    for (let minutes = 0; minutes < 30; minutes += 1) await rig.advance(60_000);

    t.is(root.known.slice(exports)?.objects, 120);
    t.not(root.known.slice(exports)?.filterHash, '');
  });

largeTest(
  'a change that arrives while slices wait for their sync because the parent is another cache survives the end of the link',
  async (t) => {
    const rig = new TreeRig();
    const large = Array.from({ length: 30 }, (_, i) => `large-${i}`);
    const objects = (shard: string, count: number, by: number, content = 'old'): readonly Push[] =>
      Array.from({ length: count }, (_, i): Push => {
        const key = aKey({ shard, name: `n${i}` });
        const annotations = { 'kcp.io/cluster': key.cluster, 'kcp.io/shard': shard };
        const text = JSON.stringify(anApiExport({ name: key.name, uid: `uid-${i}`, annotations }, { spec: { content } }));
        const place = { place: key, apiVersion: 'apis.kcp.io/v1alpha2', version: 'v1alpha2', metadata: {} };
        const body = compose(scanObject(new TextEncoder().encode(text), 100), place);
        return { kind: 'upsert', key, body, path: undefined, by: { kind: 'pusher', term: by } };
      });
    const push = async ({ store }: RigCache, shard: string, states: readonly Push[], term: number): Promise<void> => {
      await mustPush(store.writer.lane(), [aClaim({ shard, term }), ...aFullSync({ shard }, states, term)]);
    };
    const former = await rig.cache('root');
    const middle = await rig.cache('middle', { urls: ['root'] });
    const leaf = await rig.cache('leaf', { urls: ['middle'] });
    for (const shard of large) await push(former, shard, objects(shard, 200, 1_000), 1_000);
    await push(former, 'e', objects('e', 1, 1_000), 1_000);
    await rig.advance(5_000);
    await push(middle, 'f', objects('f', 1, 1_000), 1_000);
    await rig.advance(5_000);
    const slice = aSlice({ shard: 'e' });
    let changed = 0;
    middle.store.commits.subscribe(({ changes }) => {
      for (const { key, revision } of changes) if (key.shard === slice.shard) changed = revision;
    });
    const another = async (turns: number): Promise<void> => {
      void middle.store.writer.lane().push(objects('f', 1, 1_000, `${turns}`));
      await new Promise((resolve) => setImmediate(resolve));
    };
    t.is(leaf.known.slice(slice)?.objects, 1);
    const [end] = last(rig);

    former.stop();
    const root = await rig.cache('root');
    t.teardown(() => [leaf, middle, root].forEach(({ stop }) => stop()));
    await rig.advance(5_000);
    const claims = [...large, 'e'].map((shard) => aClaim({ shard, term: 2_000 }));
    await mustPush(root.store.writer.lane(), [...claims, ...aFullSync({ shard: 'e' }, objects('e', 1, 2_000, 'new'), 2_000)]);
    for (let turns = 0; turns < 100 && changed === 0; turns += 1) await another(turns);
    const isPast = async (): Promise<boolean> => {
      const located = middle.store.revisions.locate([...leaf.store.state.links][0]?.position ?? '');
      return located.kind === 'ours' && located.revision >= changed;
    };
    for (let turns = 0; turns < 100 && !(await isPast()); turns += 1) await another(turns);
    end.terminate();
    await rig.advance(60_000);

    t.is(leaf.known.slice(slice)?.digest, root.known.slice(slice)?.digest);
  },
);
