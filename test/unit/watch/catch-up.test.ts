/**
 * Many watches that are behind: their common part of the log is read once, and only a slow watch
 * itself waits.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { History } from '../../../src/domain/store-port.js';
import type { HubLimits } from '../../../src/watch/hub.js';
import { aScope } from '../../support/objects.js';
import { aHub, aWatch, selecting, type TestHub } from './a-hub.js';
import { plainEvents, Reader, received, turns } from './plain-events.js';

type Counting = TestHub & Readonly<{ reads: { after: number; upTo: number }[] }>;

/** A hub with `count` puts of n1, n2, … in its log, and a record of every reading. */
function aHubWith(count: number, rowsMax: number, limits: Partial<HubLimits> = {}): Counting {
  const known = aHub(limits);
  known.store.rowsMax = rowsMax;
  for (let i = 1; i <= count; i++) known.store.commit({ put: { name: `n${i}` }, labels: { parity: i % 2 === 0 ? 'even' : 'odd' } });
  const reads: { after: number; upTo: number }[] = [];
  const changes: History['changes'] = known.store.changes.bind(known.store);
  known.store.changes = async (type, range, isWanted) => {
    const chunk = await changes(type, range, isWanted);
    reads.push({ after: range.after, upTo: chunk.upTo });
    return chunk;
  };
  return { ...known, reads };
}

function names(after: number, upTo: number): readonly string[] {
  return Array.from({ length: upTo - after }, (_, i) => `ADDED n${after + i + 1}@${after + i + 1}`);
}

async function drainAll(readers: readonly Reader[]): Promise<void> {
  await Promise.all(readers.map((reader) => reader.drain()));
}

/** Asserts that each revision is read once: in whatever order, no two readings overlap. */
function assertReadOnce(t: ExecutionContext, reads: Counting['reads'], after: number, upTo: number): void {
  const sorted = reads.toSorted((a, b) => a.after - b.after);
  t.deepEqual(
    sorted.map((read) => read.after),
    [after, ...sorted.slice(0, -1).map((read) => read.upTo)],
  );
  t.is(sorted.at(-1)?.upTo, upTo);
}

test('watches at the same position read the log once, and share every encoded byte', async (t) => {
  const { hub, reads } = aHubWith(30, 10);
  const representation = plainEvents();

  const readers = Array.from({ length: 50 }, () => new Reader(hub.open(aWatch({ start: { kind: 'after', revision: 0 }, representation }))));
  await drainAll(readers);

  for (const { events } of readers) t.deepEqual(received(events), names(0, 30));
  assertReadOnce(t, reads, 0, 30);
  t.is(representation.encoded, 3);
});

test('watches at different positions read each part of the log once: one that is further behind joins the others', async (t) => {
  const { hub, reads } = aHubWith(40, 4);

  const readers = Array.from({ length: 40 }, (_, i) => new Reader(hub.open(aWatch({ start: { kind: 'after', revision: i } }))));
  await drainAll(readers);

  readers.forEach(({ events }, i) => t.deepEqual(received(events), names(i, 40)));
  assertReadOnce(t, reads, 0, 40);
});

test('selectors and scopes of one type share the reading, and each gets its own part', async (t) => {
  const { hub, reads } = aHubWith(20, 5);

  const even = new Reader(hub.open(aWatch({ selector: selecting('parity=even') })));
  const one = new Reader(hub.open(aWatch({ scope: aScope({ name: 'n7' }) })));
  const nothing = new Reader(hub.open(aWatch({ scope: aScope({ cluster: 'elsewhere' }) })));
  await drainAll([even, one, nothing]);

  t.deepEqual(
    received(even.events),
    names(0, 20).filter((_, i) => i % 2 === 1),
  );
  t.deepEqual(received(one.events), ['ADDED n7@7']);
  t.deepEqual(received(nothing.events), []);
  assertReadOnce(t, reads, 0, 20);
});

test('a member that does not take its batch is left behind after a while, and continues alone', async (t) => {
  const { hub, store, clock } = aHubWith(30, 10, { pieceBytesMax: 100 });
  const fast = new Reader(hub.open(aWatch()));
  const slow = new Reader(hub.open(aWatch()));
  await slow.step();

  await fast.drain();
  t.deepEqual(received(fast.events), names(0, 10), 'it waits for the other one');
  clock.advance(100);
  await fast.drain();
  t.deepEqual(received(fast.events), names(0, 30));
  store.commit({ put: { name: 'n31' } });
  await fast.drain();
  t.is(received(fast.events).at(-1), 'ADDED n31@31');

  t.deepEqual(received(slow.events), names(0, 10));
  await slow.drain();
  t.deepEqual(received(slow.events), names(0, 31));
});

test('one slow member, even with slow newcomers, does not delay the others for longer', async (t) => {
  const { hub, clock } = aHubWith(60, 10, { pieceBytesMax: 100 });
  const fast = new Reader(hub.open(aWatch()));
  await new Reader(hub.open(aWatch())).step();

  for (let i = 0; i < 12; i += 1) {
    await fast.drain();
    await new Reader(hub.open(aWatch({ start: { kind: 'after', revision: (fast.events.length || 1) - 1 } }))).step();
    clock.advance(40);
  }
  await fast.drain();

  t.true(fast.events.length > 30, `${fast.events.length} of 60`);
});

test('a member that leaves while the log is read does not disturb the others, and leaves nothing open', async (t) => {
  const { hub, store, clock } = aHubWith(30, 3);
  const timers = clock.timers;
  const watches = Array.from({ length: 6 }, (_, i) => hub.open(aWatch({ start: { kind: 'after', revision: i } })));
  const readers = watches.map((watch) => new Reader(watch));
  store.between = async () => void (await turns(10));

  await Promise.all(readers.map((reader) => reader.step()));
  for (const watch of watches.slice(1)) watch.end();
  await drainAll(readers);

  t.deepEqual(received(readers[0]?.events ?? []), names(0, 30));
  t.true(readers.slice(1).every(({ ended }) => ended));
  watches[0]?.end();
  await drainAll(readers);
  t.is(hub.openWatches, 0);
  t.is(clock.timers, timers);
});

test('once all members have left, in whichever turn, no more work is done', async (t) => {
  for (let ofTurn = 0; ofTurn < 30; ofTurn += 1) {
    const { hub, clock } = aHubWith(30, 3);
    const now = clock.now.bind(clock);
    let asked = 0;
    // The clock moves whenever it is read, so every turn ends as soon as it begins.
    clock.now = () => {
      asked += 1;
      clock.pass(10);
      return now();
    };
    const watches = Array.from({ length: 4 }, (_, i) => hub.open(aWatch({ start: { kind: 'after', revision: i } })));
    for (const watch of watches) void new Reader(watch).step();

    await turns(ofTurn);
    for (const watch of watches) watch.abandon();
    await turns(50);
    const askedBefore = asked;
    await turns(50);

    t.is(asked, askedBefore, `they left in turn ${ofTurn}`);
  }
});

test('a failed reading ends all members that wait for it, each with its own error event', async (t) => {
  const { hub, store } = aHubWith(30, 10, { pieceBytesMax: 100 });
  const readers = Array.from({ length: 3 }, () => new Reader(hub.open(aWatch())));
  for (const reader of readers) await reader.step();
  store.compacted = 20;

  await drainAll(readers);

  for (const { events, ended } of readers) {
    t.deepEqual(received(events), [...names(0, 10), 'ERROR 410']);
    t.true(ended);
  }
});
