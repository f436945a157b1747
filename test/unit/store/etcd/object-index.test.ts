import { test } from '../../../support/test.js';
import fc from 'fast-check';
import { emptyDigest } from '../../../../src/domain/digest.js';
import type { Key } from '../../../../src/domain/key.js';
import { formatResource } from '../../../../src/domain/resource.js';
import { matches, type Scope } from '../../../../src/domain/scope.js';
import { compareKeys, ObjectIndex, type IndexedObject } from '../../../../src/store/etcd/object-index.js';
import { fastestMs } from '../../../support/fastest.js';
import { aKey, aScope } from '../../../support/objects.js';

const place = fc.record({
  resource: fc.constantFrom('apiexports', 'apiexportendpointslices'),
  identity: fc.constantFrom('', 'h1', 'h2'),
  shard: fc.constantFrom('a', 'a-b', 'b'),
  cluster: fc.constantFrom('root', 'root-1', 'system:admin'),
  namespace: fc.constantFrom('', 'default'),
  name: fc.constantFrom('one', 'two', 'two.x'),
});
const scope = fc.record({
  resource: fc.constantFrom('apiexports', 'apiexportendpointslices'),
  identity: fc.constantFrom('', 'h1', '*'),
  shard: fc.constantFrom('*', 'a', 'a-b'),
  cluster: fc.constantFrom('*', 'root'),
});

const anObject = (key: Key, revision: number): IndexedObject => ({ key, revision, bytes: 10, digest: emptyDigest, path: undefined });

const textOf = (key: Key): string => `${formatResource(key.resource)} ${key.shard}/${key.cluster}/${key.namespace}/${key.name}`;

test('whatever comes and goes, every scope shows its objects, in one order, from any key on', (t) => {
  const step = fc.record({ place, isDelete: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), scope, place, (steps, asked, after) => {
      const index = new ObjectIndex();
      const plain = new Map<string, Key>();
      for (const [i, { place: at, isDelete }] of steps.entries()) {
        const key = aKey(at);
        if (isDelete) {
          index.delete(key);
          plain.delete(textOf(key));
        } else {
          index.set(anObject(key, i));
          plain.set(textOf(key), key);
        }
      }
      const wanted: Scope = aScope(asked);
      const keys = [...plain.values()].filter((key) => matches(wanted, key)).toSorted(compareKeys);
      const walked = (from?: Key): readonly string[] => [...index.walk(wanted, from)].map(({ key }) => textOf(key));

      t.is(index.size, plain.size);
      t.deepEqual(walked(), keys.map(textOf));
      t.deepEqual(walked(aKey(after)), keys.filter((key) => compareKeys(key, aKey(after)) > 0).map(textOf));
      t.deepEqual(
        index.resources.map(formatResource),
        [...new Set([...plain.values()].map(({ resource }) => formatResource(resource)))].toSorted(),
      );
      for (const key of keys) {
        const { cluster, namespace, name } = key;
        const found = index.at({ ...wanted, cluster, namespace, name }).map((each) => textOf(each.key));
        t.deepEqual(
          found.toSorted(),
          keys
            .filter((k) => k.cluster === cluster && k.namespace === namespace && k.name === name)
            .map(textOf)
            .toSorted(),
        );
      }
    }),
  );
});

test('an object that changes keeps its place and has its new revision', (t) => {
  const index = new ObjectIndex();
  index.set(anObject(aKey(), 1));
  index.set(anObject(aKey(), 2));

  t.is(index.size, 1);
  t.is(index.get(aKey())?.revision, 2);
  index.delete(aKey());
  index.delete(aKey());
  t.is(index.size, 0);
  t.deepEqual(index.resources, []);
});

test('a walk of one shard looks at no other', (t) => {
  const index = new ObjectIndex();
  for (let i = 0; i < 50_000; i += 1) index.set(anObject(aKey({ shard: i % 2 === 0 ? 'a' : 'c', name: `n${i}` }), i));
  index.set(anObject(aKey({ shard: 'b', name: 'only' }), 1));

  const names = (): readonly string[] => [...index.walk(aScope({ shard: 'b' }))].map(({ key }) => key.name);
  t.deepEqual(names(), ['only']);
  const tookMs = fastestMs(names, 5);
  t.true(tookMs < 5, `${tookMs.toFixed(2)} ms`);
});
