/**
 * How a sender names its slices. The cache in memory checks that each is named before its begin,
 * and at most a thousand in a frame.
 */
import { test } from '../../support/test.js';
import { formatSlice } from '../../../src/domain/slice.js';
import { aSlice, exports, schemas, SenderRig } from '../../support/sender/a-sender.js';

const many = Array.from({ length: 2_500 }, (_, i) => aSlice(`r${i}`));

test('all slices are named in parts, and only the last part says that these are all', async (t) => {
  const rig = new SenderRig(t);
  for (const slice of many) rig.source(slice);
  rig.sender.complete(true);
  await rig.start();

  const types = rig.cache.received.flatMap((frame) => (frame.kind === 'types' ? [[frame.slices.length, frame.isAll]] : []));
  t.deepEqual(types, [
    [1_000, false],
    [1_000, false],
    [500, true],
  ]);
  t.deepEqual(rig.cache.named, many.map(formatSlice).toSorted());
  t.deepEqual(rig.cache.violations, []);
});

test('a slice that is added or withdrawn is named by itself', async (t) => {
  const rig = new SenderRig(t);
  for (const slice of many) rig.source(slice);
  rig.sender.complete(true);
  await rig.start();
  rig.cache.received.length = 0;

  rig.source(exports);
  rig.source(schemas);
  rig.sender.withdraw(schemas);
  rig.sender.withdraw(many[0]!);
  await rig.settle();

  const [types, ...more] = rig.cache.received.filter(({ kind }) => kind === 'types');
  t.deepEqual(types, { kind: 'types', slices: [exports], withdrawn: [schemas, many[0]!], isAll: true });
  t.deepEqual(more, []);
  t.deepEqual(rig.cache.named, [...many.slice(1), exports].map(formatSlice).toSorted());
});

test('an incomplete set of slices is named as such, and as complete with the next frame that says so', async (t) => {
  const rig = new SenderRig(t);
  rig.source(exports);
  await rig.start();
  t.is(rig.cache.named, undefined);

  rig.sender.complete(true);
  await rig.settle();
  t.deepEqual(rig.cache.named, [formatSlice(exports)]);

  rig.sender.complete(false);
  rig.source(schemas);
  rig.sender.withdraw(exports);
  await rig.settle();
  t.is(rig.cache.named, undefined);

  rig.sender.complete(true);
  await rig.settle();
  t.deepEqual(rig.cache.named, [formatSlice(schemas)]);
  t.deepEqual(rig.cache.violations, []);
});

test('on a new connection all slices are named again', async (t) => {
  const rig = new SenderRig(t);
  rig.source(exports);
  rig.sender.complete(true);
  await rig.start();
  rig.sender.withdraw(exports);
  rig.source(schemas);
  rig.cache.forget();
  rig.cache.named = undefined;

  await rig.advance(5_000);

  t.deepEqual(rig.cache.named, [formatSlice(schemas)]);
});
