import { test } from '../../support/test.js';
import fc from 'fast-check';
import { writeFrame } from '../../../src/frames/frame-codec.js';
import { batchFrame, cutBatch, outgoingBytes, outgoingKey, type BatchBounds, type Pending } from '../../../src/sender/batch.js';
import type { Outgoing } from '../../../src/sender/source.js';
import { anyCharacter } from '../../support/any-character.js';
import { exports } from '../../support/sender/a-sender.js';

const bounds: BatchBounds = {
  mutationsMax: 3,
  bytesMax: 1_000,
  limits: { frameBytesMax: 10_000, frameMutationsMax: 100, bodyBytesMax: 5_000 },
};

function put(name: string, bodyLength = 10, version = 'v1'): Outgoing {
  return {
    kind: 'put',
    version,
    object: { cluster: 'acme', namespace: '', name, sourceVersion: '1', body: Buffer.alloc(bodyLength, 'x') },
  };
}

function remove(name: string): Outgoing {
  return { kind: 'delete', key: { cluster: 'acme', namespace: '', name } };
}

const begin: Outgoing = { kind: 'begin', revision: '7' };
const end: Outgoing = { kind: 'end', revision: '7' };

function pending(...outgoing: readonly Outgoing[]): readonly Pending[] {
  return outgoing.map((each) => ({ outgoing: each, bytes: outgoingBytes(each), sinceMs: 0, sync: 1, order: 1, syncing: false }));
}

function syncing(...outgoing: readonly Outgoing[]): readonly Pending[] {
  return pending(...outgoing).map((each) => ({ ...each, syncing: true }));
}

const table: readonly Readonly<{
  law: string;
  outgoing: readonly Outgoing[];
  bounds?: Partial<BatchBounds>;
  sent: number;
  tooLarge?: number;
}>[] = [
  { law: 'nothing pending makes no frame', outgoing: [], sent: 0 },
  { law: 'a begin goes alone', outgoing: [begin, put('a')], sent: 1 },
  { law: 'an end goes alone', outgoing: [end, put('a')], sent: 1 },
  { law: 'objects go together up to the local number', outgoing: [put('a'), put('b'), put('c'), put('d')], sent: 3 },
  {
    law: 'objects go together up to the number the cache accepts',
    outgoing: [put('a'), put('b'), put('c')],
    bounds: { limits: { ...bounds.limits, frameMutationsMax: 2 } },
    sent: 2,
  },
  { law: 'objects go together up to the local size', outgoing: [put('a', 400), put('b', 400), put('c', 400)], sent: 2 },
  { law: 'an object beyond the local size goes alone', outgoing: [put('a', 2_000), put('b')], sent: 1 },
  { law: 'objects of another version come in another frame', outgoing: [put('a'), put('b', 10, 'v2')], sent: 1 },
  { law: 'keys do not go together with objects', outgoing: [remove('a'), remove('b'), put('c')], sent: 2 },
  {
    law: 'an object with a larger body than the cache accepts is left out',
    outgoing: [put('a'), put('b', 5_001), put('c')],
    sent: 2,
    tooLarge: 1,
  },
  {
    law: 'an object that does not fit into a frame is left out',
    outgoing: [put('a', 3_000), put('b')],
    bounds: { limits: { ...bounds.limits, frameBytesMax: 3_000 } },
    sent: 1,
    tooLarge: 1,
  },
  { law: 'objects that are too large delay nothing after them', outgoing: [put('a', 9_000), put('b', 9_000), end], sent: 1, tooLarge: 2 },
];

for (const { law, outgoing, bounds: own, sent, tooLarge = 0 } of table) {
  test(law, (t) => {
    const batch = cutBatch(exports, pending(...outgoing), { ...bounds, ...own });

    t.is(batch.sent.length, sent);
    t.is(batch.tooLarge.length, tooLarge);
    t.is(batch.taken, sent + tooLarge);
  });
}

test('in a sync an object that is too large is sent in its place without its body, and reported', (t) => {
  const outgoing = syncing(put('a'), put('large', 5_001), put('b'));

  const { taken, sent, bytes, tooLarge } = cutBatch(exports, outgoing, bounds);

  const bodies = sent.map((each) => each.outgoing.kind === 'put' && each.outgoing.object.body?.length);
  t.deepEqual(bodies, [10, undefined, 10]);
  t.is(taken, 3);
  t.deepEqual(tooLarge, [outgoing[1]]);
  t.is(
    bytes,
    sent.reduce((sum, each) => sum + outgoingBytes(each.outgoing), 0),
  );
});

test('an object that is too large and belongs to the next frame is reported only with that frame', (t) => {
  const outgoing = syncing(put('a'), put('b'), put('c'), put('large', 5_001));

  const first = cutBatch(exports, outgoing, bounds);
  const second = cutBatch(exports, outgoing.slice(first.taken), bounds);

  t.is(first.taken, 3);
  t.deepEqual(first.tooLarge, []);
  t.is(second.sent.length, 1);
  t.deepEqual(second.tooLarge, [outgoing[3]]);
});

test('a kept object is sent without its body', (t) => {
  const kept: Outgoing = {
    kind: 'put',
    version: 'v1',
    object: { cluster: 'acme', namespace: '', name: 'a', sourceVersion: '1', body: undefined },
  };

  const frame = batchFrame(pending(kept), { slice: exports, sequence: 4, objects: 1 });

  t.deepEqual(frame, { kind: 'put', sequence: 4, slice: exports, version: 'v1', objects: [kept.object] });
});

test('an end counts the objects that were put', (t) => {
  const frame = batchFrame(pending(end), { slice: exports, sequence: 9, objects: 12 });

  t.deepEqual(frame, { kind: 'end', sequence: 9, slice: exports, revision: '7', count: 12, filterHash: '' });
});

const text = fc.string({ unit: anyCharacter, maxLength: 40 });
const key = fc.record({ cluster: text, namespace: text, name: text });
const anyOutgoing: fc.Arbitrary<Outgoing> = fc.oneof(
  fc.record({ kind: fc.constant('begin' as const), revision: text }),
  fc.record({ kind: fc.constant('end' as const), revision: text }),
  fc.record({ kind: fc.constant('delete' as const), key }),
  fc.record({
    kind: fc.constant('put' as const),
    version: fc.constantFrom('v1', 'v2'),
    object: fc
      .record({ place: key, sourceVersion: text, body: fc.option(fc.uint8Array({ maxLength: 400 }), { nil: undefined }) })
      .map(({ place, sourceVersion, body }) => ({ ...place, sourceVersion, body })),
  }),
);

test('whatever a source gives is sent once and in order, in frames that the cache accepts', (t) => {
  fc.assert(
    fc.property(
      fc.array(anyOutgoing, { maxLength: 60 }),
      fc.boolean(),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 2_000 }),
      fc.integer({ min: 700, max: 3_000 }),
      (outgoing, isWithinSync, mutationsMax, bytesMax, frameBytesMax) => {
        const all = isWithinSync ? syncing(...outgoing) : pending(...outgoing);
        const out: Pending[] = [];
        for (let rest = all; rest.length > 0;) {
          const limits = { frameBytesMax, frameMutationsMax: 10, bodyBytesMax: 300 };
          const { taken, sent, bytes, tooLarge } = cutBatch(exports, rest, { mutationsMax, bytesMax, limits });
          if (taken === 0 || sent.length > Math.min(mutationsMax, 10)) return false;
          if (taken !== sent.length + (isWithinSync ? 0 : tooLarge.length)) return false;
          if (bytes > bytesMax && sent.length > 1) return false;
          if (sent.length > 0 && writeFrame(batchFrame(sent, { slice: exports, sequence: 1e9, objects: 1e9 })).length > frameBytesMax)
            return false;
          out.push(...(isWithinSync ? sent : rest.slice(0, taken).filter((each) => sent.includes(each) || tooLarge.includes(each))));
          rest = rest.slice(taken);
        }
        return out.length === all.length && out.every((each, index) => isSameKey(each, all[index]));
      },
    ),
  );
  t.pass();
});

function isSameKey({ outgoing }: Pending, other: Pending | undefined): boolean {
  return outgoing.kind === other?.outgoing.kind && JSON.stringify(namesOf(outgoing)) === JSON.stringify(namesOf(other.outgoing));
}

function namesOf(outgoing: Outgoing): readonly string[] {
  const { cluster, namespace, name } = outgoingKey(outgoing) ?? { cluster: '', namespace: '', name: '' };
  return [cluster, namespace, name];
}
