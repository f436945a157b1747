import { test } from '../../support/test.js';
import { Refused } from '../../../src/domain/errors.js';
import type { Key } from '../../../src/domain/key.js';
import { LogChunks } from '../../../src/tree/links/log-chunks.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { FakeHistory } from './some-changes.js';

function setUp() {
  const history = new FakeHistory();
  const clock = new ManualClock();
  const chunks = new LogChunks({ history, clock });
  const readAll = async (after: number, isWanted: (key: Key) => boolean = () => true): Promise<readonly number[]> => {
    const revisions: number[] = [];
    for await (const { changes } of chunks.everyChange({ after, upTo: history.published }, isWanted))
      revisions.push(...changes.map(({ revision }) => revision));
    return revisions;
  };
  for (let i = 0; i < 7; i++) history.commit({ place: { name: i % 2 === 0 ? 'even' : 'odd' }, content: {} });
  return { history, clock, readAll };
}

test('links that are behind by the same changes read the log once, also when they read at the same time', async (t) => {
  const { history, readAll } = setUp();
  const [one, other] = await Promise.all([readAll(0), readAll(0)]);

  t.deepEqual(one, [1, 2, 3, 4, 5, 6, 7]);
  t.deepEqual(other, one);
  t.is(history.reads, 3);
});

test('a link that wants keys which another read skipped reads the log itself; one that wants fewer does not', async (t) => {
  const { history, readAll } = setUp();
  const isOdd = ({ name }: Key): boolean => name === 'odd';

  t.deepEqual(await readAll(0, isOdd), [2, 4, 6]);
  t.deepEqual(await readAll(0), [1, 2, 3, 4, 5, 6, 7]);
  t.is(history.reads, 6);
  await readAll(0, isOdd);
  t.is(history.reads, 6);
});

test('a chunk is kept for a while, and a log that is compacted too far is read again', async (t) => {
  const { history, clock, readAll } = setUp();
  await readAll(0);
  clock.advance(2_000);
  history.compacted = 1;

  await t.throwsAsync(readAll(0), { instanceOf: Refused });
  history.compacted = 0;
  t.is((await readAll(0)).length, 7);
});
