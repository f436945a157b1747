import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { formatResource } from '../../../src/domain/resource.js';
import { PushersElsewhere } from '../../../src/intake/push/pushers-elsewhere.js';
import { PushSessions } from '../../../src/intake/push/push-sessions.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { shardName } from '../../support/objects.js';
import { apiExports } from '../../support/intake/a-receiver.js';
import { FakePeers, pushersOf } from '../../support/intake/fake-peers.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';

const amber = shardName('amber');

function someSessions() {
  const [clock, peers, pushes] = [new ManualClock(), new FakePeers(), new FakePushes()];
  const elsewhere = new PushersElsewhere({ peers, state: pushes.state, clock });
  const sessions = new PushSessions(pushes, clock.now(), elsewhere);
  const news: number[] = [];
  sessions.follow((slices) => void news.push(slices.length));
  return { clock, peers, pushes, elsewhere, sessions, news };
}

/** Asserts that the shard is held for exactly so long. */
function assertHeldFor(
  t: ExecutionContext,
  { clock, sessions }: Pick<ReturnType<typeof someSessions>, 'clock' | 'sessions'>,
  ms: number,
): void {
  t.true(sessions.hasLivePusher(amber, clock.now()));
  clock.advance(ms - 1);
  t.true(sessions.hasLivePusher(amber, clock.now()));
  clock.advance(1);
  t.false(sessions.hasLivePusher(amber, clock.now()));
}

test('a pusher at another server counts as a pusher, with the state that the server publishes', (t) => {
  const { clock, peers, sessions, news } = someSessions();
  clock.advance(100);
  peers.hear('b', { pushers: pushersOf(amber, { lagMs: 2_000, whole: false }) });
  clock.advance(50);
  peers.hear('b', { pushers: pushersOf(amber, { lagMs: 3_000, whole: false }) });

  t.true(sessions.hasPusher(amber));
  t.true(sessions.hasLivePusher(amber, clock.now()));
  t.deepEqual([...sessions.present], [[amber, undefined]]);
  t.like(sessions.presence(amber), { peer: 'elsewhere', sinceMs: clock.now() - 50 });
  t.like(sessions.freshness(apiExports), { connected: true, lagMs: 3_000, whole: false });
  t.deepEqual(news, [0, 0]);
  t.is(sessions.pusherCount, 0, 'of this server alone');
});

test('a new report from another server concerns all slices of the pusher’s shard, and a repeated one concerns none', (t) => {
  const { peers, pushes, news } = someSessions();
  pushes.hold(apiExports);
  for (const whole of [true, false, false, true]) peers.hear('b', { pushers: pushersOf(amber, { whole }) });

  t.deepEqual(news, [0, 1, 0, 1, 0, 0, 1]);
});

test('if another server names the types that are not whole, the others are; if it names none, no type is whole', (t) => {
  const { peers, sessions } = someSessions();
  const whole = (lacks: readonly string[] | undefined): boolean => {
    peers.hear('b', { pushers: pushersOf(amber, { whole: false, ...(lacks && { lacks: new Set(lacks) }) }) });
    return sessions.freshness(apiExports).whole;
  };

  t.false(whole(undefined));
  t.false(whole([formatResource(apiExports.resource)]));
  t.true(whole(['apibindings.apis.kcp.io:']));
});

test('a pusher whose server is gone counts as away since then, not since the start', (t) => {
  const { clock, peers, sessions } = someSessions();
  clock.advance(10_000);
  peers.hear('b', { pushers: pushersOf(amber) });
  clock.advance(5_000);
  peers.hear('b', undefined);

  t.false(sessions.hasPusher(amber));
  t.like(sessions.presence(amber), { peer: undefined, sinceMs: clock.now() });
});

test('a pusher whose server is gone holds its shard for five seconds more, because the server may enter again', (t) => {
  const { clock, peers, sessions } = someSessions();
  peers.hear('b', { pushers: pushersOf(amber) });
  clock.advance(5_000);
  peers.hear('b', undefined);

  assertHeldFor(t, { clock, sessions }, 5_000);
});

test('a pusher that its server no longer lists holds nothing', (t) => {
  const { clock, peers, sessions } = someSessions();
  peers.hear('b', { pushers: pushersOf(amber) });
  peers.hear('b', {});

  t.false(sessions.hasLivePusher(amber, clock.now()));
});

test('a pusher that no longer keeps its shard does not hold it, but is still there', (t) => {
  const { clock, peers, sessions } = someSessions();
  peers.hear('b', { pushers: pushersOf(amber, { isHeld: false, connected: false }) });

  t.true(sessions.hasPusher(amber));
  t.false(sessions.hasLivePusher(amber, clock.now()));
});

test('a shard that another server has just given away is held until that server publishes its pusher', (t) => {
  const { clock, peers, pushes, sessions } = someSessions();
  peers.hear('b', {});
  pushes.publish({ shards: [aShardState(amber, 5)] });

  assertHeldFor(t, { clock, sessions }, 2_000);
});

test('without other servers, only a session holds a shard', (t) => {
  const { clock, pushes, sessions } = someSessions();
  pushes.publish({ shards: [aShardState(amber, 5)] });

  t.false(sessions.hasLivePusher(amber, clock.now()));
});
