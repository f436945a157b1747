import test from 'ava';
import fc from 'fast-check';
import { writeFrame } from '../../src/frames/write-frame.js';
import { batchFrame, cutBatch, toldBytes, type BatchBounds, type Pending } from '../../src/sender/batch.js';
import type { Told } from '../../src/sender/source.js';
import { exports } from './a-sender.js';

const bounds: BatchBounds = {
  mutationsMax: 3,
  bytesMax: 1_000,
  limits: { frameBytesMax: 10_000, frameMutationsMax: 100, bodyBytesMax: 5_000 },
};

function put(name: string, bodyLength = 10, version = 'v1'): Told {
  return {
    kind: 'put',
    version,
    object: { cluster: 'acme', namespace: '', name, sourceVersion: '1', body: Buffer.alloc(bodyLength, 'x') },
  };
}

function remove(name: string): Told {
  return { kind: 'delete', key: { cluster: 'acme', namespace: '', name } };
}

const begin: Told = { kind: 'begin', revision: '7' };
const end: Told = { kind: 'end', revision: '7' };

function pending(...told: readonly Told[]): readonly Pending[] {
  return told.map((each) => ({ told: each, bytes: toldBytes(each), sinceMs: 0, statement: 1 }));
}

const table: readonly Readonly<{ law: string; told: readonly Told[]; bounds?: Partial<BatchBounds>; sent: number; tooLarge?: number }>[] = [
  { law: 'nothing pending makes nothing', told: [], sent: 0 },
  { law: 'a begin goes alone', told: [begin, put('a')], sent: 1 },
  { law: 'an end goes alone', told: [end, put('a')], sent: 1 },
  { law: 'objects go together up to our own number', told: [put('a'), put('b'), put('c'), put('d')], sent: 3 },
  {
    law: 'objects go together up to the number the cache takes',
    told: [put('a'), put('b'), put('c')],
    bounds: { limits: { ...bounds.limits, frameMutationsMax: 2 } },
    sent: 2,
  },
  { law: 'objects go together up to our own size', told: [put('a', 400), put('b', 400), put('c', 400)], sent: 2 },
  { law: 'an object beyond our own size goes alone', told: [put('a', 2_000), put('b')], sent: 1 },
  { law: 'objects of another version come in another frame', told: [put('a'), put('b', 10, 'v2')], sent: 1 },
  { law: 'keys do not go together with objects', told: [remove('a'), remove('b'), put('c')], sent: 2 },
  {
    law: 'an object with a larger body than the cache takes is left out',
    told: [put('a'), put('b', 5_001), put('c')],
    sent: 2,
    tooLarge: 1,
  },
  {
    law: 'an object that does not fit into a frame is left out',
    told: [put('a', 3_000), put('b')],
    bounds: { limits: { ...bounds.limits, frameBytesMax: 3_000 } },
    sent: 1,
    tooLarge: 1,
  },
  { law: 'objects that are too large delay nobody behind them', told: [put('a', 9_000), put('b', 9_000), end], sent: 1, tooLarge: 2 },
];

for (const { law, told, bounds: own, sent, tooLarge = 0 } of table) {
  test(law, (t) => {
    const batch = cutBatch(exports, pending(...told), { ...bounds, ...own });

    t.is(batch.sent.length, sent);
    t.is(batch.tooLarge.length, tooLarge);
    t.is(batch.taken, sent + tooLarge);
  });
}

test('a kept object is sent without its body', (t) => {
  const kept: Told = {
    kind: 'put',
    version: 'v1',
    object: { cluster: 'acme', namespace: '', name: 'a', sourceVersion: '1', body: undefined },
  };

  const frame = batchFrame(pending(kept), { slice: exports, sequence: 4, objects: 1 });

  t.deepEqual(frame, { kind: 'put', sequence: 4, slice: exports, version: 'v1', objects: [kept.object] });
});

test('an end tells how many objects were put', (t) => {
  const frame = batchFrame(pending(end), { slice: exports, sequence: 9, objects: 12 });

  t.deepEqual(frame, { kind: 'end', sequence: 9, slice: exports, revision: '7', count: 12, digest: '' });
});

const text = fc.string({ unit: 'binary', maxLength: 40 });
const key = fc.record({ cluster: text, namespace: text, name: text });
const anyTold: fc.Arbitrary<Told> = fc.oneof(
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

test('B1 B2 whatever is told comes out once and in order, in frames that the cache takes', (t) => {
  fc.assert(
    fc.property(
      fc.array(anyTold, { maxLength: 60 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 2_000 }),
      fc.integer({ min: 700, max: 3_000 }),
      (told, mutationsMax, bytesMax, frameBytesMax) => {
        const all = pending(...told);
        const out: Pending[] = [];
        for (let rest = all; rest.length > 0;) {
          const limits = { frameBytesMax, frameMutationsMax: 10, bodyBytesMax: 300 };
          const { taken, sent, bytes, tooLarge } = cutBatch(exports, rest, { mutationsMax, bytesMax, limits });
          if (taken === 0 || taken !== sent.length + tooLarge.length || sent.length > Math.min(mutationsMax, 10)) return false;
          if (bytes > bytesMax && sent.length > 1) return false;
          if (sent.length > 0 && writeFrame(batchFrame(sent, { slice: exports, sequence: 1e9, objects: 1e9 })).length > frameBytesMax)
            return false;
          out.push(...rest.slice(0, taken).filter((each) => sent.includes(each) || tooLarge.includes(each)));
          rest = rest.slice(taken);
        }
        return out.length === all.length && out.every((each, index) => each === all[index]);
      },
    ),
  );
  t.pass();
});
