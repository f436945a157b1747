import { setImmediate as turn } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { DiskSpace } from '../../../src/diagnostics/disk-space.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { ManualClock } from '../../support/store/manual-clock.js';

const answer = { bavail: 3, blocks: 10, bsize: 4_096 };
const room = { availableBytes: 12_288, sizeBytes: 40_960 };

test('the room is what a user without privileges may use, in bytes', async (t) => {
  const clock = new ManualClock();
  const disk = new DiskSpace({ clock, ask: async () => answer });

  t.deepEqual(await disk.room(), room);
  t.is(clock.pending, 0);
});

test('the room in a folder that is gone is unknown', async (t) => {
  const disk = new DiskSpace({ clock: new ManualClock(), ask: () => Promise.reject(new Error('ENOENT')) });

  t.is(await disk.room(), undefined);
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

  const asked = [disk.room(), disk.room()];
  clock.advance(1_000);
  t.deepEqual(await Promise.all(asked), [undefined, undefined]);
  const later = disk.room();
  t.is(answers.length, 1);
  answers[0]?.resolve(answer);
  t.deepEqual(await later, room);
  await turn();
  void disk.room();
  t.is(answers.length, 2);
});
