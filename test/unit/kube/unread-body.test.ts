/**
 * A body that gathers its unread bytes. Its reader must get every byte and the end, in whatever way
 * they arrive and it reads, even after its source has ended; bytes that it does not take count
 * against the memory.
 */
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { UnreadBody, type UnreadMemory } from '../../../src/kube/unread-body.js';
import { pieces } from '../../support/some-pieces.js';
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';

/**
 * Pushes the pieces as a socket does, `together` in each turn of the event loop, and then the end.
 */
function arriving(all: readonly Buffer[], together: number, memory?: UnreadMemory): Readable {
  const source = new Readable({ read: () => {} });
  const next = (at: number): void => {
    for (const each of all.slice(at, at + together)) source.push(each);
    if (at + together < all.length) setImmediate(next, at + together);
    else source.push(null);
  };
  setImmediate(next, 0);
  return new UnreadBody(source, { memory });
}

function someMemory(max = Infinity): { memory: UnreadMemory; used: () => number } {
  let used = 0;
  const tryReserve = (bytes: number): boolean => {
    if (used + bytes > max) return false;
    used += bytes;
    return true;
  };
  return { memory: { tryReserve, release: (bytes) => void (used -= bytes) }, used: () => used };
}

/** A body whose reader is paused, and pauses again at each piece that it takes. */
function aPausedBody({
  memory,
  read = () => {},
  highWaterMark,
}: { memory?: UnreadMemory; read?: () => void; highWaterMark?: number } = {}): {
  source: Readable;
  body: Readable;
  taken: () => number;
} {
  const source = new Readable({ read, ...(highWaterMark !== undefined && { highWaterMark }) });
  const body = new UnreadBody(source, { memory });
  let taken = 0;
  body.on('data', (chunk: Buffer) => {
    taken += chunk.length;
    body.pause();
  });
  body.pause();
  return { source, body, taken: () => taken };
}

/** Each reader returns all that it has read. */
const readers: Readonly<Record<string, (body: Readable) => Promise<string>>> = {
  'in a loop': (body) => text(body),
  'as it flows': (body) =>
    new Promise((resolve) => {
      let all = '';
      body.on('data', (chunk: Buffer) => (all += chunk.toString()));
      body.once('end', () => resolve(all));
    }),
  'with a pause at each piece': (body) =>
    new Promise((resolve) => {
      let all = '';
      body.on('data', (chunk: Buffer) => {
        all += chunk.toString();
        body.pause();
        setImmediate(() => setImmediate(() => body.resume()));
      });
      body.once('end', () => resolve(all));
    }),
};

for (const [how, read] of Object.entries(readers))
  test(`a body that is read ${how} has all its bytes and its end, in whatever pieces they arrive`, async (t) => {
    const law = fc.asyncProperty(pieces, fc.integer({ min: 1, max: 70 }), async (all, together) => {
      const wanted = Buffer.concat(all).toString();
      const counted = someMemory();
      const found = await read(arriving(all, together, counted.memory));
      return found === wanted && counted.used() === 0;
    });
    await t.notThrowsAsync(fc.assert(law, { numRuns: rounds(60) }));
  });

test('bytes that a paused reader does not take count until they are taken or given up, and without room the body ends', (t) => {
  const counted = someMemory(1_000);
  const { source, body, taken } = aPausedBody({ memory: counted.memory });
  for (let i = 0; i < 9; i += 1) source.push(Buffer.alloc(100, 'x'));
  t.is(counted.used(), 900);
  body.read();
  t.deepEqual([taken(), counted.used()], [0, 900]);
  source.push(Buffer.alloc(101, 'x'));
  t.true(body.destroyed);
  t.true(source.destroyed);
});

test('a reader that takes a piece and pauses again leaves the other pieces counted', async (t) => {
  const counted = someMemory();
  const { source, body } = aPausedBody({ memory: counted.memory });
  for (let i = 0; i < 9; i += 1) source.push(Buffer.alloc(10_000, 'x'));
  source.push(null);
  body.resume();
  await nextTurn();
  t.is(body.readableLength, 0);
  t.is(counted.used(), 80_000);
  body.destroy();
  await once(body, 'close');
  t.is(counted.used(), 0);
});

test('the sender must wait once as many bytes are unread as without gathering', (t) => {
  const source = new Readable({ read: () => {}, highWaterMark: 100 });
  const body = new UnreadBody(source);
  t.is(body.readableHighWaterMark, 100);
  const isMoreWanted = Array.from({ length: 120 }, () => source.push(Buffer.from('x')));
  t.is(isMoreWanted.indexOf(false), 99);
  t.true(isMoreWanted.slice(99).every((each) => !each));
});

test('the source is asked for no more bytes while as many are unread as without gathering', async (t) => {
  let asked = 0;
  const { source, body, taken } = aPausedBody({ read: () => void (asked += 1), highWaterMark: 100 });
  // The body begins to flow, and asks the source once by itself.
  await nextTurn();
  for (let i = 0; i < 10; i += 1) source.push(Buffer.alloc(2_000, 'x'));
  asked = 0;
  while (taken() < 18_000) {
    body.resume();
    await nextTurn();
  }
  t.is(asked, 0);
  for (let i = 0; i < 3; i += 1) {
    body.resume();
    await nextTurn();
  }
  t.is(taken(), 20_000);
  t.true(asked > 0);
});

test('a source that has ended closes at once; its reader still gets all of it, even if the source breaks later', async (t) => {
  const counted = someMemory();
  const { source, body, taken } = aPausedBody({ memory: counted.memory });
  for (let i = 0; i < 9; i += 1) source.push(Buffer.alloc(10_000, 'x'));
  source.push(null);
  await once(source, 'close');
  source.destroy(new Error('the connection has broken'));
  body.on('data', () => body.resume());
  body.resume();
  await once(body, 'end');
  t.deepEqual([taken(), counted.used()], [90_000, 0]);
});

test('a source that breaks destroys its body with the error; one that is cut off without an error ends it after its bytes', async (t) => {
  const broken = aPausedBody();
  broken.source.push(Buffer.from('x'));
  broken.source.destroy(new Error('the connection has broken'));
  await t.throwsAsync(text(broken.body), { message: 'the connection has broken' });

  const cutOff = new Readable({ read: () => {} });
  const body = new UnreadBody(cutOff);
  cutOff.push(Buffer.from('some'));
  cutOff.destroy();
  t.is(await text(body), 'some');
});

test('giving up a body gives up its source, and its signal ends it even when all bytes have arrived', async (t) => {
  const { source, body } = aPausedBody();
  body.destroy();
  t.true(source.destroyed);

  const counted = someMemory();
  const givenUp = new AbortController();
  const whole = new Readable({ read: () => {} });
  const unread = new UnreadBody(whole, { memory: counted.memory, signal: givenUp.signal }).pause();
  whole.push(Buffer.alloc(10_000, 'x'));
  whole.push(null);
  await once(whole, 'close');
  t.is(counted.used(), 10_000);
  givenUp.abort();
  await t.throwsAsync(once(unread, 'close'), { name: 'AbortError' });
  t.is(counted.used(), 0);
});
