import { test } from '../../support/test.js';
import type { ShardState } from '../../../src/domain/claim.js';
import type { Neighbour } from '../../../src/domain/via.js';
import { PushSessions, type Holder } from '../../../src/intake/push/push-sessions.js';
import { RunningSince } from '../../../src/intake/shards/running-since.js';
import { Standbys } from '../../../src/intake/push/standbys.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { shardName } from '../../support/objects.js';
import { apiExports } from '../../support/intake/a-receiver.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';

const amber = shardName('amber');
const holdMs = 30_000;
const never = new Promise<never>(() => {});

async function someStandbys(shard?: ShardState) {
  const clock = new ManualClock();
  const pushes = new FakePushes();
  if (shard !== undefined) pushes.publish({ shards: [shard] });
  const sessions = new PushSessions(pushes, clock.now());
  const seen = { ms: 0, isReached: true };
  const known = pushes.state;
  const running = new RunningSince(clock);
  const parts = {
    own: 'here',
    known,
    sessions,
    seenMs: () => seen.ms,
    runningSinceMs: () => running.ms(),
    isReached: () => seen.isReached,
    hasLinks: () => true,
    clock,
  };
  const standbys = new Standbys(parts, { holdMs });
  const order: string[] = [];
  const come = (process: string, gone: Promise<unknown> = never): Promise<unknown> =>
    standbys.inTurn(
      { shard: amber, process },
      (removed) => {
        order.push(`${process}${removed === undefined ? '' : ' is fenced'}`);
        if (removed === undefined) sessions.enter(amber, aHolder(process), clock.now());
      },
      { waits: () => void order.push(`${process} waits`), gone },
    );
  const settled = async (): Promise<readonly string[]> => {
    for (let i = 0; i < 10; i++) await Promise.resolve();
    return order.splice(0);
  };
  const advance = async (ms: number): Promise<readonly string[]> => {
    clock.advance(ms);
    return settled();
  };
  return { clock, pushes, sessions, seen, standbys, come, settled, advance };
}

function aHolder(process = 'first', silentSinceMs: () => number | undefined = () => undefined): Holder {
  return {
    process,
    term: 5,
    peer: 'p',
    silentSinceMs,
    named: () => undefined,
    bye: () => {},
    dropped: () => {},
    declared: () => {},
    overwritten: () => {},
  };
}

test('a shard that has no holder, was removed or is written over plain HTTP is given at once', async (t) => {
  const plain = aShardState(amber, 5, { plain: true, process: '' });
  for (const shard of [undefined, aShardState(amber, 5, { removed: true }), plain, aShardState(amber, 5, { process: 'second' })]) {
    const { come, settled } = await someStandbys(shard);

    void come('second');

    t.deepEqual(await settled(), ['second']);
  }
});

test('a standby waits for a local holder until that is gone, is silent, or has had no source for ten seconds', async (t) => {
  const stage = await someStandbys(aShardState(amber, 5));
  const { sessions, clock, come, settled, advance } = stage;
  let silentMs: number | undefined;
  const holder = aHolder('first', () => silentMs);
  sessions.enter(amber, holder, clock.now());
  await advance(60_000);

  void come('second');
  t.deepEqual(await settled(), ['second waits']);
  t.is(stage.standbys.count(amber), 1);
  t.deepEqual(await advance(60_000), []);
  sessions.leave(amber, holder, clock.now());
  t.deepEqual(await settled(), ['second']);
  t.is(stage.standbys.count(amber), 0);

  sessions.enter(amber, holder, clock.now());
  void come('third');
  t.deepEqual(await advance(1_000), ['third waits']);
  silentMs = clock.now();
  t.deepEqual(await advance(100), ['third']);

  silentMs = undefined;
  const freshness = { slice: apiExports, synced: true, lagMs: 0, whole: true };
  void come('fourth');
  sessions.recordStatus(amber, { freshness: [{ ...freshness, connected: false }], withdrawn: [] }, clock.now());
  t.deepEqual(await advance(9_000), ['fourth waits']);
  sessions.recordStatus(amber, { freshness: [{ ...freshness, connected: true }], withdrawn: [] }, clock.now());
  sessions.recordStatus(amber, { freshness: [{ ...freshness, connected: false }], withdrawn: [] }, clock.now());
  t.deepEqual(await advance(9_900), []);
  t.deepEqual(await advance(100), ['fourth']);
});

test('a holder from before the start has five seconds to come back', async (t) => {
  const { come, settled, advance } = await someStandbys(aShardState(amber, 5));

  void come('second');

  t.deepEqual(await settled(), ['second waits']);
  t.deepEqual(await advance(4_900), []);
  t.deepEqual(await advance(100), ['second']);
});

test('a standby waits for a holder at another cache while it is seen there, and for the hold while its claim is not reached', async (t) => {
  for (const [isReached, waitMs] of [
    [true, 1_500],
    [false, holdMs],
  ] as const) {
    const { come, seen, clock, settled, advance } = await someStandbys(aShardState(amber, 5, { via: 'parent' }));
    Object.assign(seen, { isReached, ms: Infinity });
    void come('second');
    t.deepEqual(await settled(), ['second waits']);
    t.deepEqual(await advance(10 * holdMs), [], 'the holder is seen all the time');
    seen.ms = clock.now();

    t.deepEqual(await advance(waitMs - 100), []);
    t.deepEqual(await advance(100), ['second']);
  }
});

for (const [where, isReached, waitMs] of [
  ['reached', true, 1_500],
  ['not reached', false, holdMs],
] as const)
  test(`a pause of this cache does not count against a holder at another one that is ${where}`, async (t) => {
    const { clock, seen, come, settled, advance } = await someStandbys(aShardState(amber, 5, { via: 'parent' }));
    seen.ms = clock.now();
    seen.isReached = isReached;
    void come('second');
    t.deepEqual(await settled(), ['second waits']);
    clock.skip(holdMs + 5_000);
    t.deepEqual(await advance(waitMs - 100), []);
    t.deepEqual(await advance(200), ['second']);
  });

test('standbys get the shard one after the other, and a standby that leaves is skipped', async (t) => {
  const { sessions, standbys, clock, come, settled, advance } = await someStandbys(aShardState(amber, 5));
  const holder = aHolder();
  sessions.enter(amber, holder, clock.now());
  void come('second');
  let leave = (): void => {};
  const third = come('third', new Promise<void>((resolve) => (leave = resolve)));
  void come('fourth');
  t.deepEqual(await settled(), ['second waits', 'third waits', 'fourth waits']);
  t.is(standbys.count(amber), 3);

  leave();
  t.is(await third, undefined);
  sessions.leave(amber, holder, clock.now());

  t.deepEqual(await settled(), ['second']);
  t.deepEqual(await advance(60_000), [], 'the second one holds it');
  t.is(standbys.count(amber), 1);
});

test('the removal of a shard fences its standbys together with its holder', async (t) => {
  const { pushes, sessions, clock, come, settled } = await someStandbys(aShardState(amber, 5));
  const holder = aHolder();
  sessions.enter(amber, holder, clock.now());
  void come('second');
  void come('third');
  t.deepEqual(await settled(), ['second waits', 'third waits']);

  pushes.publish({ shards: [aShardState(amber, 6, { removed: true })] });
  sessions.leave(amber, holder, clock.now());

  t.deepEqual(await settled(), ['second is fenced', 'third is fenced']);
});

test('a server without the links lets a standby wait only for a shard that is local, not for one of another cache', async (t) => {
  for (const [shard, refused] of [
    [aShardState(amber, 5, { via: 'child/leaf' as Neighbour, origin: 'leaf' }), 'ServiceUnavailable'],
    [aShardState(amber, 5), undefined],
    [undefined, undefined],
  ] as const) {
    const pushes = new FakePushes();
    if (shard !== undefined) pushes.publish({ shards: [shard] });
    const known = pushes.state;
    const clock = new ManualClock();
    const sessions = new PushSessions(pushes, clock.now());
    const atFirst = (): number => 0;
    const parts = {
      own: 'here',
      known,
      sessions,
      seenMs: atFirst,
      runningSinceMs: atFirst,
      isReached: () => true,
      hasLinks: () => false,
      clock,
    };
    t.is(new Standbys(parts, { holdMs }).refuses(amber)?.reason, refused);
  }
});
