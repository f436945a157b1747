import test from 'ava';
import { ToldFreshness } from '../../src/tier/told-freshness.js';
import { aSlice } from '../support/pushes.js';

const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });
const heard = { silentSinceMs: () => undefined };
const told = { slice: exports, connected: true, synced: true, lagMs: 3_000 };

test('a side that never opened is down since the start', (t) => {
  const freshness = new ToldFreshness(100);

  t.deepEqual(freshness.presence('parent'), { isUp: false, sinceMs: 100, hasTold: false });
  t.is(freshness.slice('parent', exports), undefined);
});

test('what is told of a slice holds until its link is down; then the slice is not connected, and nothing else changes', (t) => {
  const freshness = new ToldFreshness(100);
  const down = freshness.up('parent', 200, heard);

  freshness.note('parent', [told], 250);
  t.false(freshness.presence('parent').hasTold);
  freshness.note('parent', [], 250);

  t.like(freshness.slice('parent', exports), { connected: true, synced: true, lagMs: 3_000 });
  t.deepEqual(freshness.presence('parent'), { isUp: true, sinceMs: 200, hasTold: true });
  down(300);
  t.like(freshness.slice('parent', exports), { connected: false, synced: true, lagMs: 3_000 });
  t.deepEqual(freshness.presence('parent'), { isUp: false, sinceMs: 300, hasTold: true });
});

test('a later word on a slice takes the place of the earlier, and sides are kept apart', (t) => {
  const freshness = new ToldFreshness(0);
  freshness.up('parent', 0, heard);
  freshness.up('child/east', 0, heard);

  freshness.note('parent', [told, { ...told, slice: schemas, synced: false }], 10);
  freshness.note('parent', [{ ...told, connected: false }], 20);

  t.is(freshness.slice('parent', exports)?.connected, false);
  t.is(freshness.slice('child/east', exports), undefined);
  t.deepEqual(freshness.syncedAt('parent'), [exports]);
  t.deepEqual(freshness.syncedAt('child/east'), []);
});

test('the end of a connection whose place another has taken is no news', (t) => {
  const freshness = new ToldFreshness(0);
  const downBefore = freshness.up('child/east', 10, heard);
  freshness.up('child/east', 20, heard);

  downBefore(30);

  t.deepEqual(freshness.presence('child/east'), { isUp: true, sinceMs: 20, hasTold: false });
});

test('a link that is open and silent for too long counts as down since it was heard, until it is heard again (F7)', (t) => {
  const freshness = new ToldFreshness(0);
  let silentMs: number | undefined;
  freshness.up('parent', 100, { silentSinceMs: () => silentMs });
  freshness.note('parent', [told], 150);

  silentMs = 200;
  t.like(freshness.presence('parent'), { isUp: false, sinceMs: 200 });
  t.is(freshness.slice('parent', exports)?.connected, false);
  t.deepEqual(freshness.shard('parent', exports.shard), { connected: false, sinceMs: 200 });

  silentMs = undefined;
  t.like(freshness.presence('parent'), { isUp: true, sinceMs: 100 });
  t.deepEqual(freshness.shard('parent', exports.shard), { connected: true, sinceMs: 150 });
});
