import { test } from '../../support/test.js';
import type { Slice } from '../../../src/domain/slice.js';
import { OutgoingReports, type Report, type ReportedSlice } from '../../../src/tree/links/outgoing-reports.js';
import { aSlice } from '../../support/pushes.js';

const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });

function setUp() {
  const state = {
    connected: true,
    whole: true,
    crossesWhole: true,
    isComplete: true,
    lagMs: 0,
    published: 7,
    synced: new Set<Slice>([exports, schemas]),
    looks: 0,
  };
  const slices = new Map<Slice, ReportedSlice>();
  const marked = new Set<ReportedSlice>();
  const reports = new OutgoingReports({
    isSynced: (slice) => state.synced.has(slice),
    freshnessOf: () => {
      state.looks += 1;
      return { connected: state.connected, lagMs: state.lagMs, whole: state.whole };
    },
    crossesWhole: () => state.crossesWhole,
    isComplete: () => state.isComplete,
    published: () => state.published,
    marked,
  });
  const mark = (...these: readonly Slice[]): void => {
    for (const slice of these) {
      const reported = slices.get(slice) ?? { slice, freshness: '', hasLeft: false };
      slices.set(slice, reported);
      marked.add(reported);
    }
  };
  /** The slice no longer crosses the link; its shard may come back, and the slice with it. */
  const leave = (slice: Slice): void => {
    marked.add({ slice, freshness: slices.get(slice)?.freshness ?? '', hasLeft: true });
    slices.delete(slice);
  };
  let heartbeat = 0;
  const take = (position: number): readonly Report[] => {
    const taken: Report[] = [];
    for (let report = reports.take(position); report !== undefined; report = reports.take(position)) taken.push(report);
    return taken;
  };
  /** All reports that answer the next heartbeat, with a tail that is not behind. */
  const answer = (...these: readonly Slice[]): readonly Report[] => {
    mark(...these);
    reports.request((heartbeat += 1));
    const all: Report[] = [];
    do all.push(...take(state.published));
    while (reports.check());
    return all;
  };
  return { state, reports, marked, mark, leave, take, answer };
}

function texts(reports: readonly Report[]): readonly string[] {
  return reports.flatMap(({ freshness }) =>
    freshness.map(({ slice, connected, synced, lagMs }) => `${slice.resource.resource} ${connected} ${synced} ${lagMs}`),
  );
}

test('the first report has every slice and later ones the changed slices; a heartbeat is answered even if nothing changed', (t) => {
  const { state, answer } = setUp();

  const first = answer(exports, schemas);
  t.deepEqual(texts(first), ['apiexports true true 0', 'apiresourceschemas true true 0']);
  t.deepEqual(
    first.map(({ heartbeat }) => heartbeat),
    [1],
  );
  t.deepEqual(answer(exports, schemas), [{ freshness: [], heartbeat: 2, isAll: false, isComplete: false }]);
  state.synced.delete(schemas);
  t.deepEqual(texts(answer(exports)), []);
  t.is(state.looks, 5);
  t.deepEqual(texts(answer(schemas)), ['apiresourceschemas true false 0']);
});

test('a slice that no longer crosses is reported as unknown; if it comes back, it is then reported anew', (t) => {
  const { leave, answer } = setUp();
  answer(exports, schemas);

  leave(schemas);
  t.deepEqual(texts(answer()), ['apiresourceschemas false false 0']);
  leave(exports);
  t.deepEqual(texts(answer(exports)), ['apiexports false false 0', 'apiexports true true 0']);
});

test('a lag is reported in steps of a second', (t) => {
  const { state, answer } = setUp();
  answer(exports);

  state.lagMs = 999;
  t.deepEqual(texts(answer(exports)), []);
  state.lagMs = 1_700;
  t.deepEqual(texts(answer(exports)), ['apiexports true true 1000']);
});

test('no slice is read before a report is requested', (t) => {
  const { state, reports, mark } = setUp();
  mark(exports);

  t.false(reports.check());
  t.is(state.looks, 0);
});

test('once all slices are known, an unrequested report says that all were reported', (t) => {
  const { reports, mark, take, state } = setUp();
  mark(exports);

  reports.allKnown();
  t.true(reports.check());
  const [report] = take(state.published);
  t.like(report, { heartbeat: 0, isAll: true, isComplete: true });
  t.is(report?.freshness.length, 1);
  t.false(reports.check());
});

test('a report waits until the tail has read everything published when it was made, and no slice is read meanwhile', (t) => {
  const { state, reports, mark, take, marked } = setUp();
  mark(exports);
  reports.request(1);

  t.true(reports.check());
  state.published = 9;
  mark(schemas);
  reports.request(2);
  t.false(reports.check());
  t.deepEqual(take(6), []);
  t.deepEqual(texts(take(7)), ['apiexports true true 0']);

  t.true(reports.check());
  t.is(marked.size, 0);
  t.deepEqual(take(8), []);
  t.like(take(9)[0], { heartbeat: 2 });
});

test('a report has at most 250 slices, and the last of a round answers the heartbeat', (t) => {
  const { answer } = setUp();
  const slices = Array.from({ length: 501 }, (_, i) => aSlice({ shard: `s-${i}` }));

  t.deepEqual(
    answer(...slices).map(({ freshness, heartbeat }) => [freshness.length, heartbeat]),
    [
      [250, 0],
      [250, 0],
      [1, 1],
    ],
  );
});

test('a slice is reported whole only if it is whole here and the filter lets all of it through', (t) => {
  const { state, answer } = setUp();
  const wholes = (): readonly boolean[] => answer(exports).flatMap(({ freshness }) => freshness.map(({ whole }) => whole));

  t.deepEqual(wholes(), [true]);
  state.crossesWhole = false;
  t.deepEqual(wholes(), [false]);
  state.crossesWhole = true;
  t.deepEqual(wholes(), [true]);
  state.whole = false;
  t.deepEqual(wholes(), [false]);
});

test('completeness is not reported before every slice was reported once, nor while another neighbour is incomplete', (t) => {
  const { state, reports, answer } = setUp();

  t.deepEqual(
    answer().map(({ isComplete }) => isComplete),
    [false],
  );
  reports.allKnown();
  t.deepEqual(
    answer().map(({ isComplete }) => isComplete),
    [true],
  );
  state.isComplete = false;
  t.deepEqual(
    answer().map(({ isComplete }) => isComplete),
    [false],
  );
});
