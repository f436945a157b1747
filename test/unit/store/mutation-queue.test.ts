import type { PushDecision } from '../../../src/store/batch-item.js';
import { test } from '../../support/test.js';
import type { Outcome } from '../../../src/domain/mutation.js';
import { itemsOf, type ObjectsOf, type Part } from '../../../src/store/lane.js';
import { MutationQueue, type QueueLimits } from '../../../src/store/mutation-queue.js';
import type { Push, PushOutcome } from '../../../src/domain/push.js';
import { aDelete, aPut } from '../../support/objects.js';
import { aClaim, anEnd, anUpsert } from '../../support/pushes.js';

const wide: QueueLimits = {
  mutationsMax: 1000,
  bytesMax: 1_000_000,
  pushMutationsMax: 1000,
  pushBytesMax: 1_000_000,
  batchMutationsMax: 1000,
  sharedDivisor: 1,
  batchBytesMax: 1_000_000,
};
const done: Outcome = { kind: 'refused', why: 'absent' };
const unchanged: PushOutcome = { kind: 'unchanged' };

function aQueue(
  limits: Partial<QueueLimits> = {},
  objectsOf: ObjectsOf = () => Infinity,
): { queue: MutationQueue; batches: (readonly Part[])[]; settle: () => void } {
  const batches: (readonly Part[])[] = [];
  const queue = new MutationQueue({ ...wide, ...limits }, { send: (batch) => batches.push(batch), soon: (task) => task(), objectsOf });
  const settle = (): void => {
    for (const part of batches.at(-1) ?? []) {
      if (part.kind === 'mutation') part.answer(done);
      else
        queue.answerPushes(
          part,
          part.items.map(() => unchanged),
        );
    }
    queue.batchDecided();
    queue.pump();
  };
  return { queue, batches, settle };
}

const named = (name: string, bytes = 10) => aPut({ name }, 'absent', { spec: 'x'.repeat(bytes) });
const namesOf = (batch: readonly Part[] | undefined): string[] =>
  (batch ?? []).flatMap(itemsOf).map((asked) => ('key' in asked ? asked.key.name : asked.kind));

test('an idle committer gets a mutation at once, and later ones form the next batch, in order', (t) => {
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

test('mutations of one turn of the event loop go together, and a queue that is refused meanwhile sends none of them', (t) => {
  const batches: (readonly Part[])[] = [];
  const tasks: (() => void)[] = [];
  const queue = new MutationQueue(wide, {
    send: (batch) => batches.push(batch),
    soon: (task) => tasks.push(task),
    objectsOf: () => Infinity,
  });

  for (const name of ['a', 'b', 'c']) void queue.submit(named(name));
  t.deepEqual(batches, []);
  tasks.splice(0).forEach((task) => task());
  t.deepEqual(batches.map(namesOf), [['a', 'b', 'c']]);
  t.is(tasks.length, 0);
  queue.batchDecided();
  void queue.submit(named('d'));
  queue.refuseAll({ reason: 'ServiceUnavailable', message: 'gone' });
  tasks.splice(0).forEach((task) => task());

  t.is(batches.length, 1);
  t.true(queue.idle);
});

test('a batch ends at its count or its bytes, but a mutation larger than a batch goes alone', (t) => {
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

test('beyond its count the queue answers 429 at once and does not keep the mutation', async (t) => {
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

test('the queue holds no more than its bytes, except one mutation of any size', async (t) => {
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

test('all waiting mutations can be refused at once, and mutations in flight are not affected', async (t) => {
  const { queue, batches } = aQueue();
  void queue.submit(named('in-flight'));
  const waiting = [queue.submit(named('a')), queue.submit(named('b'))];

  queue.refuseAll({ reason: 'ServiceUnavailable', message: 'gone' });

  for (const outcome of await Promise.all(waiting)) t.like(outcome, { kind: 'unavailable', refusal: { message: 'gone' } });
  t.is(queue.length, 0);
  t.is(queue.bytes, 0);
  t.is(batches.length, 1);
});

const pushes = (name: string, count: number, bytes = 10): readonly Push[] =>
  Array.from({ length: count }, (_, i) => anUpsert({ name: `${name}${i}` }, { spec: 'x'.repeat(bytes) }));
/** How many pushes of each lane a batch has, by the first letter of their names. */
const sharesOf = (batch: readonly Part[] | undefined): string => {
  const counts = new Map<string, number>();
  for (const name of namesOf(batch)) counts.set(name.charAt(0), (counts.get(name.charAt(0)) ?? 0) + 1);
  return [...counts].map(([letter, count]) => `${letter}${count}`).join(' ');
};

test('lanes share a batch evenly, and other lanes get what one leaves', (t) => {
  const { queue, batches, settle } = aQueue({ batchMutationsMax: 12 });
  void queue.submit(named('first'));
  const [a, b, c] = [queue.lane(), queue.lane(), queue.lane()];
  void a.push(pushes('a', 100));
  void b.push(pushes('b', 2));
  void c.push(pushes('c', 100));
  void queue.submit(named('h'));

  settle();
  settle();

  t.deepEqual(batches.map(sharesOf), ['f1', 'h1 a5 b2 c4', 'a6 c6']);
});

test('while lanes share batches, and for 64 batches afterwards, a batch is a fraction as large', (t) => {
  const { queue, batches, settle } = aQueue({ batchMutationsMax: 8, sharedDivisor: 4 });
  const [a, b] = [queue.lane(), queue.lane()];
  void a.push(pushes('a', 200));
  void b.push(pushes('b', 2));

  for (let i = 0; i < 70; i += 1) settle();

  t.deepEqual(batches.slice(0, 4).map(sharesOf), ['a8', 'a1 b1', 'b1 a1', 'a2']);
  t.deepEqual(batches.slice(64, 68).map(sharesOf), ['a2', 'a2', 'a8', 'a8']);
});

test('if there are more lanes than a batch can hold they take turns, however much each has waiting', (t) => {
  const { queue, batches, settle } = aQueue({ batchMutationsMax: 4 });
  const flood = queue.lane();
  void flood.push(pushes('f', 1000));
  const lanes = [...'abcdeghi'].map((letter) => ({ letter, lane: queue.lane() }));
  for (const { letter, lane } of lanes) void lane.push(pushes(letter, 100));

  for (let i = 0; i < 4; i++) settle();

  const served = batches
    .slice(1, 4)
    .flatMap(namesOf)
    .map((name) => name.charAt(0));
  for (const { letter } of lanes) t.true(served.includes(letter), `${letter} in ${served.join('')}`);
});

test('a lane whose next push does not fit into the rest of a batch is first in the next one', (t) => {
  const { queue, batches, settle } = aQueue({ batchBytesMax: 4_000 });
  const [small, large] = [queue.lane(), queue.lane()];
  void small.push(pushes('first', 1));
  void small.push(pushes('s', 20));
  void large.push(pushes('l', 2, 9_000));

  for (let i = 0; i < 4; i++) settle();

  t.deepEqual(
    batches.slice(1).map((batch) => sharesOf(batch).replace(/\d+$/, '')),
    ['s', 'l', 's', 'l'],
  );
});

test('a push larger than a batch is spread over several and answered once, in order, before later ones', async (t) => {
  const { queue, batches, settle } = aQueue({ batchMutationsMax: 4 });
  const lane = queue.lane();
  const answered: number[] = [];
  const all = [10, 1, 0].map((count) => lane.push(pushes('a', count)).then((outcomes) => answered.push(outcomes.length)));

  for (let i = 0; i < 3; i++) settle();
  await Promise.all(all);

  t.deepEqual(
    batches.map((batch) => namesOf(batch).length),
    [4, 4, 3],
  );
  t.deepEqual(
    answered.toSorted((a, b) => b - a),
    [10, 1, 0],
  );
  t.true(answered.indexOf(10) < answered.indexOf(1));
});

test('a sweep is the last push of its lane in a batch, is resumed until it is complete, and its removals add up', async (t) => {
  const { queue, batches } = aQueue();
  const lane = queue.lane();
  const answered = lane.push([...pushes('a', 2), anEnd(), ...pushes('b', 1)]);
  const decide = (...outcomes: Parameters<MutationQueue['answerPushes']>[1]): void => {
    const [part] = batches.at(-1) ?? [];
    if (part?.kind !== 'pushes') throw new Error('pushes were sent');
    queue.answerPushes(part, outcomes);
    queue.batchDecided();
    queue.pump();
  };

  decide(unchanged, unchanged, { kind: 'partial', removed: 3, walk: 7 });
  decide({ kind: 'partial', removed: 4, walk: 7 });
  decide({ kind: 'swept', removed: 5 });
  decide(unchanged);

  t.deepEqual(batches.map(namesOf), [['a0', 'a1', 'end'], ['resume'], ['resume'], ['b0']]);
  t.deepEqual(await answered, [unchanged, unchanged, { kind: 'swept', removed: 12 }, unchanged]);
  t.true(queue.idle);
  t.is(queue.bytes, 0);
});

test('ends of small slices share a batch, counted by what they may delete; an end of a large slice is the last in its batch', (t) => {
  const held = new Map([
    ['few', 10],
    ['more', 64],
    ['many', 65],
  ]);
  const { queue, batches, settle } = aQueue({ batchMutationsMax: 75 }, ({ shard }) => held.get(shard) ?? 0);
  const ends = ['none', 'few', 'more', 'none', 'many', 'none'].map((shard) => anEnd({ shard }));
  void queue.lane().push([...ends, anUpsert({ name: 'behind' })]);

  while (!queue.idle) settle();

  t.deepEqual(batches.map(namesOf), [['end', 'end', 'end'], ['end'], ['end'], ['end', 'behind']]);
});

test('a closed queue decides what waits, but resumes no sweep', async (t) => {
  const { queue, batches } = aQueue();
  const answered = queue.lane().push([anEnd(), ...pushes('a', 1)]);
  const refusal = { reason: 'ServiceUnavailable', message: 'closing' } as const;

  queue.close(refusal);
  const [part] = batches[0] ?? [];
  if (part?.kind !== 'pushes') throw new Error('pushes were sent');
  queue.answerPushes(part, [{ kind: 'partial', removed: 3, walk: 7 }]);
  queue.batchDecided();
  queue.pump();
  const [behind] = batches[1] ?? [];
  if (behind?.kind !== 'pushes') throw new Error('pushes were sent');
  queue.answerPushes(behind, [unchanged]);

  t.deepEqual(await answered, [{ kind: 'unavailable', refusal }, unchanged]);
  t.deepEqual(await queue.lane().push(pushes('b', 1)), [{ kind: 'unavailable', refusal }]);
  t.deepEqual(await queue.submit(named('c')), { kind: 'unavailable', refusal });
  await t.notThrowsAsync(queue.lane().drained());
});

test('a queue that ends sweeps decides everything else as usual', async (t) => {
  const { queue, batches, settle } = aQueue();
  const lane = queue.lane();
  const answered = lane.push([anEnd(), ...pushes('a', 1)]);
  const refusal = { reason: 'ServiceUnavailable', message: 'closing' } as const;

  queue.endSweeps(refusal);
  const [part] = batches[0] ?? [];
  if (part?.kind !== 'pushes') throw new Error('pushes were sent');
  queue.answerPushes(part, [{ kind: 'partial', removed: 3, walk: 7 }]);
  queue.batchDecided();
  queue.pump();
  settle();
  t.deepEqual(await answered, [{ kind: 'unavailable', refusal }, unchanged]);
  const late = lane.push(pushes('b', 1));
  settle();

  t.deepEqual(await late, [unchanged]);
  t.true(queue.idle);
});

test('a pusher that acquires a shard is decided ahead of an end under way, once, and answered in its place', async (t) => {
  const { queue, batches } = aQueue();
  const lane = queue.lane();
  const answered: number[] = [];
  const given = [
    [anEnd()],
    pushes('a', 1),
    [aClaim('birch')],
    [aClaim('amber'), ...pushes('b', 1)],
    [aClaim('amber', 2_000)],
    [aClaim('amber', 3_000)],
  ];
  const all = given.map((each, i) => lane.push(each).then(() => answered.push(i)));
  const decide = (ofEnd: PushDecision): void => {
    for (const part of batches.at(-1) ?? []) {
      if (part.kind !== 'pushes') throw new Error('pushes were sent');
      queue.answerPushes(
        part,
        part.items.map(({ kind }) => (kind === 'end' || kind === 'resume' ? ofEnd : unchanged)),
      );
    }
    queue.batchDecided();
    queue.pump();
  };

  decide({ kind: 'partial', removed: 3, walk: 7 });
  decide({ kind: 'partial', removed: 3, walk: 7 });
  decide({ kind: 'unbegun' });
  decide(unchanged);
  await Promise.all(all);

  const texts = batches.map((batch) =>
    batch.flatMap(itemsOf).map((each) => (each.kind === 'acquire' ? `acquire ${each.process}` : each.kind)),
  );
  t.deepEqual(texts, [
    ['end'],
    ['acquire process-2000', 'acquire process-3000', 'resume'],
    ['resume'],
    ['upsert', 'acquire process-1000', 'acquire process-1000', 'upsert', 'acquire process-2000', 'acquire process-3000'],
  ]);
  t.deepEqual(answered, [0, 1, 2, 3, 4, 5]);
  t.true(queue.idle);
  t.is(queue.bytes, 0);
});

test('lanes are let in one after the other, while fewer bytes wait than one lane and all lanes may hold', async (t) => {
  const { queue, settle } = aQueue({ batchMutationsMax: 4, pushMutationsMax: 6 });
  const [a, b, c] = [queue.lane(), queue.lane(), queue.lane()];
  const entered: string[] = [];
  const enter = async (name: string, lane: typeof a, count: number): Promise<void> => {
    await lane.drained();
    entered.push(name);
    void lane.push(pushes(name, count));
  };
  const settleAll = () => new Promise((resolve) => setImmediate(resolve));
  await a.drained();
  void a.push(pushes('a', 1));

  await enter('a', a, 4);
  void enter('a again', a, 1);
  await enter('b', b, 2);
  void enter('c', c, 1);
  await settleAll();
  t.deepEqual(entered, ['a', 'b'], 'a lane is full, then all are');
  settle();
  await settleAll();

  t.deepEqual(entered, ['a', 'b', 'a again', 'c']);
});

test('no lane is let in before the previous one has pushed, even if a batch leaves meanwhile', async (t) => {
  const tasks: (() => void)[] = [];
  const queue = new MutationQueue(
    { ...wide, pushMutationsMax: 1 },
    { send: () => {}, soon: (task) => tasks.push(task), objectsOf: () => Infinity },
  );
  const run = (): void => tasks.splice(0).forEach((task) => task());
  const lanes = [queue.lane(), queue.lane(), queue.lane()];
  const entered: number[] = [];
  void lanes[0]?.push(pushes('a', 1));
  for (const [i, lane] of lanes.entries()) {
    void lane.drained().then(() => {
      entered.push(i);
      void lane.push(pushes('b', 1));
    });
  }

  run();
  queue.batchDecided();
  void queue.submit(named('request'));
  queue.pump();
  await Promise.resolve();
  run();
  await Promise.resolve();

  t.deepEqual(entered, [0]);
  t.is(queue.length, 1);
});

test('a lane that waits for room gets it when everything that waits is refused with a failed batch', async (t) => {
  const { queue, batches } = aQueue({ batchMutationsMax: 2 });
  const lane = queue.lane();
  const answers = [1, 2, 3, 4].map((each) => lane.push([anUpsert({ name: String(each) })]));
  const room = lane.drained();

  queue.refuseBatch(batches[0]!, { reason: 'ServiceUnavailable', message: 'the disk is full' });

  t.true((await Promise.all(answers)).flat().every(({ kind }) => kind === 'unavailable'));
  await t.notThrowsAsync(room);
});
