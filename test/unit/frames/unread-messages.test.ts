import { test } from '../../support/test.js';
import { UnreadMessages } from '../../../src/frames/unread-messages.js';

const bytes = (length: number): Uint8Array => new Uint8Array(length);

test('messages are taken in order, and a reader can wait for the next one', async (t) => {
  const unread = new UnreadMessages({ messagesMax: 4, bytesMax: 100 });
  unread.put(bytes(1));
  unread.put(bytes(2));

  await unread.arrived();
  const taken = [unread.take(), unread.take()];
  t.true(unread.isEmpty);
  const waiting = unread.arrived();
  unread.put(bytes(3));
  await waiting;

  t.deepEqual(
    [...taken, unread.take()].map((message) => message?.length),
    [1, 2, 3],
  );
});

test('the queue is full by number or by bytes, until a message is taken', (t) => {
  const byNumber = new UnreadMessages({ messagesMax: 2, bytesMax: 100 });
  const byBytes = new UnreadMessages({ messagesMax: 100, bytesMax: 10 });

  byNumber.put(bytes(0));
  byBytes.put(bytes(9));
  t.deepEqual([byNumber.full, byBytes.full], [false, false]);
  byNumber.put(bytes(0));
  byBytes.put(bytes(1));
  t.deepEqual([byNumber.full, byBytes.full], [true, true]);
  byNumber.take();
  byBytes.take();

  t.deepEqual([byNumber.full, byBytes.full], [false, false]);
});

test('messages that arrived before the end are taken before it', async (t) => {
  const unread = new UnreadMessages({ messagesMax: 4, bytesMax: 100 });
  unread.put(bytes(1));
  unread.end(new Error('broken'));
  unread.end();
  unread.put(bytes(2));

  t.is(unread.take()?.length, 1);
  await unread.arrived();
  t.throws(() => unread.take(), { message: 'broken' });
});

test('a dropped message is never taken, and a waiting reader learns of the end', async (t) => {
  const unread = new UnreadMessages({ messagesMax: 4, bytesMax: 3 });
  const waiting = new UnreadMessages({ messagesMax: 4, bytesMax: 3 });
  unread.put(bytes(3));
  const last = waiting.arrived();

  unread.drop();
  waiting.drop();

  await last;
  t.deepEqual([unread.take(), waiting.take()], [undefined, undefined]);
  t.false(unread.full);
});
