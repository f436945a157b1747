import { test } from '../support/test.js';
import { pause } from '../../src/domain/base/promises.js';
import { ProcessLife } from './process-life.js';
import { fractions, streamOf } from './seeded-random.js';
import { VirtualTime } from './virtual-time.js';

test('tasks run in the order of time, and tasks of one time in the order in which they were added', async (t) => {
  const time = new VirtualTime();
  const ran: string[] = [];
  time.after(20, () => ran.push('c'));
  time.after(10, () => ran.push('a'));
  time.after(10, () => ran.push('b'));
  time.after(10, () => time.soon(() => ran.push('b, a turn later')));
  time.soon(() => ran.push('soon'));
  time.after(0, () => ran.push('at once'));

  await time.settle(1_000);

  t.deepEqual(ran, ['soon', 'at once', 'a', 'b', 'b, a turn later', 'c']);
  t.is(time.elapsedMs, 20);
});

test('everything that promises make ready runs after each task and before the next, however deep it goes', async (t) => {
  const time = new VirtualTime();
  const ran: string[] = [];
  const deep = async (name: string): Promise<void> => {
    for (let depth = 0; depth < 50; depth += 1) await undefined;
    ran.push(name);
  };
  time.after(5, () => void deep('first'));
  const cancel = time.after(5, () => ran.push('cancelled by what the first made ready'));
  time.after(5, () => void deep('second'));
  time.after(1, () => void deep('before').then(cancel));

  await time.settle(1_000);

  t.deepEqual(ran, ['before', 'first', 'second']);
});

test('loops that pause by the clock run while time passes, and stand still in between', async (t) => {
  const time = new VirtualTime();
  const giveUp = new AbortController();
  let rounds = 0;
  const loop = async (): Promise<void> => {
    while (!giveUp.signal.aborted) {
      await pause(time, 1_000, giveUp.signal);
      rounds += 1;
    }
  };
  const done = loop();

  await time.advance(3_600_000);
  const inAnHour = rounds;
  giveUp.abort();
  await time.awaited(done, 0);

  t.is(inAnHour, 3_600);
  t.is(time.elapsedMs, 3_600_000);
  t.is(time.pending, 0);
});

test('time passes until a condition holds and no further, or until the end of the wait', async (t) => {
  const time = new VirtualTime();
  let isThere = false;
  time.after(70, () => {
    isThere = true;
  });
  time.after(90, () => undefined);

  const found = await time.until(() => isThere, 1_000);
  const foundAtMs = time.elapsedMs;
  const missed = await time.until(() => false, 1_000);

  t.deepEqual([found, foundAtMs], [true, 70]);
  t.deepEqual([missed, time.elapsedMs], [false, 1_070]);
});

test('awaited returns the value or the failure of a promise that time settles, and throws if it never settles', async (t) => {
  const time = new VirtualTime();
  const late = new Promise<string>((resolve) => time.after(50, () => resolve('here')));
  const failing = new Promise<string>((_, reject) => time.after(80, () => reject(new Error('broken'))));

  const value = await time.awaited(late, 1_000);

  t.is(value, 'here');
  await t.throwsAsync(time.awaited(failing, 1_000), { message: 'broken' });
  await t.throwsAsync(time.awaited(new Promise(() => undefined), 1_000), { message: 'not settled after 1000 ms' });
});

test('a loop that never waits throws', async (t) => {
  const time = new VirtualTime({ instantTasksMax: 1_000 });
  const again = (): void => time.soon(again);
  again();

  await t.throwsAsync(time.advance(1), { message: /a loop never waits/ });
});

test('the call that advances time throws the error of a task', async (t) => {
  const time = new VirtualTime();
  time.after(1, () => {
    throw new Error('a bug');
  });

  await t.throwsAsync(time.advance(10), { message: 'a bug' });
});

test('cancelled timers are dropped, and the others keep their order', async (t) => {
  const time = new VirtualTime();
  const random = streamOf(1, 'timers');
  const ran: number[] = [];
  const cancels: (() => void)[] = [];
  for (let count = 0; count < 20_000; count += 1) {
    const delayMs = 1 + random.below(5_000);
    const cancel = time.after(delayMs, () => ran.push(delayMs));
    if (random.chance(0.95)) cancels.push(cancel);
  }
  for (const cancel of cancels) cancel();
  const pending = time.pending;

  await time.settle(10_000);

  t.is(pending, 20_000 - cancels.length);
  t.is(ran.length, pending);
  t.deepEqual(
    ran,
    ran.toSorted((one, other) => one - other),
  );
});

test('the same seed gives the same run, and another name gives another stream', (t) => {
  const draws = (seed: number, name: string): readonly number[] => {
    const next = fractions(streamOf(seed, name));
    return Array.from({ length: 8 }, next);
  };

  t.deepEqual(draws(7, 'amber'), draws(7, 'amber'));
  t.notDeepEqual(draws(7, 'amber'), draws(7, 'birch'));
  t.notDeepEqual(draws(7, 'amber'), draws(8, 'amber'));
  t.true(draws(7, 'amber').every((draw) => draw >= 0 && draw < 1));
});

test('a process that has died is never woken again, whatever it waited for', async (t) => {
  const time = new VirtualTime();
  const life = new ProcessLife(time, { skewMs: -500 });
  const ran: string[] = [];
  life.after(10, () => ran.push('before'));
  life.after(30, () => ran.push('after'));
  const waiting = async (): Promise<void> => {
    for (;;) {
      await life.turn();
      await pause(life, 8, new AbortController().signal);
      ran.push('round');
    }
  };
  void waiting();

  await time.advance(20);
  life.end();
  await time.settle(1_000);

  t.deepEqual(ran, ['round', 'before', 'round']);
  t.is(life.now(), time.now() - 500);
  t.true(life.ended);
});

test('tasks that fall due in a frozen process run when it thaws, in order, unless they are cancelled first', async (t) => {
  const time = new VirtualTime();
  const life = new ProcessLife(time);
  const ran: string[] = [];
  const cancel = life.after(15, () => ran.push('cancelled'));
  life.after(10, () => {
    ran.push(`first at ${time.elapsedMs}`);
    cancel();
  });
  life.after(20, () => ran.push(`second at ${time.elapsedMs}`));
  life.after(70, () => ran.push(`third at ${time.elapsedMs}`));

  life.freeze();
  await time.advance(60);
  const whileFrozen = ran.length;
  life.thaw();
  await time.settle(1_000);

  t.is(whileFrozen, 0);
  t.deepEqual(ran, ['first at 60', 'second at 60', 'third at 70']);
});
