/**
 * What a live watch (`watch/watcher.ts`) writes itself and what it leaves to its reader: together
 * every event, once and in order.
 */
import { test } from '../../support/test.js';
import type { Representation, WatchRequest } from '../../../src/domain/ports.js';
import type { HubLimits } from '../../../src/watch/hub.js';
import { aHub, aWatch, initial, type TestHub } from './a-hub.js';
import { ASink } from './a-sink.js';
import { plainEvents, Reader, received, turns } from './plain-events.js';

type Known = TestHub & Readonly<{ sink: ASink; reader: Reader; end: () => void }>;

/**
 * A live watch. Written and read events reach the test in the order in which they are handed out.
 */
async function aLiveWatch(limits: Partial<HubLimits> = {}, request: Partial<WatchRequest> = {}): Promise<Known> {
  const test = aHub(limits);
  const sink = new ASink();
  const open = test.hub.open(aWatch({ sink, ...request }));
  const reader = new Reader(open);
  sink.write = (pieces) => reader.take(pieces);
  await reader.drain();
  return { ...test, sink, reader, end: () => open.end() };
}

/** Events preceded by so many bytes of space. */
function padded(bytes: number): Representation {
  const plain = plainEvents();
  return { ...plain, events: (items) => Buffer.concat([Buffer.alloc(bytes, ' '), plain.events(items)]) };
}

const puts = (from: number, to: number): readonly { put: { name: string } }[] =>
  Array.from({ length: to - from + 1 }, (_, i) => ({ put: { name: `n${from + i}` } }));
const added = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `ADDED n${from + i}@${from + i}`);

test('a live watch writes published events itself, and does not wake its reader', async (t) => {
  const { store, sink, reader } = await aLiveWatch();
  let woken = 0;
  void reader.step().then(() => (woken += 1));

  store.commit(...puts(1, 3));
  await turns(5);

  t.deepEqual(received(reader.events), added(1, 3));
  t.deepEqual([sink.writes, woken], [1, 0]);
});

test('a watch is read while it is behind or sends its initial state; once it is live it writes', async (t) => {
  const { store, sink, reader } = await aLiveWatch({}, { start: initial });

  t.deepEqual([received(reader.events), sink.writes], [['BOOKMARK@0!'], 0]);
  store.commit(...puts(1, 1));
  await turns(5);

  t.deepEqual(received(reader.events).slice(1), added(1, 1));
  t.is(sink.writes, 1);
});

test('a full sink gets nothing: events are read, and the sink is written to again after them', async (t) => {
  const { store, sink, reader } = await aLiveWatch();

  sink.isFull = true;
  store.commit(...puts(1, 2));
  await turns(5);
  store.commit(...puts(3, 3));
  await turns(5);
  sink.isFull = false;
  store.commit(...puts(4, 4));
  await turns(5);
  t.is(sink.writes, 0);
  await reader.drain();
  store.commit(...puts(5, 5));
  await turns(5);

  t.deepEqual(received(reader.events), added(1, 5));
  t.is(sink.writes, 1);
});

test('more bytes than may be sent at once are read, not written', async (t) => {
  const { store, sink, reader } = await aLiveWatch({ pieceBytesMax: 150 });

  store.commit(...puts(1, 6));
  await turns(5);

  t.deepEqual(await reader.drain(), added(1, 6));
  t.is(sink.writes, 0);
});

test('events that are sent in parts are read, whatever may be sent at once', async (t) => {
  const { store, sink, reader } = await aLiveWatch(
    { pieceBytesMax: 4_000_000, queueBytesMax: 8_000_000 },
    { representation: padded(300_000) },
  );

  store.commit(...puts(1, 1));
  await turns(5);

  t.deepEqual(await reader.drain(), added(1, 1));
  t.is(sink.writes, 0);
});

test('sinks share the bytes of a turn, because they are framed and encrypted after it', async (t) => {
  const { hub, store } = aHub();
  const representation = padded(90_000);
  let writes = 0;
  for (let i = 0; i < 40; i += 1) {
    const sink = new ASink();
    sink.write = () => void (writes += 1);
    await new Reader(hub.open(aWatch({ sink, representation }))).drain();
  }

  store.commit(...puts(1, 1));
  const inTurns: number[] = [];
  for (let before = 0; before < 40 && inTurns.length < 100; before = writes) {
    await turns(1);
    inTurns.push(writes - before);
  }

  t.is(writes, 40);
  t.true(Math.max(...inTurns) <= 12, inTurns.join(' '));
});

test('a watch whose sink stays full queues a bounded amount, then reads on from the change log, and misses nothing', async (t) => {
  const { store, sink, reader, counts } = await aLiveWatch({ queueBytesMax: 300 });

  sink.isFull = true;
  for (let i = 1; i <= 20; i += 1) {
    store.commit(...puts(i, i));
    await turns(5);
  }
  sink.isFull = false;
  await reader.drain();
  store.commit(...puts(21, 21));
  await turns(5);

  t.deepEqual(received(reader.events), added(1, 21));
  t.deepEqual([sink.writes, counts.fellBack], [1, 1]);
});

test('a bookmark is written after the events before it, even if nothing is published at the time', async (t) => {
  const { store, clock, reader } = await aLiveWatch({ periodMsMax: 10 });

  store.commit(...puts(1, 2));
  clock.advance(60_000);
  clock.advance(10);
  await turns(5);
  clock.advance(60_000);
  await turns(5);

  t.deepEqual(received(reader.events), [...added(1, 2), 'BOOKMARK@2', 'BOOKMARK@2']);
});

test('a watch that ends first sends what is published, whether that is written or read', async (t) => {
  for (const isFull of [false, true]) {
    const { store, sink, reader, end } = await aLiveWatch();
    store.commit(...puts(1, 1));
    await turns(5);
    sink.isFull = isFull;

    store.commit(...puts(2, 3));
    end();

    t.deepEqual(await reader.drain(), added(1, 3));
    t.true(reader.ended);
  }
});

test('writing to many slow sinks leaves turns of the event loop to others, and the next hand-out waits for the last sink', async (t) => {
  const { hub, store, clock } = aHub({ periodFactor: 4, periodMsMax: 10 });
  const sinks = Array.from({ length: 12 }, () => new ASink());
  for (const sink of sinks) {
    sink.write = () => clock.pass(2);
    await new Reader(hub.open(aWatch({ sink }))).drain();
  }
  const written = (): number => sinks.reduce((sum, { writes }) => sum + writes, 0);

  store.commit(...puts(1, 1));
  const inTurns: number[] = [];
  while (written() < 12) {
    inTurns.push(written());
    await turns(1);
  }
  store.commit(...puts(2, 2));
  await turns(10);

  t.deepEqual(inTurns, [0, 3, 6, 9]);
  t.is(written(), 24);
});
