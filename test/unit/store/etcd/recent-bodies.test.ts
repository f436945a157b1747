import { setImmediate } from 'node:timers/promises';
import { test } from '../../../support/test.js';
import type { StoredObject } from '../../../../src/domain/object.js';
import { RecentBodies } from '../../../../src/store/etcd/recent-bodies.js';
import { aBody, aKey } from '../../../support/objects.js';
import { collectGarbage } from '../../../support/collect-garbage.js';

function anObject(name: string, revision: number): StoredObject {
  const key = aKey({ name });
  return { key, revision, resourceVersion: String(revision), body: aBody(key) };
}

test('the objects added longest ago are evicted first, and one that is added again counts as new', (t) => {
  const one = anObject('n00', 1);
  const bodies = new RecentBodies(10 * (one.body.bytes.length + 1_000));
  for (let i = 0; i < 10; i += 1) bodies.add(anObject(`n0${i}`, i + 1));
  bodies.add(anObject('n00', 20));
  bodies.forget(aKey({ name: 'n05' }));
  const held = (): string[] =>
    Array.from({ length: 40 }, (_none, i) => i + 1).flatMap((revision) =>
      ['n00', 'n01', 'n02', 'n03', 'n06', 'n40', 'n41', 'n42', 'n43', 'n44'].filter(
        (name) => bodies.get(aKey({ name }), revision) !== undefined,
      ),
    );
  t.deepEqual(held(), ['n01', 'n02', 'n03', 'n06', 'n00']);
  for (let i = 0; i < 5; i += 1) bodies.add(anObject(`n4${i}`, i + 30));
  t.deepEqual(
    held().filter((name) => name > 'n03' || name === 'n00'),
    ['n06', 'n00', 'n40', 'n41', 'n42', 'n43', 'n44'],
  );
  for (let i = 0; i < 30; i += 1) bodies.add(anObject('n44', i + 50));
  t.true(bodies.get(aKey({ name: 'n00' }), 20) !== undefined, 'one that comes again and again makes no other leave');
  t.is(bodies.get(aKey({ name: 'n44' }), 34), undefined);
});

test('an older version does not replace a newer one', (t) => {
  const bodies = new RecentBodies(1_000_000);
  bodies.add(anObject('one', 5));
  bodies.add(anObject('one', 4));
  t.is(bodies.get(aKey(), 5)?.revision, 5);
  t.is(bodies.get(aKey(), 4), undefined);
});

test('an eviction costs the same however many happened before', (t) => {
  const bodies = new RecentBodies(50_000_000);
  const object = anObject('one', 1);
  const add = (from: number, to: number): number => {
    const startedMs = performance.now();
    for (let i = from; i < to; i += 1) bodies.add({ ...object, key: { ...object.key, name: `n${i}` } });
    return performance.now() - startedMs;
  };
  const filling = add(0, 50_000);
  const rounds = Array.from({ length: 4 }, (_none, i) => add(50_000 * (i + 1), 50_000 * (i + 2)));
  // Other work of the machine does not slow down all rounds.
  const fastest = Math.min(...rounds);
  t.true(fastest < 5 * filling, `${filling} ms to fill it, ${fastest} ms for as many more`);
});

test('replaced bodies are not held in memory, even if nothing is evicted for long', async (t) => {
  const bodies = new RecentBodies(1_000_000_000);
  const { key, body } = anObject('one', 1);
  const added: WeakRef<Uint8Array>[] = [];
  for (let revision = 1; revision <= 20_000; revision += 1) {
    const bytes = new Uint8Array(100);
    added.push(new WeakRef(bytes));
    bodies.add({ key: { ...key, name: `n${revision % 100}` }, revision, resourceVersion: String(revision), body: { ...body, bytes } });
  }
  // A weak reference that this turn has made or read keeps its body alive until the turn ends.
  await setImmediate();
  collectGarbage();
  t.is(added.filter((bytes) => bytes.deref() !== undefined).length, 100);
  t.true(bodies.bytes < 200_000);
});
