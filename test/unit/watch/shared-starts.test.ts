import { test } from '../../support/test.js';
import { SharedStarts } from '../../../src/watch/shared-starts.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aHub, aWatch, initial } from './a-hub.js';
import { plainEvents, Reader, received, turns } from './plain-events.js';

function setUp() {
  const clock = new ManualClock();
  const revisions = { published: 10, compacted: 0, format: String, locate: () => ({ kind: 'above' }) as const };
  return { clock, revisions, starts: new SharedStarts({ clock, revisions }) };
}

test('the first start is immediate; later starts during writes begin together a little later', async (t) => {
  const { clock, revisions, starts } = setUp();

  t.is(await starts.start('all', revisions.published), 10);
  const others: Promise<number>[] = [];
  for (const revision of [17, 19, 25]) {
    revisions.published = revision;
    others.push(starts.start('all', revisions.published));
    clock.advance(10);
  }
  revisions.published = 30;
  clock.advance(20);

  t.deepEqual(await Promise.all(others), [30, 30, 30]);
  t.is(await starts.start('all', revisions.published), 30, 'nothing has changed since');
});

test('a start is immediate if nothing changed, for another view, or after that time, when nothing is remembered', async (t) => {
  const { clock, revisions, starts } = setUp();

  t.is(await starts.start('all', revisions.published), 10);
  t.is(await starts.start('all', revisions.published), 10);
  revisions.published = 11;
  t.is(await starts.start('other', revisions.published), 11);
  clock.advance(50);
  t.is(clock.pending, 0);
  t.is(await starts.start('all', revisions.published), 11);
});

test('a start is immediate while nothing of its type changes, or once the view has been read', async (t) => {
  const { clock, revisions, starts } = setUp();

  t.is(await starts.start('all', 10), 10);
  revisions.published = 17;
  t.is(await starts.start('all', 10), 17);
  const waiting = [starts.start('all', 17), starts.start('all', 17)];
  revisions.published = 19;
  starts.end('all');
  t.deepEqual(await Promise.all(waiting), [19, 19]);
  starts.end('all');
  revisions.published = 20;
  t.is(await starts.start('all', 20), 20);
  starts.end('all');
  t.is(clock.pending, 0);
});

test('informers that start together during writes receive the same bytes, and miss nothing afterwards', async (t) => {
  const { hub, store, clock } = aHub();
  const representation = plainEvents();
  for (let i = 0; i < 6; i++) store.commit({ put: { name: `n${i}` } });

  const readers: Reader[] = [];
  for (let i = 0; i < 10; i++) {
    const reader = new Reader(hub.open(aWatch({ start: initial, representation })));
    readers.push(reader);
    void reader.step();
    await turns(1);
    store.commit({ put: { name: `during${i}` } });
  }
  clock.advance(50);
  for (const reader of readers) await reader.drain();

  const [first, second, ...others] = readers.map(({ events }) => received(events));
  t.true(first?.includes('BOOKMARK@6!'));
  t.true(second?.includes('BOOKMARK@16!'));
  for (const other of others) t.deepEqual(other, second);
  for (const { events } of readers) t.is(new Set(events.filter(({ type }) => type === 'ADDED').map(({ key }) => key)).size, 16);
});
