import test from 'ava';
import type { Outcome } from '../../src/domain/mutation.js';
import { MutationQueue, type QueueLimits, type Waiting } from '../../src/store/sqlite/mutation-queue.js';
import { aDelete, aPut } from '../support/objects.js';

const wide: QueueLimits = { mutationsMax: 1000, bytesMax: 1_000_000, batchMutationsMax: 1000, batchBytesMax: 1_000_000 };
const done: Outcome = { kind: 'refused', why: 'absent' };

function aQueue(limits: Partial<QueueLimits> = {}): { queue: MutationQueue; batches: (readonly Waiting[])[]; settle: () => void } {
  const batches: (readonly Waiting[])[] = [];
  const queue = new MutationQueue({ ...wide, ...limits }, { send: (batch) => batches.push(batch), soon: (task) => task() });
  const settle = (): void => {
    for (const { answer } of batches.at(-1) ?? []) answer(done);
    queue.settled();
    queue.pump();
  };
  return { queue, batches, settle };
}

const named = (name: string, bytes = 10) => aPut({ name }, 'absent', { spec: 'x'.repeat(bytes) });
const namesOf = (batch: readonly Waiting[] | undefined): string[] => (batch ?? []).map(({ mutation }) => mutation.key.name);

test('an idle committer gets a mutation at once; what comes meanwhile forms the next batch, in order', (t) => {
  const { queue, batches, settle } = aQueue();

  for (const name of ['a', 'b', 'c']) void queue.submit(named(name));
  t.deepEqual(batches.map(namesOf), [['a']]);
  t.is(queue.length, 2);
  t.false(queue.idle);
  settle();
  t.deepEqual(batches.map(namesOf), [['a'], ['b', 'c']]);
  settle();

  t.true(queue.idle);
  t.is(queue.bytes, 0);
});

test('what one turn of the event loop brings goes together, and a queue that is refused meanwhile sends nothing', (t) => {
  const batches: (readonly Waiting[])[] = [];
  const tasks: (() => void)[] = [];
  const queue = new MutationQueue(wide, { send: (batch) => batches.push(batch), soon: (task) => tasks.push(task) });

  for (const name of ['a', 'b', 'c']) void queue.submit(named(name));
  t.deepEqual(batches, []);
  tasks.splice(0).forEach((task) => task());
  t.deepEqual(batches.map(namesOf), [['a', 'b', 'c']]);
  t.is(tasks.length, 0);
  queue.settled();
  void queue.submit(named('d'));
  queue.refuseAll({ reason: 'ServiceUnavailable', message: 'gone' });
  tasks.splice(0).forEach((task) => task());

  t.is(batches.length, 1);
  t.true(queue.idle);
});

test('a batch ends at its count, at its bytes, but a mutation larger than a batch goes alone', (t) => {
  const counted = aQueue({ batchMutationsMax: 2 });
  for (const name of ['a', 'b', 'c', 'd']) void counted.queue.submit(named(name));
  counted.settle();
  counted.settle();
  t.deepEqual(counted.batches.map(namesOf), [['a'], ['b', 'c'], ['d']]);

  const weighed = aQueue({ batchBytesMax: 3000 });
  for (const [name, bytes] of [
    ['a', 1],
    ['b', 900],
    ['c', 900],
    ['d', 5000],
    ['e', 1],
  ] as const)
    void weighed.queue.submit(named(name, bytes));
  weighed.settle();
  weighed.settle();
  weighed.settle();
  t.deepEqual(weighed.batches.map(namesOf), [['a'], ['b', 'c'], ['d'], ['e']]);
});

test('beyond its count the queue answers 429 at once and keeps nothing of it', async (t) => {
  const { queue, batches, settle } = aQueue({ mutationsMax: 2 });
  for (const name of ['a', 'b', 'c']) void queue.submit(named(name));

  const refused = await queue.submit(aDelete({ name: 'd' }));

  t.like(refused, { kind: 'unavailable', refusal: { reason: 'TooManyRequests', details: { retryAfterSeconds: 1 } } });
  t.is(queue.length, 2);
  settle();
  t.deepEqual(namesOf(batches.at(-1)), ['b', 'c']);
  void queue.submit(named('e'));
  t.is(queue.length, 1, 'there is room again');
});

test('no more than its bytes wait, but one mutation may wait however large it is', async (t) => {
  const { queue } = aQueue({ bytesMax: 4000 });
  void queue.submit(named('in flight'.replace(' ', '-')));
  void queue.submit(named('a', 2000));

  t.is((await queue.submit(named('b', 2000))).kind, 'unavailable');
  void queue.submit(named('c', 100));
  t.is(queue.length, 2);
  t.true(queue.bytes <= 4000, `${queue.bytes} bytes wait`);

  const narrow = aQueue({ bytesMax: 1000 }).queue;
  void narrow.submit(named('first'));
  void narrow.submit(named('large', 3000));
  t.is(narrow.length, 1);
});

test('everything that waits can be refused at once, and what is in flight is not touched', async (t) => {
  const { queue, batches } = aQueue();
  void queue.submit(named('in-flight'));
  const waiting = [queue.submit(named('a')), queue.submit(named('b'))];

  queue.refuseAll({ reason: 'ServiceUnavailable', message: 'gone' });

  for (const outcome of await Promise.all(waiting)) t.like(outcome, { kind: 'unavailable', refusal: { message: 'gone' } });
  t.is(queue.length, 0);
  t.is(queue.bytes, 0);
  t.is(batches.length, 1);
});
