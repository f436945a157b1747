import test from 'ava';
import { Freshness } from '../../src/intake/freshness.js';
import { PushSessions } from '../../src/intake/push-sessions.js';
import { ManualClock } from '../store/manual-clock.js';
import { shardName } from '../support/objects.js';
import { aSlice, apiExports, schemas } from './a-session.js';
import { aShardState, FakePushes } from './fake-pushes.js';

const amber = shardName('amber');

function setUp() {
  const clock = new ManualClock();
  const pushes = new FakePushes();
  const sessions = new PushSessions(pushes, clock.now());
  const store = Object.assign(pushes, { cacheId: 'c1', epoch: 7, published: 9, format: (revision: number) => `7-${revision}` });
  return { clock, pushes, sessions, freshness: new Freshness({ store, sessions, clock, version: '1.2.3', isReady: () => true }) };
}

test('a report names the cache, its position, and every shard that holds something or ever claimed', async (t) => {
  const { pushes, freshness } = setUp();
  pushes.hold(aSlice('apiexports', 'birch'));
  pushes.shardStates.push(aShardState(amber, 3, { removed: true }));

  const { cache, shards } = await freshness.report();

  t.deepEqual(cache, { id: 'c1', version: '1.2.3', epoch: 7, resourceVersion: '7-9', ready: true });
  t.like(shards[0], { shard: 'amber', incarnation: 3, removed: true, connection: { kind: 'away' }, slices: [] });
  t.like(shards[1], { shard: 'birch', removed: false, connection: { kind: 'plain' } });
  t.false('incarnation' in (shards[1] ?? {}));
});

test('a slice is stated by the incarnation that has the shard, by an earlier one, or by none', async (t) => {
  const { pushes, freshness, clock } = setUp();
  pushes.shardStates.push(aShardState(amber, 3));
  pushes.hold(apiExports, { stated: 3, synced: true, objects: 2, bytes: 50, changedMs: clock.now() - 900 });
  pushes.hold(schemas, { stated: 2, synced: true });
  pushes.hold(aSlice('apiconversions'), { stated: 0, synced: false });

  const [shard] = (await freshness.report()).shards;

  t.deepEqual(
    shard?.slices.map(({ resource, stated, synced }) => [resource, stated, synced]),
    [
      ['apiconversions', 'never', false],
      ['apiexports', 'current', true],
      ['apiresourceschemas', 'earlier', true],
    ],
  );
  t.like(shard?.slices[1], { objects: 2, bytes: 50, changedAgoMs: 900, lagMs: null, sourceConnected: null });
});

test('what plain HTTP wrote counts as everything once it has been quiet for a while, and is called assumed', async (t) => {
  const { pushes, freshness, clock } = setUp();
  pushes.hold(apiExports, { changedMs: clock.now() });

  t.like((await freshness.report()).shards[0]?.slices[0], { synced: false, stated: 'never' });
  clock.advance(30_000);
  t.like((await freshness.report()).shards[0]?.slices[0], { synced: true, stated: 'assumed' });
});

test('while a pusher is connected its own word on lag and source counts; while it is away the lag grows', async (t) => {
  const { pushes, sessions, freshness, clock } = setUp();
  const holder = { incarnation: 3, peer: '10.0.0.7', bye: () => {}, dropped: () => {} };
  pushes.shardStates.push(aShardState(amber, 3));
  pushes.hold(apiExports, { stated: 3, synced: true });
  sessions.enter(amber, holder, clock.now());
  sessions.note(amber, [{ slice: apiExports, connected: false, synced: true, lagMs: 12 }]);

  clock.advance(100);
  const connected = (await freshness.report()).shards[0];
  t.deepEqual(connected?.connection, { kind: 'connected', forMs: 100, peer: '10.0.0.7' });
  t.like(connected?.slices[0], { lagMs: 12, sourceConnected: false });

  sessions.leave(amber, holder, clock.now());
  clock.advance(5_000);
  const away = (await freshness.report()).shards[0];
  t.deepEqual(away?.connection, { kind: 'away', forMs: 5_000 });
  t.like(away?.slices[0], { lagMs: 5_012, sourceConnected: null });
});
