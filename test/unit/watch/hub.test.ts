import { test } from '../../support/test.js';
import { aKey, aScope } from '../../support/objects.js';
import { aHub, aWatch, hourMs, initial, selecting } from './a-hub.js';
import { plainEvents, Reader, received } from './plain-events.js';

test('watches with the same scope and selector share the very same encoded buffer', async (t) => {
  const { hub, store } = aHub();
  const representation = plainEvents();
  const readers = Array.from({ length: 3 }, () => new Reader(hub.open(aWatch({ representation }))));
  for (const reader of readers) await reader.drain();

  store.commit({ put: { name: 'one' } }, { put: { name: 'two' } });
  for (const reader of readers) await reader.drain();

  t.is(representation.encoded, 1);
  t.is(readers[0]?.buffers.length, 1);
  t.true(readers.every(({ buffers }) => buffers[0] === readers[0]?.buffers[0]));
});

test('another selector has its own encoding, and a selector that matches nothing has none', async (t) => {
  const { hub, store } = aHub();
  const [red, blue] = [plainEvents(), plainEvents()];
  const readers = [
    hub.open(aWatch({ representation: red, selector: selecting('team=red') })),
    hub.open(aWatch({ representation: blue, selector: selecting('team=blue') })),
  ].map((open) => new Reader(open));
  for (const reader of readers) await reader.drain();

  store.commit({ put: { name: 'one' }, labels: { team: 'red' } });
  for (const reader of readers) await reader.drain();

  t.deepEqual(
    readers.map(({ events }) => received(events)),
    [['ADDED one@1'], []],
  );
  t.deepEqual([red.encoded, blue.encoded], [1, 0]);
});

test('a thousand watches of single clusters get no work from other clusters', async (t) => {
  const { hub, store } = aHub();
  const representations = Array.from({ length: 1000 }, () => plainEvents());
  const readers = representations.map(
    (representation, i) => new Reader(hub.open(aWatch({ representation, scope: aScope({ cluster: `c${i}` }) }))),
  );
  for (const reader of readers) void reader.step();

  store.commit({ put: { cluster: 'c7' } });
  await readers[7]?.drain();

  t.deepEqual(
    representations.flatMap(({ encoded }, i) => (encoded === 0 ? [] : [i])),
    [7],
  );
  t.is(hub.openWatches, 1000);
  for (const reader of readers) void reader.leave();
  hub.close();
});

test('a live watch gets a bookmark each interval, at the published revision, though nothing in its scope changed', async (t) => {
  const { hub, store, clock } = aHub();
  const reader = new Reader(hub.open(aWatch({ scope: aScope({ name: 'quiet' }) })));
  await reader.drain();

  for (let i = 0; i < 3; i++) {
    store.commit({ put: { name: 'other' } });
    clock.advance(60_000);
    await reader.drain();
  }

  t.deepEqual(received(reader.events), ['BOOKMARK@1', 'BOOKMARK@2', 'BOOKMARK@3']);
});

test('a bookmark is sent two seconds before the deadline, and the watch ends at the deadline', async (t) => {
  const { hub, clock } = aHub();
  const reader = new Reader(hub.open(aWatch({ timeoutMs: 10_000 })));
  await reader.drain();

  clock.advance(7_999);
  t.deepEqual(await reader.drain(), []);
  clock.advance(1);
  t.deepEqual(await reader.drain(), ['BOOKMARK@0']);
  clock.advance(1_999);
  await reader.drain();
  t.false(reader.ended);
  clock.advance(1);
  await reader.drain();
  t.true(reader.ended);
  t.is(hub.openWatches, 0);
});

test('a watch that did not ask for bookmarks never gets one', async (t) => {
  const { hub, store, clock } = aHub();
  store.commit({ put: {} });
  const reader = new Reader(hub.open(aWatch({ start: { ...initial, endsWithBookmark: false }, bookmarks: false, timeoutMs: hourMs })));
  await reader.drain();

  clock.advance(hourMs);
  await reader.drain();

  t.deepEqual(received(reader.events), ['ADDED one@1']);
  t.true(reader.ended);
});

test('a watch that has ended leaves no timer', async (t) => {
  const { hub, clock } = aHub();
  const open = hub.open(aWatch());
  const reader = new Reader(open);
  await reader.drain();

  open.end();
  await reader.drain();

  t.is(clock.timers, 0);
});

test('the end of a type ends the watches of exactly that identity; those of every identity go on', async (t) => {
  const { hub } = aHub();
  const readers = ['hash', 'other', '*', ''].map((identity) => new Reader(hub.open(aWatch({ scope: aScope({ identity }) }))));
  for (const reader of readers) await reader.drain();

  hub.endOf({ group: 'apis.kcp.io', resource: 'apiexports', identity: 'hash' });
  for (const reader of readers) await reader.drain();

  t.deepEqual(
    readers.map(({ ended }) => ended),
    [true, false, false, false],
  );
});

test('a watch that opens after all watches were ended ends at once, because it would outlive the stop', async (t) => {
  const { hub, store } = aHub();
  store.commit({ put: {} });
  hub.endAll();
  const [late, lateInitial] = [new Reader(hub.open(aWatch())), new Reader(hub.open(aWatch({ start: initial })))];

  await late.drain();
  await lateInitial.drain();

  t.deepEqual([late.ended, lateInitial.ended], [true, true]);
  t.is(hub.openWatches, 0);
});

test('events that cannot be encoded fail the watches that wanted them; the commit and the others go on', async (t) => {
  const { hub, store } = aHub();
  const broken = { ...plainEvents('broken'), events: () => { throw new RangeError('Maximum call stack size exceeded'); } }; // prettier-ignore
  const [bad, good] = [new Reader(hub.open(aWatch({ representation: broken }))), new Reader(hub.open(aWatch()))];
  await bad.drain();
  await good.drain();

  t.notThrows(() => store.commit({ put: { name: 'one' } }));

  t.deepEqual(await good.drain(), ['ADDED one@1']);
  await t.throwsAsync(bad.drain(), { instanceOf: RangeError });
  t.is(hub.openWatches, 1);
});

test('a commit is written at once, and the next ones together after four times as long as that took', async (t) => {
  const { hub, store, clock } = aHub({ handOutMs: 2 });
  const representation = plainEvents();
  const reader = new Reader(hub.open(aWatch({ representation })));
  await reader.drain();

  store.commit({ put: { name: 'a' } });
  t.deepEqual(await reader.drain(), ['ADDED a@1']);
  store.commit({ put: { name: 'b' } });
  store.commit({ put: { name: 'c' } });
  clock.advance(5);
  t.deepEqual(await reader.drain(), ['ADDED a@1'], '7 ms after it began');
  clock.advance(1);

  t.deepEqual(await reader.drain(), ['ADDED a@1', 'ADDED b@2', 'ADDED c@3']);
  t.is(representation.encoded, 2);
});

test('after a write that took no time nothing waits, and after an expensive one no longer than the bound', async (t) => {
  for (const [handOutMs, waitMs] of [
    [0, 0],
    [9, 1],
    [20, 0],
  ] as const) {
    const { hub, store, clock } = aHub({ handOutMs, periodMsMax: 10 });
    const reader = new Reader(hub.open(aWatch()));
    await reader.drain();
    store.commit({ put: { name: 'a' } });
    await reader.drain();

    store.commit({ put: { name: 'b' } });
    t.is((await reader.drain()).length, waitMs === 0 ? 2 : 1, `${handOutMs}`);
    clock.advance(waitMs);
    t.deepEqual(await reader.drain(), ['ADDED a@1', 'ADDED b@2']);
  }
});

test('commits during a write are sent together after it', async (t) => {
  const { hub, store } = aHub();
  const representation = plainEvents();
  const reader = new Reader(hub.open(aWatch({ representation })));
  await reader.drain();

  for (const name of ['a', 'b', 'c']) store.commit({ put: { name } });

  t.deepEqual(await reader.drain(), ['ADDED a@1', 'ADDED b@2', 'ADDED c@3']);
  t.is(representation.encoded, 2);
});

test('a change that no watch wants does not make the next change wait', async (t) => {
  const { hub, store } = aHub({ handOutMs: 50 });
  const reader = new Reader(hub.open(aWatch({ scope: aScope({ cluster: 'acme' }) })));
  await reader.drain();

  store.commit({ put: { cluster: 'beta' } });
  store.commit({ put: { cluster: 'acme' } });

  t.deepEqual(await reader.drain(), ['ADDED one@2']);
});

test('a bookmark shows how far the stream was written, an end sends the rest, and a watch that joins meanwhile gets nothing twice', async (t) => {
  const { hub, store, clock } = aHub({ handOutMs: 1, periodFactor: 60_001 });
  const open = hub.open(aWatch());
  const [reader, late] = [new Reader(open), new Reader(hub.open(aWatch({ start: initial })))];
  await reader.drain();

  store.commit({ put: { name: 'a' } });
  store.commit({ put: { name: 'b' } });
  await late.drain();
  store.commit({ put: { name: 'c' } });
  clock.advance(60_000);
  await reader.drain();
  store.commit({ put: { name: 'd' } });
  open.end();
  await reader.drain();

  t.deepEqual(received(reader.events), ['ADDED a@1', 'ADDED b@2', 'BOOKMARK@2', 'ADDED c@3', 'ADDED d@4']);
  t.deepEqual(received(late.events).slice(0, 3), ['ADDED a@1', 'ADDED b@2', 'BOOKMARK@2!']);
  t.true(reader.ended);
});

test('only live watches of an absent key get its DELETED, after the published events', async (t) => {
  const { hub, store } = aHub({ handOutMs: 1_000 });
  const [all, amber, birch] = ['*', 'amber', 'birch'].map((shard) => new Reader(hub.open(aWatch({ scope: aScope({ shard }) }))));
  for (const reader of [all, amber, birch]) await reader?.drain();
  store.commit({ put: { name: 'one' } });
  store.commit({ put: { name: 'two' } });

  await hub.reportAbsent(aKey({ name: 'lost' }));
  await hub.reportAbsent(aKey({ name: 'one' }));

  t.deepEqual(await all?.drain(), ['ADDED one@1', 'ADDED two@2', 'DELETED lost@2']);
  t.deepEqual(await amber?.drain(), ['ADDED one@1', 'ADDED two@2', 'DELETED lost@2']);
  t.deepEqual(await birch?.drain(), []);
});

test('an object that is on another shard is not reported absent, because an informer would drop it there too', async (t) => {
  const { hub, store } = aHub();
  const reader = new Reader(hub.open(aWatch({ scope: aScope({ shard: '*' }) })));
  await reader.drain();
  store.commit({ put: { name: 'one', shard: 'birch' } });

  await hub.reportAbsent(aKey({ name: 'one', shard: 'amber' }));

  t.deepEqual(await reader.drain(), ['ADDED one@1']);
});

test('an object that was written during the look-up is not reported absent', async (t) => {
  const { hub, store } = aHub();
  const reader = new Reader(hub.open(aWatch()));
  await reader.drain();

  const sending = hub.reportAbsent(aKey({ name: 'again' }));
  store.commit({ put: { name: 'again' } });
  await sending;

  t.deepEqual(await reader.drain(), ['ADDED again@1']);
});
