/**
 * A policy change that would remove many objects at once must be held until an operator confirms it
 * or the grace time ends. Real caches and links.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Slice } from '../../../src/domain/slice.js';
import type { SliceStatus, StatusReport } from '../../../src/domain/status.js';
import { freePorts } from '../../support/free-ports.js';
import { LeapingClock } from '../../support/leaping-clock.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { claim, openChild } from '../../support/raw-child.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { aTree, eventsOf, exportsOf } from '../../support/test-tree.js';

const exports = sliceOf('apiexports');
const many = 120;
const published = 10;
const quick = { 'policy-poll': '100ms' };
/** Links tolerate a silence of this length when the test advances the clock by it. */
const graceMs = 15_000;
const all = "[{types: ['*']}]";
const public_ = "[{types: ['*'], labels: {tier: public}}]";
const nothing = '[]';

function below(follow: string): string {
  return `parent: {forward: ${all}, follow: ${follow}}\nchildren: {'*': {accept: [{shards: ['*']}], offer: ${all}}}\n`;
}

function above(offer: string, accept = "[{shards: ['*']}]"): string {
  return `children: {'*': {accept: ${accept}, offer: ${offer}}}\n`;
}

/** The first `published` of them are labelled public. */
function exportsNamed(count: number) {
  return Array.from({ length: count }, (_, i) => {
    const labels = i < published ? { labels: { tier: 'public' } } : {};
    return pushedExport(`e${i}`, { metadata: { name: `e${i}`, uid: `uid-${i}`, ...labels } });
  });
}

async function statusOf(server: TestServer, { shard, resource }: Slice = exports): Promise<SliceStatus | undefined> {
  const { shards } = JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
  return shards.find((each) => each.shard === shard)?.slices.find((slice) => slice.resource === resource.resource);
}

async function isHeld(server: TestServer): Promise<boolean> {
  return ((await statusOf(server))?.held ?? null) !== null;
}

async function holds(server: TestServer, count: number): Promise<boolean> {
  return (await exportsOf(server)).length === count;
}

/**
 * The slice is held and the status shows it; it is neither current nor whole, and no object is
 * removed.
 */
async function mustBeHeld(t: ExecutionContext, server: TestServer, removes: number): Promise<void> {
  await until(() => isHeld(server));
  await until(async () => (await statusOf(server))?.whole === false && (await statusOf(server))?.syncedIn === 'earlier');
  t.like(await statusOf(server), { objects: many, whole: false, syncedIn: 'earlier', held: { removes } });
}

async function confirm(server: TestServer): Promise<number> {
  return (await server.client().raw('DELETE', '/services/cache/shards/amber/held/apiexports.apis.kcp.io')).status;
}

/**
 * A root into which amber is pushed, east below it, and leaf below east. The test can change the
 * policies of root and east, and advance east's clock.
 */
async function threeCaches(t: ExecutionContext, { flags = {}, count = many }: { flags?: Record<string, string>; count?: number } = {}) {
  const clock = new LeapingClock();
  const policies = { root: above(all), east: below(all) };
  const tree = await aTree(t);
  const root = await tree.cache('root', { config: () => policies.root, flags: quick });
  const [port] = await freePorts(1);
  const eastOptions = { config: () => policies.east, flags: { ...quick, 'secure-port': String(port), ...flags }, clock };
  const east = await tree.cache('east', { parent: root, ...eastOptions });
  const leaf = await tree.cache('leaf', { parent: east });
  const pusher = await RawPusher.open(root);
  await pusher.syncWhole(exports, exportsNamed(count));
  await until(() => holds(leaf, count));
  await until(async () => (await statusOf(leaf))?.whole === true);
  const restart = async (former: TestServer): Promise<TestServer> => {
    const again = await former.restart({
      ...eastOptions,
      flags: { ...(await tree.linkFlags('east', root)), ...eastOptions.flags },
      authority: tree.authority,
    });
    t.teardown(() => again.close());
    return again;
  };
  return { policies, root, east, leaf, pusher, restart, clock };
}

test.serial(
  'a cache whose own policy no longer accepts anything keeps all objects until an operator confirms, and so do caches below it',
  async (t) => {
    const { policies, east, leaf } = await threeCaches(t);
    const seen = await eventsOf(t, leaf);

    policies.east = below(nothing);
    await mustBeHeld(t, east, many);
    t.is(await east.metric('strata_slice_held_objects'), many);
    await until(async () => (await statusOf(leaf))?.whole === false);
    t.true(await holds(leaf, many));
    t.false(await isHeld(leaf));
    t.deepEqual(seen(), []);

    t.is(await confirm(east), 200);
    await until(() => holds(east, 0));
    await until(() => holds(leaf, 0));
    t.false(await isHeld(east));
    t.is(await confirm(east), 404);
  },
);

test.serial('a cache whose own policy accepts less holds the removals; once confirmed, exactly the rest is removed', async (t) => {
  const { policies, east, leaf } = await threeCaches(t);

  policies.east = below(public_);
  await mustBeHeld(t, east, many - published);
  t.true(await holds(leaf, many));

  t.is(await confirm(east), 200);
  await until(() => holds(east, published));
  await until(() => holds(leaf, published));
  await until(async () => (await statusOf(east))?.current === true);
  t.like(await statusOf(east), { current: true, syncedIn: 'this-term', held: null });
});

for (const [what, offer, left] of [
  ['nothing', nothing, 0],
  ['less', public_, published],
] as const)
  test.serial(`a child holds what a parent that offers ${what} would remove, and removes it after the grace time`, async (t) => {
    const { policies, root, east, leaf, clock } = await threeCaches(t, { flags: { 'removal-hold-grace': '15s' } });

    policies.root = above(offer);
    await mustBeHeld(t, east, many - left);
    t.true(await holds(leaf, many));
    t.false(await isHeld(root));
    clock.leap(graceMs);

    await until(() => holds(east, left));
    await until(() => holds(leaf, left));
    t.false(await isHeld(east));
  });

test.serial('a mistake that is reverted in time causes no removal and no event, and all slices become current again', async (t) => {
  const { policies, east, leaf, pusher } = await threeCaches(t);
  const seen = await eventsOf(t, leaf);

  for (const [end, mistake, good] of [
    ['root', above(nothing), above(all)],
    ['root', above(public_), above(all)],
    ['east', below(public_), below(all)],
    ['east', below(nothing), below(all)],
  ] as const) {
    policies[end] = mistake;
    await until(() => isHeld(east));
    policies[end] = good;
    await until(async () => (await statusOf(east))?.held === null && (await statusOf(east))?.whole === true);
    await until(async () => (await statusOf(leaf))?.whole === true);
  }

  t.deepEqual(seen(), []);
  await pusher.acknowledged(pusher.delete(exports, ['e3']));
  await until(async () => seen().join() === 'DELETED e3');
  t.true(await holds(leaf, many - 1));
});

for (const [end, mistake, good] of [
  ['east', below(nothing), below(all)],
  ['east', below(public_), below(all)],
  ['root', above(nothing), above(all)],
] as const)
  test.serial(`a restart of the holding cache removes nothing: ${end} with ${mistake.split('\n')[0]}`, async (t) => {
    const { policies, east, leaf, restart } = await threeCaches(t, { flags: { 'removal-hold-grace': '1h' } });
    policies[end] = mistake;
    const removes = mistake.includes('public') ? many - published : many;
    await mustBeHeld(t, east, removes);

    const again = await restart(east);
    await mustBeHeld(t, again, removes);

    policies[end] = good;
    const third = await restart(again);
    await until(async () => (await statusOf(third))?.whole === true);
    t.like(await statusOf(third), { objects: many, held: null, syncedIn: 'this-term' });
    await until(async () => (await statusOf(leaf))?.whole === true);
    t.true(await holds(leaf, many));
  });

for (const [what, follow, left] of [
  ['nothing', nothing, 0],
  ['less', public_, published],
] as const)
  test.serial(
    `a cache that starts with a policy that accepts ${what} keeps the rest, reports it as held, and removes it only after its grace time`,
    async (t) => {
      const { policies, east, leaf, restart, clock } = await threeCaches(t, { flags: { 'removal-hold-grace': '15s' } });
      policies.east = below(follow);

      const again = await restart(east);
      await mustBeHeld(t, again, many - left);
      t.true(await holds(leaf, many));
      clock.leap(graceMs);

      await until(() => holds(again, left));
      await until(() => holds(leaf, left));
      t.false(await isHeld(again));
    },
  );

test.serial('a removal of a smaller share happens at once, and objects that a shard deletes are never held', async (t) => {
  const { policies, east, pusher } = await threeCaches(t, { count: 2 * many });

  const kept = Array.from({ length: many + 5 }, (_, i) =>
    pushedExport(`k${i}`, { metadata: { name: `k${i}`, uid: `k-${i}`, labels: { tier: 'public' } } }),
  );
  await pusher.sync(exports, [...exportsNamed(many), ...kept]);
  await until(() => holds(east, many + kept.length));
  t.false(await isHeld(east));

  policies.east = below(public_);
  await until(() => holds(east, published + kept.length));
  t.false(await isHeld(east));

  await pusher.sync(exports, []);
  await until(() => holds(east, 0));
  t.false(await isHeld(east));
});

test.serial('a hold stays with its slice when the shard moves to another cache', async (t) => {
  const policies = { root: above(all) };
  const tree = await aTree(t);
  const root = await tree.cache('root', { config: () => policies.root, flags: quick });
  const [east, west] = [await tree.cache('east', { parent: root }), await tree.cache('west', { parent: root })];
  const first = await RawPusher.open(east, { term: 1_000 });
  await first.syncWhole(exports, exportsNamed(many));
  await until(() => holds(root, many));

  policies.root = above(all, "[{shards: ['*'], labels: {tier: public}}]");
  await mustBeHeld(t, root, many - published);
  const heldMs = performance.now();
  first.socket.terminate();
  const second = await RawPusher.open(west, { term: 2_000 });
  await second.syncWhole(exports, exportsNamed(many));
  const viaOf = async (): Promise<unknown> =>
    (JSON.parse((await root.client().raw('GET', '/services/cache/status')).text) as StatusReport).shards[0]?.via;
  await until(async () => (await viaOf()) === 'child/west');
  await mustBeHeld(t, root, many - published);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await mustBeHeld(t, root, many - published);
  t.true(((await statusOf(root))?.held?.forMs ?? 0) >= performance.now() - heldMs - 1_000);

  t.is(await confirm(root), 200);
  await until(() => holds(root, published));
  t.pass();
});

test.serial('a confirmation covers one removal: the same mistake is held again, even without a full sync in between', async (t) => {
  const policies = { root: above('[]') };
  const root = await aServer(t, { config: () => policies.root, flags: quick });
  const child = await openChild(root);
  claim(child, exports.shard);
  const objects = exportsNamed(many);
  child.begin(exports);
  child.put(exports, objects);
  await child.acknowledged(child.end(exports, many, 'e'));
  policies.root = above('[]', "[{shards: ['*'], labels: {tier: public}}]");
  await until(() => isHeld(root));
  t.is(await confirm(root), 200);
  await child.expect('resync');
  child.begin(exports);
  child.put(exports, objects.slice(0, published));
  await child.acknowledged(child.end(exports, published));
  t.true(await holds(root, published));

  policies.root = above('[]');
  await child.expect('policy');
  await child.acknowledged(child.put(exports, objects));
  policies.root = above('[]', "[{shards: ['*'], labels: {tier: public}}]");

  await until(() => isHeld(root));
  t.true(await holds(root, many));
});
