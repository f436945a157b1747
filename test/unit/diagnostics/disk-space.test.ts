import { setImmediate as turn } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { DiskSpace } from '../../../src/diagnostics/disk-space.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { ManualClock } from '../../support/store/manual-clock.js';

const answer = { bavail: 3, blocks: 10, bsize: 4_096 };
const capacity = { availableBytes: 12_288, sizeBytes: 40_960 };

test('the capacity is what a user without privileges may use, in bytes', async (t) => {
  const clock = new ManualClock();
  const disk = new DiskSpace({ clock, ask: async () => answer });

  t.deepEqual(await disk.capacity(), capacity);
  t.is(clock.pending, 0);
});

test('the capacity is unknown if the folder is gone', async (t) => {
  const disk = new DiskSpace({ clock: new ManualClock(), ask: () => Promise.reject(new Error('ENOENT')) });

  t.is(await disk.capacity(), undefined);
});

test('a disk that does not answer delays callers only briefly, and is not asked again until it has answered', async (t) => {
  const clock = new ManualClock();
  const answers: ReturnType<typeof deferred<typeof answer>>[] = [];
  const ask = () => {
    const one = deferred<typeof answer>();
    answers.push(one);
    return one.promise;
  };
  const disk = new DiskSpace({ clock, ask });

  const asked = [disk.capacity(), disk.capacity()];
  clock.advance(1_000);
  t.deepEqual(await Promise.all(asked), [undefined, undefined]);
  const later = disk.capacity();
  t.is(answers.length, 1);
  answers[0]?.resolve(answer);
  t.deepEqual(await later, capacity);
  await turn();
  void disk.capacity();
  t.is(answers.length, 2);
});
