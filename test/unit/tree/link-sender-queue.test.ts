import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import type { Credit, Frame } from '../../../src/frames/frame.js';
import { LinkSenderQueue, outgoingChange, outgoingObject } from '../../../src/tree/links/link-sender-queue.js';
import { SliceSync } from '../../../src/tree/syncs/slice-sync.js';
import { ResyncPace } from '../../../src/sender/resync-pace.js';
import type { Outgoing } from '../../../src/sender/source.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { anObject } from '../../support/link-rules.js';
import { aSlice } from '../../support/pushes.js';

const clock = new ManualClock();
const limits = { frameBytesMax: 100_000, frameMutationsMax: 4, bodyBytesMax: 2_000 };

function aSync(resource = 'apiexports'): SliceSync {
  return new SliceSync(aSlice({ resource }), {
    filterHash: 'e',
    phase: 'current',
    pace: new ResyncPace({ clock, random: () => 0 }),
    tally: { slices: 0, current: 0, refused: 0 },
  });
}

function aQueue(credit: Credit) {
  const tooLarge: Outgoing[] = [];
  const queue = new LinkSenderQueue(
    { clock, tooLarge: (_, outgoing) => void tooLarge.push(outgoing) },
    { credit, limits },
    { batchMutationsMax: 3, batchBytesMax: 50_000 },
  );
  return { queue, tooLarge };
}

function aPut(name: string, padding = 0): Outgoing {
  return outgoingObject(anObject({ name }, { rest: { spec: 'x'.repeat(padding) } }));
}

function aDelete(name: string): Outgoing {
  return outgoingChange({ key: anObject({ name }).key }, undefined);
}

function takeAll(queue: LinkSenderQueue): readonly Frame[] {
  const frames: Frame[] = [];
  for (let frame = queue.take(); frame !== undefined; frame = queue.take()) frames.push(frame);
  return frames;
}

/** The contents of the frames, in order, without the borders between frames. */
function textsOf(frames: readonly Frame[]): readonly string[] {
  return frames.flatMap((frame): readonly string[] => {
    const progress = 'position' in frame && frame.position !== undefined ? ['progress'] : [];
    if (frame.kind === 'put') return [...frame.objects.map(({ name }) => `put ${name}`), ...progress];
    if (frame.kind === 'delete') return [...frame.keys.map(({ name }) => `delete ${name}`), ...progress];
    return [frame.kind === 'end' ? `end of ${frame.count}` : frame.kind];
  });
}

test('objects leave the queue in the order of arrival, and numbers have no gap', (t) => {
  const { queue } = aQueue({ mutations: 100, bytes: 1_000_000 });
  const sync = aSync();

  queue.objects(sync, [aPut('a'), aPut('b'), aDelete('c'), aPut('d')]);
  queue.frame(sync, (sequence, count) => ({ kind: 'end', sequence, slice: sync.slice, revision: '', count, filterHash: 'e' }));
  queue.position('7');
  const frames = takeAll(queue);

  t.deepEqual(textsOf(frames), ['put a', 'put b', 'delete c', 'put d', 'end of 3', 'progress']);
  t.deepEqual(
    frames.map((frame) => ('sequence' in frame ? frame.sequence : 0)),
    [1, 3, 4, 5, 6],
  );
  t.true(queue.isEmpty);
});

test('a position goes with the last object before it, or alone after another frame or at the start', (t) => {
  const { queue } = aQueue({ mutations: 100, bytes: 1_000_000 });
  const sync = aSync();
  queue.position('6');
  queue.objects(sync, [aPut('a'), aPut('b'), aPut('c'), aPut('d')]);
  queue.position('7');
  queue.objects(sync, [aDelete('d')]);
  queue.position('8');
  queue.position('9');

  const frames = takeAll(queue);

  t.deepEqual(
    frames.map((frame) => [frame.kind, 'position' in frame ? frame.position : undefined]),
    [
      ['progress', '6'],
      ['put', undefined],
      ['put', '7'],
      ['delete', '8'],
      ['progress', '9'],
    ],
  );
  t.deepEqual(
    frames.map((frame) => ('sequence' in frame ? frame.sequence : 0)),
    [1, 2, 5, 6, 7],
  );
});

test('a position waits for credit after the objects before it, also after one that is too large', (t) => {
  const { queue, tooLarge } = aQueue({ mutations: 1, bytes: 1_000_000 });
  const sync = aSync();
  queue.objects(sync, [aPut('a'), aPut('b')]);
  queue.position('7');
  queue.objects(sync, [aPut('large', 3_000)]);
  queue.position('8');

  const frames: Frame[] = [];
  for (let sequence = 1; sequence <= 3; sequence++) {
    frames.push(...takeAll(queue));
    queue.acknowledge(sequence, { mutations: 1, bytes: 1_000_000 });
  }

  t.deepEqual(textsOf(frames), ['put a', 'put b', 'progress', 'put large', 'progress']);
  t.deepEqual(
    frames.map((frame) => ('position' in frame ? frame.position : undefined)),
    [undefined, '7', '8'],
  );
  t.is(tooLarge.length, 1);
});

test('a frame is built when it is sent, and a begin then starts the count of its slice', (t) => {
  const { queue } = aQueue({ mutations: 1, bytes: 1_000_000 });
  const sync = aSync();
  sync.objects = 3;
  let built = 0;
  queue.position('7');
  queue.frame(sync, (sequence) => {
    built += 1;
    return { kind: 'begin', sequence, slice: sync.slice, revision: '' };
  });

  t.deepEqual(textsOf(takeAll(queue)), ['progress']);
  t.deepEqual([built, sync.objects], [0, 3]);
  queue.acknowledge(1, { mutations: 1, bytes: 1_000_000 });
  t.deepEqual(textsOf(takeAll(queue)), ['begin']);
  t.deepEqual([built, sync.objects], [1, 0]);
});

test('an acknowledgement of an unsent number is rejected, and the lag is the wait of the oldest unacknowledged object', (t) => {
  const { queue } = aQueue({ mutations: 10, bytes: 1_000_000 });
  queue.objects(aSync(), [aPut('a'), aPut('b')]);
  takeAll(queue);

  clock.advance(500);

  t.is(queue.lagMs, 500);
  t.false(queue.acknowledge(3, { mutations: 10, bytes: 1_000 }));
  t.true(queue.acknowledge(2, { mutations: 10, bytes: 1_000 }));
  t.is(queue.lagMs, 0);
});

test('a refused number identifies the object that was sent under it, until it is acknowledged', (t) => {
  const { queue } = aQueue({ mutations: 10, bytes: 1_000_000 });
  const sync = aSync();
  queue.objects(sync, [aPut('a'), aPut('b')]);
  takeAll(queue);

  const refused = queue.refused(2);

  t.is(refused?.sync, sync);
  t.is(refused?.outgoing.kind === 'put' ? refused.outgoing.object.name : '', 'b');
  queue.acknowledge(2, { mutations: 10, bytes: 1_000_000 });
  t.is(queue.refused(2), undefined);
});

test('an object that is too large is reported, still counted and sent, and delays no other', (t) => {
  const { queue, tooLarge } = aQueue({ mutations: 10, bytes: 1_000_000 });
  const changed = aSync();
  const synced = aSync();
  synced.step('wanted');
  synced.step('begun');

  queue.objects(changed, [aPut('large', 5_000), aPut('a')]);
  queue.objects(synced, [aPut('large', 5_000), aPut('a')]);
  const frames = takeAll(queue);

  t.deepEqual(textsOf(frames), ['put large', 'put a', 'put large', 'put a']);
  t.is(tooLarge.length, 2);
  t.is(synced.objects, 2);
  t.is(changed.objects, 2);
});

const anyItem = fc.oneof(
  fc.record({
    kind: fc.constant('put' as const),
    name: fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom('a', 'b') }),
    padding: fc.nat({ max: 1_500 }),
  }),
  fc.record({ kind: fc.constant('delete' as const), name: fc.constantFrom('a', 'b') }),
  fc.constant({ kind: 'progress' as const }),
);

test('the credit is never exceeded, whatever is queued and however slowly it is acknowledged', (t) => {
  fc.assert(
    fc.property(
      fc.array(anyItem, { maxLength: 40 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 2_500, max: 8_000 }),
      fc.array(fc.nat({ max: 3 })),
      (items, mutations, bytes, pace) => {
        const { queue } = aQueue({ mutations, bytes });
        const sync = aSync();
        for (const item of items) {
          if (item.kind === 'progress') queue.position('7');
          else queue.objects(sync, [item.kind === 'put' ? aPut(item.name, item.padding) : aDelete(item.name)]);
        }
        const sent: Frame[] = [];
        const underWay: Readonly<{ mutations: number; bytes: number }>[] = [];
        let last = 0;
        for (let i = 0; !queue.isEmpty && i < 1_000; i++) {
          const frame = queue.take();
          if (frame !== undefined) {
            const size = sizeOf(frame);
            sent.push(frame);
            underWay.push(size);
            const sum = underWay.reduce((all, each) => ({ mutations: all.mutations + each.mutations, bytes: all.bytes + each.bytes }));
            t.true(sum.mutations <= mutations);
            t.true(sum.bytes <= bytes);
          }
          if (frame === undefined || (pace[i] ?? 0) === 0) {
            const done = underWay.splice(0, Math.max(1, pace[i] ?? 1));
            last += done.reduce((sum, each) => sum + each.mutations, 0);
            queue.acknowledge(last, { mutations, bytes });
          }
        }

        t.true(queue.isEmpty);
        t.deepEqual(
          textsOf(sent),
          items.map((item) => (item.kind === 'progress' ? 'progress' : `${item.kind} ${item.name}`)),
        );
      },
    ),
    { numRuns: rounds(100) },
  );
});

/** Counts as the receiver does. */
function sizeOf(frame: Frame): Readonly<{ mutations: number; bytes: number }> {
  if (frame.kind === 'put')
    return { mutations: frame.objects.length, bytes: frame.objects.reduce((sum, { body }) => sum + (body?.length ?? 0), 0) };
  return { mutations: frame.kind === 'delete' ? frame.keys.length : 1, bytes: 0 };
}
