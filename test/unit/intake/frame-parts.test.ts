import { test } from '../../support/test.js';
import type { Frame } from '../../../src/frames/frame.js';
import { partsOf } from '../../../src/intake/push/frame-parts.js';
import type { NumberedFrame } from '../../../src/intake/push/receiver-state.js';
import { apiExports, aContext, begin } from '../../support/intake/a-receiver.js';

function putOf(sizes: readonly number[]): Frame & { kind: 'put' } {
  const objects = sizes.map((size, i) => ({
    cluster: 'acme',
    namespace: '',
    name: `n${i}`,
    sourceVersion: '1',
    body: size < 0 ? undefined : new Uint8Array(size),
  }));
  return { kind: 'put', sequence: 10, slice: apiExports, version: 'v1alpha2', objects };
}

test('a large frame is split into parts with consecutive numbers that contain all of it in order', (t) => {
  const { limits } = aContext();
  const kilobytes = 1024;
  const frame = putOf([200 * kilobytes, 100 * kilobytes, 1, -1, 300 * kilobytes, 2]);

  const parts = partsOf(frame, limits);

  t.deepEqual(
    parts.map((part) => part.kind === 'put' && [part.sequence, part.objects.length]),
    [
      [10, 2],
      [12, 3],
      [15, 1],
    ],
  );
  t.deepEqual(
    parts.flatMap((part) => (part.kind === 'put' ? part.objects : [])),
    frame.objects,
  );
});

test('a frame of deletes is split by the total length of its keys, and by their number', (t) => {
  const { limits } = aContext({ limits: { frameBytesMax: 2 ** 24, frameMutationsMax: 512, bodyBytesMax: 2 ** 20 } });
  const keys = (count: number, characters: number) =>
    Array.from({ length: count }, (_, i) => ({ cluster: 'acme', namespace: '', name: `${i}`.padStart(characters, 'x') }));
  const partsIn = (each: Frame & { kind: 'delete' }) =>
    partsOf(each, limits).map((part) => part.kind === 'delete' && [part.sequence, part.keys.length, part.position]);
  const frame = { kind: 'delete', sequence: 10, slice: apiExports, position: '7' } as const;

  t.deepEqual(partsIn({ ...frame, keys: keys(4, 100_000) }), [
    [10, 3, undefined],
    [13, 1, '7'],
  ]);
  t.deepEqual(partsIn({ ...frame, keys: keys(65, 10) }), [
    [10, 32, undefined],
    [42, 32, undefined],
    [74, 1, '7'],
  ]);
  t.deepEqual(partsIn({ ...frame, keys: [] }), [[10, 0, '7']]);
});

test('the position of a frame is on its last part', (t) => {
  const { limits } = aContext();

  const parts = partsOf({ ...putOf([200_000, 100_000, 1, 300_000, 2]), position: '7' }, limits);

  t.deepEqual(
    parts.map((part) => part.kind === 'put' && part.position),
    [undefined, undefined, '7'],
  );
});

test('a frame is not split if it is small, ends with its first large object, holds too much or holds nothing', (t) => {
  const { limits } = aContext();
  const whole: readonly NumberedFrame[] = [putOf([1, 2]), putOf([1_000_000]), putOf(Array.from({ length: 11 }, () => 100_000)), begin(3)];

  for (const frame of whole) t.deepEqual(partsOf(frame, limits), [frame]);
});
