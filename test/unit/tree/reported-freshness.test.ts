import { test } from '../../support/test.js';
import type { SliceFreshness } from '../../../src/frames/frame.js';
import { answerAgeMsMax } from '../../../src/tree/links/heartbeat.js';
import { ReportedFreshness } from '../../../src/tree/reported-freshness.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aSlice } from '../../support/pushes.js';

const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });
const reported = { slice: exports, connected: true, synced: true, lagMs: 3_000, whole: true };

function setUp() {
  const clock = new ManualClock();
  const startedMs = clock.now();
  return { clock, startedMs, freshness: new ReportedFreshness(clock) };
}

function aReport(freshness: readonly SliceFreshness[], isAll = false) {
  return { freshness, isAll, isComplete: true };
}

test('a neighbour that never connected is down since the start', (t) => {
  const { clock, startedMs, freshness } = setUp();

  clock.advance(100);

  t.deepEqual(freshness.presence('parent'), { isOpen: false, isUp: false, sinceMs: startedMs, hasReported: false, isComplete: false });
  t.is(freshness.slice('parent', exports), undefined);
});

test('a slice stays as reported until its link is down; then it is not connected, and nothing else changes', (t) => {
  const { clock, startedMs, freshness } = setUp();
  const parent = freshness.up('parent');

  clock.advance(50);
  t.deepEqual(parent.record(aReport([reported]), clock.now()), [exports]);
  t.false(freshness.presence('parent').hasReported);
  parent.record(aReport([], true));

  t.like(freshness.slice('parent', exports), { connected: true, synced: true, lagMs: 3_000 });
  t.deepEqual(freshness.presence('parent'), { isOpen: true, isUp: true, sinceMs: startedMs, hasReported: true, isComplete: true });
  parent.down();
  t.like(freshness.slice('parent', exports), { connected: false, synced: true, lagMs: 3_000 });
  t.deepEqual(freshness.presence('parent'), { isOpen: false, isUp: false, sinceMs: startedMs + 50, hasReported: true, isComplete: false });
});

test('a later report on a slice replaces the earlier one, and neighbours are kept apart', (t) => {
  const { clock, freshness } = setUp();
  const parent = freshness.up('parent');
  freshness.up('child/east');

  parent.record(aReport([reported, { ...reported, slice: schemas, synced: false }]), clock.now());
  parent.record(aReport([{ ...reported, connected: false }]), clock.now());

  t.is(freshness.slice('parent', exports)?.connected, false);
  t.is(freshness.slice('child/east', exports), undefined);
  t.deepEqual(freshness.syncedAt('parent'), [exports]);
  t.deepEqual(freshness.syncedAt('child/east'), []);
});

test('reports and the end of a connection are ignored once another connection has replaced it', (t) => {
  const { clock, freshness } = setUp();
  const before = freshness.up('child/east');
  const now = freshness.up('child/east');
  now.record(aReport([{ ...reported, connected: false }]), clock.now());

  before.record(aReport([reported], true), clock.now());
  before.down();

  t.like(freshness.presence('child/east'), { isOpen: true, isUp: true, hasReported: false, isComplete: false });
  t.is(freshness.slice('child/east', exports)?.connected, false);
});

test('a link that answers no heartbeat counts as down since the request of the last answered one, until it answers again', (t) => {
  const { clock, startedMs, freshness } = setUp();
  const parent = freshness.up('parent');
  parent.record(aReport([reported]));
  t.like(freshness.presence('parent'), { isOpen: true, isUp: false, sinceMs: startedMs });
  t.is(freshness.slice('parent', exports)?.connected, false);
  parent.record(aReport([]), startedMs);
  t.true(freshness.presence('parent').isUp);

  clock.advance(answerAgeMsMax);
  t.deepEqual(freshness.shard('parent', exports.shard), { connected: true, sinceMs: startedMs });
  clock.advance(1);
  t.like(freshness.presence('parent'), { isOpen: true, isUp: false, sinceMs: startedMs });
  t.is(freshness.slice('parent', exports)?.connected, false);
  t.deepEqual(freshness.shard('parent', exports.shard), { connected: false, sinceMs: startedMs });

  parent.record(aReport([]), startedMs + 1_000);
  t.true(freshness.presence('parent').isUp);
  t.deepEqual(freshness.shard('parent', exports.shard), { connected: true, sinceMs: startedMs });
  clock.advance(10_000);
  t.deepEqual(freshness.shard('parent', exports.shard), { connected: false, sinceMs: startedMs + 1_000 });
});

test('a neighbour that was known before this process started is known, and counts as down', (t) => {
  const clock = new ManualClock();
  const freshness = new ReportedFreshness(clock, ['parent', 'child/east']);

  t.deepEqual([...freshness.neighbours], ['parent', 'child/east']);
  t.like(freshness.presence('child/east'), { isOpen: false, isUp: false, isComplete: false });
  freshness.forget('child/east');
  t.deepEqual([...freshness.neighbours], ['parent']);
});

test('a neighbour is complete while it is up, has sent everything, and reports so', (t) => {
  const { clock, freshness } = setUp();
  const parent = freshness.up('parent');
  const isComplete = (): boolean => freshness.presence('parent').isComplete;

  parent.record({ freshness: [], isAll: false, isComplete: true }, clock.now());
  t.false(isComplete());
  parent.record({ freshness: [], isAll: true, isComplete: false }, clock.now());
  t.false(isComplete());
  parent.record({ freshness: [], isAll: false, isComplete: true }, clock.now());
  t.true(isComplete());
  clock.advance(answerAgeMsMax + 1);
  t.false(isComplete());
});
