import { test } from '../../support/test.js';
import { Liveness } from '../../../src/domain/base/liveness.js';
import { ManualClock } from '../../support/store/manual-clock.js';

function aPeer(): { clock: ManualClock; liveness: Liveness; seen: string[]; reading: { now: boolean } } {
  const clock = new ManualClock();
  const seen: string[] = [];
  const reading = { now: true };
  const peer = { ping: () => seen.push('asked'), listening: () => reading.now, onDead: () => seen.push('dead') };
  return { clock, liveness: new Liveness(clock, peer, { pingIntervalMs: 100, pongTimeoutMs: 30 }), seen, reading };
}

test('a peer that never answers is dead after the interval and the timeout', (t) => {
  const { clock, seen } = aPeer();

  clock.advance(129);
  t.deepEqual(seen, ['asked']);
  clock.advance(1);
  t.deepEqual(seen, ['asked', 'dead']);
  clock.advance(1000);
  t.deepEqual(seen, ['asked', 'dead']);
});

test('a peer that answers is pinged again an interval later', (t) => {
  const { clock, liveness, seen } = aPeer();

  for (let round = 0; round < 5; round += 1) {
    clock.advance(120);
    liveness.received();
    clock.advance(99);
    liveness.received();
    clock.advance(1);
    liveness.received();
  }

  t.deepEqual(seen, Array(10).fill('asked'));
});

test('a message that arrived before the ping is no answer', (t) => {
  const { clock, liveness, seen } = aPeer();

  liveness.received();
  clock.advance(130);

  t.deepEqual(seen, ['asked', 'dead']);
});

test('no peer is dead while this end reads nothing', (t) => {
  const { clock, seen, reading } = aPeer();

  reading.now = false;
  clock.advance(1000);
  t.deepEqual(seen, ['asked']);
  reading.now = true;
  clock.advance(30);

  t.deepEqual(seen, ['asked', 'dead']);
});

test('a closed connection leaves no timer behind', (t) => {
  for (const elapsed of [0, 110, 500]) {
    const { clock, liveness } = aPeer();
    clock.advance(elapsed);
    liveness.stop();
    liveness.received();
    t.is(clock.pending, 0);
  }
});

test('a peer that was not pinged in time, because this process was paused, counts as silent until it answers', (t) => {
  const { clock, liveness, reading } = aPeer();
  clock.advance(110);
  liveness.received();
  const heardMs = clock.now();

  clock.skip(160);
  t.is(liveness.silentSinceMs(), undefined, 'no longer than may pass between two answers');
  const resumedMs = clock.now();
  clock.skip(1);
  t.is(liveness.silentSinceMs(), heardMs);
  liveness.received();
  t.is(liveness.silentSinceMs(), heardMs, 'what came meanwhile may be old');
  for (const forged of [resumedMs - 1, clock.now() + 1, 1e300, Infinity, -Infinity, -1, NaN]) liveness.received(forged);
  t.is(liveness.silentSinceMs(), heardMs, 'no question was asked then');
  reading.now = false;
  t.is(liveness.silentSinceMs(), undefined, 'its answer may be unread');
  reading.now = true;

  liveness.received(resumedMs);
  t.is(liveness.silentSinceMs(), undefined);
});

test('a peer whose answers queue behind its other messages is alive', (t) => {
  const { clock, liveness, seen } = aPeer();

  for (let elapsed = 0; elapsed < 1000; elapsed += 20) {
    clock.advance(20);
    liveness.received();
    t.is(liveness.silentSinceMs(), undefined);
  }

  t.false(seen.includes('dead'));
});

test('after a pause a peer has the whole timeout to answer, whoever notices the pause first', (t) => {
  for (const notice of ['received', 'silentSinceMs', undefined] as const)
    for (const beforeMs of [50, 110]) {
      const { clock, liveness, seen } = aPeer();
      clock.advance(beforeMs);
      clock.skip(5000);
      if (notice !== undefined) liveness[notice]();

      clock.advance(29);
      t.false(seen.includes('dead'), `${notice} ${beforeMs}`);
      t.true(seen.includes('asked'), `${notice} ${beforeMs}`);
      clock.advance(200);
      t.is(seen.at(-1), 'dead', `${notice} ${beforeMs}`);
    }
});
