import { test } from '../../support/test.js';
import type { Freshness as FreshnessPort } from '../../../src/domain/ports.js';
import type { Neighbour } from '../../../src/domain/via.js';
import type { Slice } from '../../../src/domain/slice.js';
import type { TreeStatus } from '../../../src/domain/status.js';
import { Freshness } from '../../../src/intake/shards/freshness.js';
import { HeldRemovals } from '../../../src/intake/shards/held-removals.js';
import { PushSessions } from '../../../src/intake/push/push-sessions.js';
import { ReportedFreshness } from '../../../src/tree/reported-freshness.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { shardName } from '../../support/objects.js';
import { aParentStatus, aTreeStatus } from '../../support/status-report.js';
import { silent } from '../../support/test-store.js';
import { aSlice, apiExports, schemas } from '../../support/intake/a-receiver.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';

const amber = shardName('amber');
const aRoot: TreeStatus = { name: null, route: ['c1'], hops: 0, complete: true, parent: null, children: [] };

function setUp(tree: TreeStatus = aRoot) {
  const clock = new ManualClock();
  const pushes = new FakePushes();
  const sessions = new PushSessions(pushes, clock.now());
  const links = new ReportedFreshness(clock);
  const store = { cacheId: 'c1', epoch: 7, revisions: { published: 9, format: (revision: number) => `7-${revision}` } };
  const removals = new HeldRemovals({ clock, log: silent }, { percentMax: 50, removesMin: 100, graceMs: 3_600_000 });
  const parts = {
    store,
    sessions,
    standbys: { count: () => 2 },
    isKnown: ({ resource }: Slice) => resource.resource !== 'gadgets',
    links,
    newest: { of: () => 8 },
    reportTree: () => tree,
    tree: { isComplete: tree.complete, parentId: tree.parent?.cacheId ?? undefined },
    clock,
    turn: async () => {},
    version: '1.2.3',
    removals,
    kept: undefined,
    isReady: () => true,
    certificates: () => [],
  };
  const now = async (): Promise<Freshness> => new Freshness({ ...parts, known: pushes.state });
  const freshness: FreshnessPort = {
    report: async () => (await now()).report(),
    ofType: async (question) => (await now()).ofType(question),
    ofTypeLately: async (type, ageMaxMs) => (await now()).ofTypeLately(type, ageMaxMs),
  };
  return { clock, pushes, sessions, links, freshness };
}

test('a report names the cache, its position, its neighbours, and every shard that has objects or ever had a claim', async (t) => {
  const { pushes, freshness } = setUp();
  pushes.hold(aSlice('apiexports', 'birch'));
  pushes.publish({ shards: [aShardState(amber, 3, { removed: true })] });

  const { cache, tree, shards } = await freshness.report();

  t.deepEqual(cache, { id: 'c1', version: '1.2.3', epoch: 7, resourceVersion: '7-9', ready: true });
  t.is(tree, aRoot);
  t.like(shards[0], { shard: 'amber', via: null, term: 3, removed: true, connection: { kind: 'away' }, standbys: 2 });
  t.like(shards[1], { shard: 'birch', via: null, removed: false, connection: { kind: 'plain' } });
  t.false('term' in (shards[1] ?? {}));
});

test('a slice is synced by the current term of its shard, by an earlier term, or by none', async (t) => {
  const { pushes, freshness, clock } = setUp();
  pushes.publish({ shards: [aShardState(amber, 3)] });
  pushes.hold(apiExports, { syncedTerm: 3, everSynced: true, objects: 2, bytes: 50, digest: 'd', changedMs: clock.now() - 900 });
  pushes.hold(schemas, { syncedTerm: 2, everSynced: true });
  pushes.hold(aSlice('apiconversions'), { syncedTerm: 0, everSynced: false });

  const [shard] = (await freshness.report()).shards;

  t.deepEqual(
    shard?.slices.map(({ resource, syncedIn, everSynced }) => [resource, syncedIn, everSynced]),
    [
      ['apiconversions', 'never', false],
      ['apiexports', 'this-term', true],
      ['apiresourceschemas', 'earlier', true],
    ],
  );
  t.is(shard?.via, 'local');
  t.like(shard?.slices[1], { objects: 2, bytes: 50, digest: 'd', changedAgoMs: 900, lagMs: null, sourceConnected: null, current: null });
});

test('a shard written over plain HTTP counts as fully synced once that is assumed, and the report says so', async (t) => {
  const { pushes, freshness } = setUp();
  pushes.publish({ shards: [aShardState(amber, 4, { plain: true })] });
  pushes.hold(apiExports, { syncedTerm: 0, everSynced: false });
  pushes.hold(schemas, { syncedTerm: 4, everSynced: true });

  const [shard] = (await freshness.report()).shards;

  t.like(shard, { via: 'local', connection: { kind: 'plain' } });
  t.false('term' in (shard ?? {}));
  t.like(shard?.slices[0], { everSynced: false, syncedIn: 'never' });
  t.like(shard?.slices[1], { everSynced: true, syncedIn: 'assumed' });
});

test('a connected pusher reports its own lag and source; while it is away its lag grows', async (t) => {
  const { pushes, sessions, freshness, clock } = setUp();
  const holder = {
    process: 'p',
    term: 3,
    peer: '10.0.0.7',
    bye: () => {},
    dropped: () => {},
    overwritten: () => {},
    declared: () => {},
    silentSinceMs: () => undefined,
    named: () => undefined,
  };
  pushes.publish({ shards: [aShardState(amber, 3)] });
  pushes.hold(apiExports, { syncedTerm: 3, everSynced: true });
  sessions.enter(amber, holder, clock.now());
  sessions.recordStatus(
    amber,
    { freshness: [{ slice: apiExports, connected: false, synced: true, lagMs: 12, whole: true }], withdrawn: [] },
    clock.now(),
  );

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

/** A cache with amber behind one link, and a function that sends a report from the other end. */
function behind(neighbour: Neighbour, tree?: TreeStatus, state = aShardState(amber, 3, { via: neighbour })) {
  const town = setUp(tree);
  town.pushes.publish({ shards: [state] });
  town.pushes.hold(apiExports, { syncedTerm: 3, everSynced: true, filterHash: 'e' });
  town.pushes.hold(schemas, { syncedTerm: 2, everSynced: true });
  const link = town.links.up(neighbour);
  const report = (slice: Slice, connected: boolean, lagMs = 0): unknown =>
    link.record({ freshness: [{ slice, connected, synced: true, lagMs, whole: true }], isAll: false, isComplete: true }, town.clock.now());
  return { ...town, report, down: link.down, amber: async () => (await town.freshness.report()).shards[0] };
}

test('a shard behind a link is connected while the link reports it for one of its slices, since that report', async (t) => {
  const town = behind('child/west');

  town.clock.advance(1_000);
  t.like(await town.amber(), { via: 'child/west', connection: { kind: 'away', forMs: 1_000 } });
  town.report(apiExports, true, 2_000);
  town.report(schemas, true);
  town.clock.advance(300);
  const there = await town.amber();
  t.deepEqual(there?.connection, { kind: 'connected', forMs: 300, peer: 'west' });
  t.like(there?.slices[0], { current: true, syncedIn: 'this-term', lagMs: 2_000, sourceConnected: true });
  t.like(there?.slices[1], { current: false, syncedIn: 'earlier', lagMs: 0, sourceConnected: true });
  town.report(apiExports, false);
  town.clock.advance(10);
  t.deepEqual((await town.amber())?.connection, { kind: 'connected', forMs: 310, peer: 'west' });
  town.report(schemas, false);
  town.clock.advance(20);
  t.deepEqual((await town.amber())?.connection, { kind: 'away', forMs: 20 });
});

test('a shard behind a link that is written over plain HTTP is reported as such, and not as away', async (t) => {
  const town = behind('child/west', undefined, aShardState(amber, 3, { via: 'child/west', process: '' }));
  town.report(apiExports, false);

  const there = await town.amber();
  t.deepEqual(there?.connection, { kind: 'plain' });
  t.false('term' in (there ?? {}));
  t.like(there?.slices[0], { current: true, syncedIn: 'assumed', whole: true, lagMs: null, sourceConnected: null });
  town.down();
  t.is((await town.amber())?.connection.kind, 'away');
});

test('a link that is down makes its shards away, and the age of their last reports grows', async (t) => {
  const town = behind('parent', aTreeStatus({ parent: aParentStatus({ cacheId: 'c0' }) }));
  town.report(apiExports, true, 1_000);
  town.clock.advance(500);
  t.deepEqual((await town.amber())?.connection, { kind: 'connected', forMs: 500, peer: 'c0' });

  town.down();
  town.clock.advance(4_000);

  const away = await town.amber();
  t.deepEqual(away?.connection, { kind: 'away', forMs: 4_000 });
  t.like(away?.slices[0], { everSynced: true, current: true, lagMs: 5_000, sourceConnected: null });
  t.like(away?.slices[1], { lagMs: null, sourceConnected: null });
});
