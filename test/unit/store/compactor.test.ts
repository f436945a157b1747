import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { commitBytesMax, decideCompaction, SnapshotPins, type HistoryLimits, type LogState } from '../../../src/store/compactor.js';

const limits: HistoryLimits = {
  historyAgeMs: 100_000,
  historyChangesMax: 1000,
  historyBytesMax: 10_000,
  tombstoneAgeMs: 1e12,
  tombstonesMax: 1e9,
};
/** A log exactly at its bound of changes. */
const state: LogState = { published: 1100, compacted: 100, bytes: 5000, agedRevision: 0, overdueMs: 0, heldRevision: undefined };

test('the compacted revision follows the strictest of age, count and bytes, and never passes a hold', (t) => {
  const cases: [string, Partial<LogState>, Partial<HistoryLimits>, number][] = [
    ['nothing asks', {}, {}, 100],
    ['age', { agedRevision: 150 }, {}, 150],
    ['age below C', { agedRevision: 50 }, {}, 100],
    ['count', { published: 1140 }, {}, 140],
    ['bytes: as many as have them on average', { bytes: 10_100 }, {}, 110],
    ['bytes just fit', { bytes: 10_000 }, {}, 100],
    ['many bytes: not all at once, because some changes are small', { bytes: 100_000 }, {}, 356],
    ['bytes, little left', { compacted: 1050, bytes: 10_001 }, {}, 1051],
    ['age and count: the higher', { agedRevision: 110, published: 1130 }, {}, 130],
    ['held', { agedRevision: 150, heldRevision: 120 }, {}, 120],
    ['held above', { agedRevision: 150, heldRevision: 700 }, {}, 150],
    ['held below C: C stays', { agedRevision: 150, heldRevision: 90 }, {}, 100],
    ['held, a little over the bound', { published: 1149, heldRevision: 120 }, {}, 120],
    ['held, a twentieth over the bound of changes', { published: 1150, heldRevision: 120 }, {}, 150],
    ['held, a twentieth over the bound of bytes', { bytes: 10_500, heldRevision: 120 }, {}, 148],
    ['held, a twentieth over the bound of age', { agedRevision: 150, overdueMs: 5_000, heldRevision: 120 }, {}, 150],
    ['everything is old', { agedRevision: 1000, published: 1000, compacted: 990 }, { historyChangesMax: 0 }, 1000],
    ['an empty store', { published: 0, compacted: 0, bytes: 0 }, { historyChangesMax: 0, historyBytesMax: 0, historyAgeMs: 0 }, 0],
  ];

  for (const [title, of, narrowed, expected] of cases)
    t.is(decideCompaction({ ...state, ...of }, { ...limits, ...narrowed }).upTo, expected, title);
});

test('compaction gets a tenth of the writer’s time at its bounds and nine tenths a twentieth above, where the log stops growing', (t) => {
  const cases: [string, Partial<LogState>, Partial<HistoryLimits>, number][] = [
    ['below all bounds', { published: 500 }, {}, 0.1],
    ['at a bound', {}, {}, 0.1],
    ['changes: a fortieth over', { published: 1125 }, {}, 0.5],
    ['changes: a twentieth over', { published: 1150 }, {}, 0.9],
    ['changes: twice the bound', { published: 2100 }, {}, 0.9],
    ['bytes: a fortieth over', { bytes: 10_250 }, {}, 0.5],
    ['bytes: a twentieth over', { bytes: 10_500 }, {}, 0.9],
    ['both: the higher', { bytes: 10_100, published: 1125 }, {}, 0.5],
    ['age: a fortieth over', { agedRevision: 150, overdueMs: 2_500 }, {}, 0.3],
    ['age: an hour over, which no writer makes worse', { agedRevision: 150, overdueMs: 3_600_000 }, {}, 0.5],
    ['a bound of nothing', { published: 101 }, { historyChangesMax: 0 }, 0.9],
    ['a bound of nothing, and nothing there', { published: 100, bytes: 0 }, { historyChangesMax: 0, historyBytesMax: 0 }, 0.1],
  ];

  for (const [title, of, narrowed, expected] of cases) {
    const { share } = decideCompaction({ ...state, ...of }, { ...limits, ...narrowed });
    t.true(Math.abs(share - expected) < 1e-9, `${title}: ${share}`);
  }
});

test('the compacted revision never falls, never passes the published one, nor a hold while the log is near its bounds', (t) => {
  const revision = fc.nat(2000);
  fc.assert(
    fc.property(
      revision,
      revision,
      fc.nat(20_000),
      revision,
      fc.nat(10_000),
      fc.option(revision, { nil: undefined }),
      fc.nat(3000),
      fc.nat(20_000),
      (a, b, bytes, aged, overdueMs, held, changesMax, bytesMax) => {
        const compacted = Math.min(a, b);
        const published = Math.max(a, b);
        const { upTo, share } = decideCompaction(
          { published, compacted, bytes, agedRevision: aged, overdueMs, heldRevision: held },
          { ...limits, historyChangesMax: changesMax, historyBytesMax: bytesMax },
        );
        const isNear = published - compacted < changesMax * 1.04 && bytes < bytesMax * 1.04 && overdueMs < limits.historyAgeMs * 0.04;
        return (
          upTo >= compacted &&
          upTo <= published &&
          share >= 0.1 &&
          share <= 0.9 &&
          (held === undefined || !isNear || upTo <= Math.max(compacted, held))
        );
      },
    ),
  );
  t.pass();
});

test('a commit may have at most a fortieth of the bytes', (t) => {
  t.is(commitBytesMax(limits), 250);
  t.is(commitBytesMax({ ...limits, historyBytesMax: 0 }), 1);
});

test('a hold lasts until it is released or its time is over, and the lowest hold counts', (t) => {
  const pins = new SnapshotPins(1000);
  const release = pins.pin(5, 0);
  pins.pin(9, 500);

  t.is(pins.lowest(999), 5);
  t.is(pins.lowest(1000), 9);
  release();
  t.is(pins.lowest(600), 9);
  t.is(pins.lowest(1500), undefined);
});

largeTest('the lowest of very many holds is found', (t) => {
  const pins = new SnapshotPins(1000);
  for (let revision = 1_000_000; revision > 0; revision -= 1) pins.pin(revision, 0);

  t.is(pins.lowest(0), 1);
});
