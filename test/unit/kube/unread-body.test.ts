/** A body that gathers what is unread of it: its reader gets every byte and the end, however they come and it reads; and what it does not take counts. */
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { gatherUnread, type UnreadRoom } from '../../../src/kube/unread-body.js';
import { pieces } from '../../support/some-pieces.js';
import { test } from '../../support/test.js';

/** Pushes the pieces as a socket does, some in each turn of the event loop, and its end. */
function arriving(all: readonly Buffer[], together: number, room?: UnreadRoom): Readable {
  const body = new Readable({ read: () => {} });
  gatherUnread(body, room);
  const next = (at: number): void => {
    for (const each of all.slice(at, at + together)) body.push(each);
    if (at + together < all.length) setImmediate(next, at + together);
    else body.push(null);
  };
  setImmediate(next, 0);
  return body;
}

function aRoom(max = Infinity): { room: UnreadRoom; used: () => number } {
  let used = 0;
  const tryTake = (bytes: number): boolean => {
    if (used + bytes > max) return false;
    used += bytes;
    return true;
  };
  return { room: { tryTake, give: (bytes) => void (used -= bytes) }, used: () => used };
}

/** A body whose reader is paused, and pauses again at each piece that it takes. */
function aPausedBody({ room, read = () => {}, highWaterMark }: { room?: UnreadRoom; read?: () => void; highWaterMark?: number } = {}): {
  body: Readable;
  taken: () => number;
} {
  const body = new Readable({ read, ...(highWaterMark !== undefined && { highWaterMark }) });
  gatherUnread(body, room);
  let taken = 0;
  body.on('data', (chunk: Buffer) => {
    taken += chunk.length;
    body.pause();
  });
  body.pause();
  return { body, taken: () => taken };
}

/** Each returns all that it has read. */
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
  test(`a body that is read ${how} has all its bytes and its end, however they come`, async (t) => {
    const law = fc.asyncProperty(pieces, fc.integer({ min: 1, max: 70 }), async (all, together) => {
      const wanted = Buffer.concat(all).toString();
      const counted = aRoom();
      const found = await read(arriving(all, together, counted.room));
      return found === wanted && counted.used() === 0;
    });
    await t.notThrowsAsync(fc.assert(law, { numRuns: 60 }));
  });

test('what a paused reader does not take counts until it is taken or given up, and without room the body ends', (t) => {
  const counted = aRoom(1_000);
  const { body, taken } = aPausedBody({ room: counted.room });
  for (let i = 0; i < 9; i += 1) body.push(Buffer.alloc(100, 'x'));
  t.is(counted.used(), 900);
  body.read();
  t.deepEqual([taken(), counted.used()], [0, 900]);
  body.push(Buffer.alloc(101, 'x'));
  t.true(body.destroyed);
});

test('a reader that takes a piece and pauses again leaves the others where they count', async (t) => {
  const counted = aRoom();
  const { body } = aPausedBody({ room: counted.room });
  for (let i = 0; i < 9; i += 1) body.push(Buffer.alloc(10_000, 'x'));
  body.push(null);
  body.resume();
  await nextTurn();
  t.is(body.readableLength, 0);
  t.is(counted.used(), 80_000);
  body.destroy();
  await once(body, 'close');
  t.is(counted.used(), 0);
});

test('who sends is told to wait once as much is unread as without gathering', (t) => {
  const body = new Readable({ read: () => {}, highWaterMark: 100 });
  gatherUnread(body);
  const isMoreWanted = Array.from({ length: 120 }, () => body.push(Buffer.from('x')));
  t.is(isMoreWanted.indexOf(false), 99);
  t.true(isMoreWanted.slice(99).every((each) => !each));
});

test('nobody who sends is asked for more while as much is unread as without gathering', async (t) => {
  let asked = 0;
  const { body, taken } = aPausedBody({ read: () => void (asked += 1), highWaterMark: 100 });
  for (let i = 0; i < 10; i += 1) body.push(Buffer.alloc(2_000, 'x'));
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
