import { test } from '../../support/test.js';
import type { Change, Commit } from '../../../src/domain/change.js';
import { Refused } from '../../../src/domain/errors.js';
import type { Commits, Objects } from '../../../src/domain/store-port.js';
import { PushSessions } from '../../../src/intake/push/push-sessions.js';
import { ShardRemoval, type ShardRemovalPolicy } from '../../../src/intake/shards/shard-removal.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aBody, aKey, shardName } from '../../support/objects.js';
import { silent } from '../../support/test-store.js';
import { aSlice } from '../../support/intake/a-receiver.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';

const [amber, birch] = [shardName('amber'), shardName('birch')];
const never: ShardRemovalPolicy = { awayMaxMs: undefined, deletedGraceMs: undefined };
const minuteMs = 60_000;

function setUp(policy: ShardRemovalPolicy) {
  const clock = new ManualClock();
  const pushes = new FakePushes();
  pushes.outcomeOf = () => ({ kind: 'swept', removed: 3 });
  const listeners: ((commit: Commit) => void)[] = [];
  const commits: Commits = { subscribe: (listener) => (listeners.push(listener), { cancel: () => {} }) };
  const sessions = new PushSessions(pushes, clock.now());
  /**
   * Actions of another server of the store, each run when this server asks for the newest revision.
   */
  const elsewhere: (() => void)[] = [];
  /** Names of stored Shard objects on the shard root; `leftOfCedar`: on the shard cedar. */
  const left = new Set<string>();
  const leftOfCedar = new Set<string>();
  const objects = {
    find: async ({ shard, name = '' }: Readonly<{ shard: string; name?: string }>) =>
      (shard !== 'cedar' && left.has(name)) || (shard !== 'root' && leftOfCedar.has(name)) ? [{} as never] : [],
  } as unknown as Objects;
  const state = { leads: true };
  const removal = new ShardRemoval(
    {
      objects,
      revisions: {
        published: 40,
        reachNewest: async () => elsewhere.shift()?.(),
      },
      writer: pushes,
      state: pushes.state,
      commits,
      sessions,
      seenMs: () => 0,
      lastWriteMs: () => 0,
      isLinkUp: () => false,
      isLeader: () => state.leads,
      clock,
      log: silent,
    },
    policy,
  );
  let revision = 0;
  const change = (kind: Change['kind'], name: string, { swept = false, cluster = 'root', origin = 'root' } = {}): void => {
    revision += 1;
    const key = aKey({ group: 'core.kcp.io', resource: 'shards', name, cluster, shard: origin });
    const object = { key, revision, resourceVersion: String(revision), body: aBody(key) };
    const changed: Change =
      kind === 'put'
        ? { kind, key, revision, object, created: true, previous: () => undefined }
        : { kind, key, revision, resourceVersion: String(revision), previous: () => object };
    const commit: Commit = { revision, changes: [changed], movedPaths: [], swept: new Set(swept ? [revision] : []) };
    for (const listener of listeners) listener(commit);
  };
  /** Lets time pass; each look of the removal completes. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 1_000) {
      clock.advance(Math.min(1_000, left));
      for (let i = 0; i < 10; i += 1) await Promise.resolve();
    }
  };
  return { clock, pushes, sessions, removal, change, pass, left, leftOfCedar, elsewhere, state };
}

test('a shard is removed by name, with a fence, and its pusher is disconnected', async (t) => {
  const { pushes, sessions, removal, clock } = setUp(never);
  const said: string[] = [];
  pushes.hold(aSlice('apiexports'));
  sessions.enter(
    amber,
    {
      process: 'p',
      term: 1,
      peer: 'p',
      bye: (reason) => void said.push(reason),
      dropped: () => {},
      declared: () => {},
      overwritten: () => {},
      silentSinceMs: () => undefined,
      named: () => undefined,
    },
    clock.now(),
  );
  pushes.outcomeOf = () => {
    pushes.publish({ shards: [aShardState(amber, 2, { removed: true })] });
    return { kind: 'swept', removed: 3 };
  };

  t.deepEqual(await removal.remove(amber), { removed: 3 });
  t.deepEqual(pushes.pushed, [{ kind: 'clear', shard: amber, fence: true, nowMs: clock.now() }]);
  t.deepEqual(said, ['fenced']);
});

test('an unknown shard is not removed, and a store that cannot write reports that', async (t) => {
  const { pushes, removal } = setUp(never);

  t.is(await removal.remove(amber), undefined);
  t.deepEqual(pushes.pushed, []);
  pushes.publish({ shards: [aShardState(amber, 1)] });
  pushes.outcomeOf = () => ({ kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'no disk' } });
  await t.throwsAsync(removal.remove(amber), { instanceOf: Refused, message: 'no disk' });
});

test('a shard whose Shard object is deleted is removed once no pusher of it connected during the grace', async (t) => {
  const { pushes, sessions, change, pass, clock } = setUp({ ...never, deletedGraceMs: 5 * minuteMs });
  const holder = {
    process: 'p',
    term: 1,
    peer: 'p',
    bye: () => {},
    dropped: () => {},
    declared: () => {},
    overwritten: () => {},
    silentSinceMs: () => undefined,
    named: () => undefined,
  };
  pushes.hold(aSlice('apiexports'));
  sessions.enter(amber, holder, clock.now());

  change('delete', 'amber');
  await pass(10 * minuteMs);
  t.deepEqual(pushes.pushed, [], 'its pusher is still here');
  sessions.leave(amber, holder, clock.now());
  await pass(4 * minuteMs);
  t.deepEqual(pushes.pushed, [], 'it has not been away for long enough');
  await pass(3 * minuteMs);
  t.like(pushes.pushed, [{ kind: 'clear', shard: amber, fence: true }]);
  await pass(20 * minuteMs);
  t.is(pushes.pushed.length, 1, 'once');
});

test('nothing is removed when a sync swept the Shard object, it was created again, or no grace is configured', async (t) => {
  const configured = setUp({ ...never, deletedGraceMs: minuteMs });
  const unconfigured = setUp(never);

  configured.change('delete', 'amber', { swept: true });
  configured.change('delete', 'birch');
  configured.change('put', 'birch');
  unconfigured.change('delete', 'amber');
  await configured.pass(10 * minuteMs);
  await unconfigured.pass(10 * minuteMs);

  t.deepEqual(configured.pushes.pushed, []);
  t.deepEqual(unconfigured.pushes.pushed, []);
});

test('a shard written over plain HTTP is removed after its Shard object is deleted and its writes stop', async (t) => {
  const { pushes, change, pass, clock } = setUp({ ...never, deletedGraceMs: minuteMs });
  pushes.hold(aSlice('apiexports', 'birch'), { changedMs: clock.now() + 3 * minuteMs });

  change('delete', 'birch');
  await pass(3 * minuteMs);
  t.deepEqual(pushes.pushed, [], 'it was written to in the meantime');
  await pass(2 * minuteMs);
  t.like(pushes.pushed, [{ kind: 'clear', shard: birch }]);
});

test('a shard that stays away for too long is emptied without a fence, and only if it ever had a pusher and has objects', async (t) => {
  const { pushes, pass } = setUp({ ...never, awayMaxMs: 60 * minuteMs });
  pushes.publish({ shards: [aShardState(amber, 1), aShardState(shardName('cedar'), 1)] });
  pushes.hold(aSlice('apiexports'));
  pushes.hold(aSlice('apiexports', 'birch'));

  await pass(59 * minuteMs);
  t.deepEqual(pushes.pushed, []);
  await pass(2 * minuteMs);
  t.like(pushes.pushed[0], { kind: 'clear', shard: amber, fence: false, through: 40 });
  t.true(pushes.pushed.every((push) => push.kind === 'clear' && push.shard === amber));
});

test('a shard whose pusher is back at another server of the store, though this server has not seen it yet, is not removed', async (t) => {
  const { clock, pushes, change, pass, left, elsewhere } = setUp({ awayMaxMs: 60 * minuteMs, deletedGraceMs: minuteMs });
  pushes.publish({ shards: [aShardState(amber, 1)] });
  pushes.hold(aSlice('apiexports'));
  change('delete', 'birch');
  pushes.hold(aSlice('apiexports', 'birch'));
  elsewhere.push(
    () => void left.add('birch'),
    () => void pushes.hold(aSlice('apiexports'), { changedMs: clock.now() }),
  );

  await pass(61 * minuteMs);

  t.deepEqual([elsewhere.length, pushes.pushed], [0, []]);
});

test('a shard that another server removed and that was written again is not removed a second time when this server becomes leader', async (t) => {
  const { pushes, change, pass, state } = setUp({ ...never, deletedGraceMs: minuteMs });
  state.leads = false;
  change('delete', 'birch');
  pushes.publish({ shards: [aShardState(birch, 2, { removed: true })] });
  pushes.publish({ shards: [aShardState(birch, 3)] });
  pushes.hold(aSlice('apiexports', 'birch'));

  state.leads = true;
  await pass(3 * minuteMs);

  t.deepEqual(pushes.pushed, []);
});

test('nothing is removed while the Shard object is still stored, or after deletes in another cluster or of unknown shards', async (t) => {
  const { pushes, change, pass, left } = setUp({ ...never, deletedGraceMs: minuteMs });
  pushes.hold(aSlice('apiexports', 'birch'));
  pushes.hold(aSlice('apiexports', 'amber'));
  left.add('birch');

  change('delete', 'birch');
  change('delete', 'amber', { cluster: 'somewhere' });
  change('delete', 'invented');
  await pass(10 * minuteMs);

  t.deepEqual(pushes.pushed, []);
});

test('only the root shard’s Shard objects count: those of another shard neither remove nor protect a shard', async (t) => {
  const { pushes, change, pass, leftOfCedar } = setUp({ ...never, deletedGraceMs: minuteMs });
  pushes.hold(aSlice('apiexports', 'birch'));
  pushes.hold(aSlice('apiexports', 'amber'));

  change('put', 'birch', { origin: 'cedar' });
  change('delete', 'birch', { origin: 'cedar' });
  change('delete', 'cedar', { origin: 'cedar' });
  await pass(10 * minuteMs);
  t.deepEqual(pushes.pushed, []);

  change('delete', 'amber');
  change('put', 'amber', { origin: 'cedar' });
  leftOfCedar.add('amber');
  await pass(10 * minuteMs);
  t.like(pushes.pushed, [{ kind: 'clear', shard: amber }]);
});

test('a shard that once had a pusher and is now written over plain HTTP does not count as away', async (t) => {
  const { pushes, pass, clock } = setUp({ ...never, awayMaxMs: 60 * minuteMs });
  pushes.publish({ shards: [aShardState(amber, 1)] });
  pushes.hold(aSlice('apiexports'), { changedMs: clock.now() + 50 * minuteMs });

  await pass(90 * minuteMs);
  t.deepEqual(pushes.pushed, []);
});

test('a pusher that connects while its shard is emptied must reconnect and sync; one that claims it during a removal keeps it', async (t) => {
  const said: string[] = [];
  const emptied = setUp({ ...never, awayMaxMs: 60 * minuteMs });
  emptied.pushes.publish({ shards: [aShardState(amber, 1)] });
  emptied.pushes.hold(aSlice('apiexports'));
  const removed = setUp(never);
  removed.pushes.hold(aSlice('apiexports'));
  const enter = ({ sessions, clock }: typeof removed, term: number): void =>
    sessions.enter(
      amber,
      {
        process: `process-${term}`,
        term,
        peer: 'p',
        bye: (reason, _, retryAfterMs) => void said.push(`${reason} ${retryAfterMs}`),
        dropped: () => {},
        declared: () => {},
        overwritten: () => {},
        silentSinceMs: () => undefined,
        named: () => undefined,
      },
      clock.now(),
    );

  emptied.pushes.outcomeOf = () => (enter(emptied, 1), { kind: 'swept', removed: 1 });
  await emptied.pass(62 * minuteMs);
  removed.pushes.outcomeOf = () => {
    removed.pushes.publish({ shards: [aShardState(amber, 9)] });
    enter(removed, 9);
    return { kind: 'swept', removed: 1 };
  };
  await removed.removal.remove(amber);

  t.deepEqual(said, ['unavailable 0']);
});

test('a removal that fails midway is tried again, and delays no other shard', async (t) => {
  const { pushes, change, pass } = setUp({ ...never, deletedGraceMs: minuteMs });
  pushes.hold(aSlice('apiexports'));
  pushes.hold(aSlice('apiexports', 'birch'));
  let full = true;
  pushes.outcomeOf = (push) => {
    if (!full || push.kind !== 'clear' || push.shard !== amber) return { kind: 'swept', removed: 1 };
    pushes.publish({ shards: [aShardState(amber, 2, { removed: true })] });
    return { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'no disk' } };
  };

  change('delete', 'amber');
  change('delete', 'birch');
  await pass(3 * minuteMs);
  full = false;
  await pass(3 * minuteMs);

  const cleared = pushes.pushed.map((push) => push.kind === 'clear' && push.shard);
  t.true(cleared.includes(birch));
  t.is(cleared.at(-1), amber);
});

test('a closed removal checks nothing any more', async (t) => {
  const { removal, clock } = setUp({ ...never, awayMaxMs: minuteMs });

  clock.advance(20_000);
  removal.close();
  for (let i = 0; i < 10; i += 1) await Promise.resolve();

  t.is(clock.pending, 0);
});
