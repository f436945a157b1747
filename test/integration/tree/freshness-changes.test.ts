import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Slice } from '../../../src/domain/slice.js';
import { PushSessions } from '../../../src/intake/push/push-sessions.js';
import { FakePushes } from '../../support/intake/fake-pushes.js';
import { shardName } from '../../support/objects.js';
import { aBegin, aClaim, anEnd, aSlice } from '../../support/pushes.js';
import { TreeRig } from './tree-rig.js';

const amber = shardName('amber');
const intervalMs = 5_000;

/** A parent whose pusher has synced `count` slices of a shard, and a child of it. */
async function aPair(t: ExecutionContext, count: number) {
  const rig = new TreeRig();
  const sessions = new PushSessions(new FakePushes(), 0);
  let [looks, silentMs] = [0, undefined as number | undefined];
  const pushers = {
    freshness: (slice: Slice) => {
      looks += 1;
      return sessions.freshness(slice);
    },
    get present() {
      return sessions.present;
    },
    keeps: () => false,
    leavesOut: () => false,
    follow: (listener: (slices: readonly Slice[]) => void) => sessions.follow(listener),
  };
  const holder = {
    process: 'p',
    term: 1,
    peer: 'a pusher',
    silentSinceMs: () => silentMs,
    named: () => undefined,
    bye: () => {},
    dropped: () => {},
    declared: () => {},
    overwritten: () => {},
  };
  const root = await rig.cache('root', { pushers });
  const slices = Array.from({ length: count }, (_, i) => aSlice({ resource: 'instances', identity: `i${i}` }));
  const places = slices.map(({ resource: { resource, identity } }) => ({ resource, identity }));
  await root.store.writer.lane().push([aClaim(), ...places.flatMap((place) => [aBegin(place), anEnd(place)])]);
  const report = (lagMs: number): void =>
    sessions.recordStatus(
      amber,
      { freshness: slices.map((slice) => ({ slice, connected: true, synced: true, lagMs, whole: true })), withdrawn: [] },
      0,
    );
  const first = slices[0] ?? aSlice();
  const east = await rig.cache('east', { urls: ['root'] });
  t.teardown(() => {
    east.stop();
    root.stop();
  });
  sessions.enter(amber, holder, 0);
  report(0);
  await rig.advance(intervalMs);
  await rig.advance(intervalMs);
  return {
    rig,
    report,
    enter: () => sessions.enter(amber, holder, 0),
    leave: () => sessions.leave(amber, holder, 0),
    fallSilent: (ms: number | undefined) => (silentMs = ms),
    looks: () => looks,
    seen: () => east.tree.freshnessOf(first),
  };
}

test('a quiet slice costs nothing: for a child, the cache looks only at slices that changed', async (t) => {
  const { rig, report, looks, seen } = await aPair(t, 500);
  t.deepEqual(seen().connected, true);
  const before = looks();

  for (let interval = 0; interval < 10; interval += 1) {
    report(0);
    await rig.advance(intervalMs);
  }

  t.is(looks(), before);
});

test('a child learns of a pusher’s new report, and when the pusher leaves and returns', async (t) => {
  const { rig, report, enter, leave, seen } = await aPair(t, 3);

  report(7_000);
  await rig.advance(intervalMs);
  t.like(seen(), { connected: true, lagMs: 7_000 });
  leave();
  await rig.advance(intervalMs);
  t.false(seen().connected);
  enter();
  report(0);
  await rig.advance(intervalMs);
  t.true(seen().connected);
});

test('a pusher that falls silent is noticed within a second, and reported with the next heartbeat', async (t) => {
  const { rig, fallSilent, seen } = await aPair(t, 3);

  fallSilent(10);
  await rig.advance(1_000);
  await rig.advance(intervalMs);
  t.false(seen().connected);
  fallSilent(undefined);
  await rig.advance(1_000);
  await rig.advance(intervalMs);
  t.true(seen().connected);
});
