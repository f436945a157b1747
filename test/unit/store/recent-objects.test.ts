import { test } from '../../support/test.js';
import type { StoredObject } from '../../../src/domain/object.js';
import { RecentObjects } from '../../../src/store/sqlite/recent-objects.js';
import { aBody, aKey } from '../../support/objects.js';

function anObject(revision: number, bytes: Uint8Array, name = `n${revision}`): StoredObject {
  const key = aKey({ name });
  return { key, revision, resourceVersion: String(revision), body: { ...aBody(key), bytes } };
}

test('the cache counts each buffer that holds bodies once, until the last body in it is evicted', (t) => {
  const recent = new RecentObjects(25_000);
  const shared = new Uint8Array(10_000);

  recent.publish(anObject(1, shared.subarray(0, 10)));
  recent.publish(anObject(2, shared.subarray(10, 20)));
  recent.publish(anObject(3, new Uint8Array(10_000)));
  t.truthy(recent.get(1), 'one shared buffer and one of its own: 20,000');
  recent.publish(anObject(4, new Uint8Array(10_000)));

  t.is(recent.get(1), undefined);
  t.is(recent.get(2), undefined, 'the shared buffer is gone only with both');
  t.truthy(recent.get(3));
  t.truthy(recent.get(4));
});

test('a small body in a large buffer counts as that buffer', (t) => {
  const recent = new RecentObjects(100_000);

  for (let revision = 1; revision <= 20; revision += 1) recent.publish(anObject(revision, new Uint8Array(40_000).subarray(0, 1)));

  t.deepEqual(Array.from({ length: 20 }, (_, i) => recent.get(i + 1)).filter((object) => object !== undefined).length, 2);
});

test('reading many objects evicts nothing if each is read once', (t) => {
  const recent = new RecentObjects(25_000);

  recent.add(anObject(1, new Uint8Array(10_000)));
  recent.addIfFits(anObject(2, new Uint8Array(10_000)));
  recent.addIfFits(anObject(3, new Uint8Array(10_000)));

  t.deepEqual(
    [1, 2, 3].map((revision) => recent.get(revision)?.revision),
    [1, 2, undefined],
  );
});

test('the current object of a key is the one published last, as long as it is kept', (t) => {
  const recent = new RecentObjects(25_000);
  const key = aKey({ name: 'one' });

  recent.publish(anObject(1, new Uint8Array(10_000), 'one'));
  recent.publish(anObject(2, new Uint8Array(10_000), 'one'));
  t.is(recent.current(key)?.revision, 2);
  recent.publish(anObject(3, new Uint8Array(10_000), 'other'));
  t.is(recent.current(key)?.revision, 2, 'revision 1 left alone');
  recent.forget(key);
  t.is(recent.current(key), undefined);
});

test('objects with hardly any body count the memory of their own record', (t) => {
  const recent = new RecentObjects(1024 * 1024);
  const shared = new Uint8Array(1_000);

  for (let revision = 1; revision <= 10_000; revision += 1) recent.publish(anObject(revision, shared.subarray(0, 1)));

  const kept = Array.from({ length: 10_000 }, (_, i) => recent.get(i + 1)).filter((object) => object !== undefined).length;
  t.true(kept > 1_900 && kept < 2_100, `${kept} are kept`);
  recent.addIfFits(anObject(10_001, shared.subarray(0, 1)));
  recent.addIfFits(anObject(10_002, shared.subarray(0, 1)));
  recent.addIfFits(anObject(10_003, shared.subarray(0, 1)));
  t.is(recent.get(10_003), undefined, 'there is no room');
});
