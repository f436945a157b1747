import test from 'ava';
import fc from 'fast-check';
import { compactionRowsMax, Holds, nextCompacted, type HistoryLimits, type LogState } from '../../src/store/sqlite/compactor.js';

const wide: HistoryLimits = {
  historyAgeMs: 1e12,
  historyChangesMax: 1_000_000,
  historyBytesMax: 1e12,
  tombstoneAgeMs: 1e12,
  tombstonesMax: 1e9,
};
const state: LogState = { published: 1000, compacted: 100, bytes: 5000, agedRevision: 0, heldRevision: undefined };

test('the compacted revision rises by age, count or bytes, whichever asks for most, never past a hold, a step at a time', (t) => {
  const cases: [string, Partial<LogState>, Partial<HistoryLimits>, number][] = [
    ['nothing asks', {}, {}, 100],
    ['age', { agedRevision: 150 }, {}, 150],
    ['age below C', { agedRevision: 50 }, {}, 100],
    ['count', {}, { historyChangesMax: 880 }, 120],
    ['count not reached', {}, { historyChangesMax: 900 }, 100],
    ['bytes', {}, { historyBytesMax: 4999 }, 100 + compactionRowsMax],
    ['bytes just fit', {}, { historyBytesMax: 5000 }, 100],
    ['bytes, little left', { compacted: 950 }, { historyBytesMax: 1 }, 1000],
    ['age and count: the higher', { agedRevision: 110 }, { historyChangesMax: 870 }, 130],
    ['no more than a step', { agedRevision: 900 }, {}, 100 + compactionRowsMax],
    ['held', { agedRevision: 150, heldRevision: 120 }, {}, 120],
    ['held above', { agedRevision: 150, heldRevision: 700 }, {}, 150],
    ['held below C: C stays', { agedRevision: 150, heldRevision: 90 }, {}, 100],
    ['everything is old', { agedRevision: 1000, compacted: 990 }, { historyChangesMax: 0 }, 1000],
    ['an empty store', { published: 0, compacted: 0 }, { historyChangesMax: 0 }, 0],
  ];

  for (const [title, of, limits, expected] of cases) t.is(nextCompacted({ ...state, ...of }, { ...wide, ...limits }), expected, title);
});

test('the compacted revision never falls, never passes what is published or held, and rises by one step at most', (t) => {
  const revision = fc.nat(2000);
  fc.assert(
    fc.property(
      revision,
      revision,
      fc.nat(10_000),
      revision,
      fc.option(revision, { nil: undefined }),
      fc.nat(3000),
      fc.nat(10_000),
      (a, b, bytes, aged, held, changesMax, bytesMax) => {
        const compacted = Math.min(a, b);
        const published = Math.max(a, b);
        const next = nextCompacted(
          { published, compacted, bytes, agedRevision: aged, heldRevision: held },
          { ...wide, historyChangesMax: changesMax, historyBytesMax: bytesMax },
        );
        return (
          next >= compacted &&
          next <= published &&
          next <= compacted + compactionRowsMax &&
          (held === undefined || next <= Math.max(compacted, held))
        );
      },
    ),
  );
  t.pass();
});

test('a hold lasts until it is released or its time is over; the lowest one counts', (t) => {
  const holds = new Holds(1000);
  const release = holds.hold(5, 0);
  holds.hold(9, 500);

  t.is(holds.lowest(999), 5);
  t.is(holds.lowest(1000), 9);
  release();
  t.is(holds.lowest(600), 9);
  t.is(holds.lowest(1500), undefined);
});
