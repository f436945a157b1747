/**
 * When edits take effect, on a manual clock. declared.test.ts tests the purpose of the pace on the
 * real one.
 */
import { test } from '../../support/test.js';
import { EditPace } from '../../../src/shard/edit-pace.js';
import { ManualClock } from '../../support/store/manual-clock.js';

function aPace() {
  const clock = new ManualClock();
  const pace = new EditPace(clock);
  const applied: string[] = [];
  const startMs = clock.now();
  const edit = (name: string): void => pace.edited(name, () => void applied.push(`${name} ${clock.now() - startMs}`));
  return { clock, pace, applied, edit };
}

test('an edit takes effect at once; edits that follow within a second take effect together, a second after the last', (t) => {
  const { clock, applied, edit } = aPace();

  edit('a');
  t.deepEqual(applied, ['a 0']);
  for (let i = 0; i < 3; i += 1) {
    clock.advance(300);
    edit('a');
  }
  clock.advance(999);
  t.deepEqual(applied, ['a 0']);
  clock.advance(1);
  t.deepEqual(applied, ['a 0', 'a 1900']);

  clock.advance(10_000);
  edit('a');
  t.deepEqual(applied, ['a 0', 'a 1900', 'a 11900']);
});

test('endless edits of one object take effect twice in ten seconds, and delay no other object', (t) => {
  const { clock, applied, edit } = aPace();

  for (let ms = 0; ms < 30_000; ms += 100) {
    edit('a');
    if (ms === 15_000) edit('b');
    clock.advance(100);
  }

  t.deepEqual(
    applied.filter((each) => each.startsWith('a')),
    ['a 0', 'a 10100', 'a 20100'],
  );
  t.true(applied.includes('b 15000'));
});

test('a third edit within ten seconds of the first waits until those have passed, however far apart the edits are', (t) => {
  const { clock, applied, edit } = aPace();
  for (let ms = 0; ms < 40_000; ms += 1_100) {
    edit('a');
    clock.advance(1_100);
  }

  const times = applied.map((each) => Number(each.slice(2)));
  t.deepEqual(times.slice(0, 2), [0, 1_100]);
  for (const [i, at] of times.slice(2).entries()) t.true(at - times[i]! >= 10_000, `${times.join(' ')}`);
  t.true(times.length >= 7 && times.length <= 9, times.join(' '));
});

test('edits that wait at the close take no effect, and no timer is left', (t) => {
  const { clock, pace, applied, edit } = aPace();
  edit('a');
  edit('a');

  pace.close();
  clock.advance(60_000);

  t.deepEqual(applied, ['a 0']);
});
