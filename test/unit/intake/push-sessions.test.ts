import { test } from '../../support/test.js';
import { PushSessions, type Holder } from '../../../src/intake/push/push-sessions.js';
import { shardName } from '../../support/objects.js';
import { apiExports } from '../../support/intake/a-receiver.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';

const amber = shardName('amber');

function aHolder(term: number, said: string[]): Holder {
  return {
    process: `process-${term}`,
    term,
    peer: `peer-${term}`,
    bye: (reason) => void said.push(`${term} ${reason}`),
    dropped: () => void said.push('dropped'),
    declared: () => void said.push('declared'),
    overwritten: () => {},
    silentSinceMs: () => undefined,
    named: () => undefined,
  };
}

test('a later claim ends the former session: fenced if its process is older, replaced if it is the same', (t) => {
  const said: string[] = [];
  const sessions = new PushSessions(new FakePushes(), 0);

  sessions.enter(amber, aHolder(1, said), 10);
  sessions.enter(amber, aHolder(2, said), 20);
  sessions.enter(amber, aHolder(2, said), 30);

  t.deepEqual(said, ['1 fenced', '2 replaced']);
  t.is(sessions.pusherCount, 1);
});

test('a replaced session leaves nothing behind when it ends', (t) => {
  const sessions = new PushSessions(new FakePushes(), 0);
  const [first, second] = [aHolder(1, []), aHolder(2, [])];
  sessions.enter(amber, first, 10);
  sessions.enter(amber, second, 20);

  sessions.leave(amber, first, 30);
  t.like(sessions.presence(amber), { peer: 'peer-2', sinceMs: 20 });
  sessions.leave(amber, second, 40);
  t.like(sessions.presence(amber), { peer: undefined, sinceMs: 40 });
});

test('all sessions of a shard write through one lane', (t) => {
  const pushes = new FakePushes();
  const sessions = new PushSessions(pushes, 0);

  t.is(sessions.lane(amber), sessions.lane(amber));
  t.not(sessions.lane(amber), sessions.lane(shardName('birch')));
  t.is(pushes.lanes, 2);
});

test('a shard without a pusher counts as away since the start, and its last report is kept', (t) => {
  const sessions = new PushSessions(new FakePushes(), 5);

  t.like(sessions.presence(amber), { peer: undefined, sinceMs: 5 });
  sessions.recordStatus(
    amber,
    { freshness: [{ slice: apiExports, connected: true, synced: true, lagMs: 7, whole: true }], withdrawn: [] },
    5,
  );
  t.is(sessions.presence(amber).reported(apiExports)?.lagMs, 7);
});

test('a pusher’s report from before it was away does not count once it is back', (t) => {
  const sessions = new PushSessions(new FakePushes(), 0);
  const [before, now] = [aHolder(1, []), aHolder(1, [])];
  sessions.enter(amber, before, 10);
  sessions.recordStatus(
    amber,
    { freshness: [{ slice: apiExports, connected: true, synced: true, lagMs: 0, whole: true }], withdrawn: [] },
    10,
  );
  sessions.leave(amber, before, 1_000);
  sessions.enter(amber, now, 60_000);

  t.deepEqual(sessions.freshness(apiExports), { connected: false, lagMs: 0, whole: false });
});

test('an evicted pusher receives the reason', (t) => {
  const said: string[] = [];
  const sessions = new PushSessions(new FakePushes(), 0);
  sessions.enter(amber, aHolder(1, said), 10);

  const why = { reason: 'unavailable', message: 'emptied', retryAfterMs: 0 } as const;
  sessions.evict(amber, why);
  sessions.evict(shardName('birch'), why);

  t.deepEqual(said, ['1 unavailable']);
});

test('a holder with the present claim stays when older claims are evicted', (t) => {
  const said: string[] = [];
  const sessions = new PushSessions(new FakePushes(), 0);
  sessions.enter(amber, aHolder(7, said), 10);

  sessions.evictOlder(amber, aShardState(amber, 7), 'removed');
  t.deepEqual(said, []);
  sessions.evictOlder(amber, aShardState(amber, 9, { removed: true }), 'removed');

  t.deepEqual(said, ['7 fenced']);
});
