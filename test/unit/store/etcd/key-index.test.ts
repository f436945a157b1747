import { test } from '../../../support/test.js';
import fc from 'fast-check';
import type { Key } from '../../../../src/domain/key.js';
import { formatResource } from '../../../../src/domain/resource.js';
import { matches, type Scope } from '../../../../src/domain/scope.js';
import { KeyIndex } from '../../../../src/store/etcd/key-index.js';
import { fastestMs } from '../../../support/fastest.js';
import { aKey, aScope } from '../../../support/objects.js';

const place = fc.record({
  resource: fc.constantFrom('apiexports', 'apiexportendpointslices'),
  identity: fc.constantFrom('', 'h1', 'h2'),
  shard: fc.constantFrom('a', 'a-b', 'b'),
  cluster: fc.constantFrom('root', 'root-1', 'system:admin'),
  namespace: fc.constantFrom('', 'default'),
  // The last two sort differently in UTF-16 than in UTF-8.
  name: fc.constantFrom('one', 'two', 'two.x', '！', '😀'),
});
const scope = fc.record({
  resource: fc.constantFrom('apiexports', 'apiexportendpointslices'),
  identity: fc.constantFrom('', 'h1', '*'),
  shard: fc.constantFrom('*', 'a', 'a-b'),
  cluster: fc.constantFrom('*', 'root'),
});

type Value = Readonly<{ key: Key; revision: number }>;

const aValue = (key: Key, revision: number): Value => ({ key, revision });

const textOf = (key: Key): string => `${formatResource(key.resource)} ${key.shard}/${key.cluster}/${key.namespace}/${key.name}`;

/**
 * In the byte order of etcd's keys: type by type. A key without a namespace has no segment for it.
 */
function inOrder(one: Key, other: Key): number {
  const placeOf = ({ shard, cluster, namespace, name }: Key): Buffer =>
    Buffer.from([shard, cluster, ...(namespace === '' ? [] : [namespace]), name].join('/'));
  const [a, b] = [formatResource(one.resource), formatResource(other.resource)];
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) || Buffer.compare(placeOf(one), placeOf(other));
}

type Step = Readonly<{ place: Parameters<typeof aKey>[0]; isDelete: boolean }>;

/** Builds the same keys in an index and in a plain map. */
function grown(steps: readonly Step[]): Readonly<{ index: KeyIndex<Value>; keys: readonly Key[] }> {
  const index = new KeyIndex<Value>();
  const plain = new Map<string, Key>();
  for (const [i, { place: at, isDelete }] of steps.entries()) {
    const key = aKey(at);
    if (isDelete) {
      index.delete(key);
      plain.delete(textOf(key));
    } else {
      index.set(aValue(key, i));
      plain.set(textOf(key), key);
    }
  }
  return { index, keys: [...plain.values()].toSorted(inOrder) };
}

const step = fc.record({ place, isDelete: fc.boolean() });

test('whatever is added and removed, every scope shows its objects, in one order, from any key on', (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), scope, place, (steps, asked, after) => {
      const { index, keys: all } = grown(steps);
      const wanted: Scope = aScope(asked);
      const keys = all.filter((key) => matches(wanted, key));
      const walked = (from?: Key): readonly string[] => [...index.scan(wanted, from)].map(({ key }) => textOf(key));

      t.is(index.size, all.length);
      t.deepEqual(walked(), keys.map(textOf));
      t.deepEqual(walked(aKey(after)), keys.filter((key) => inOrder(key, aKey(after)) > 0).map(textOf));
      t.deepEqual(index.resources.map(formatResource), [...new Set(all.map(({ resource }) => formatResource(resource)))].toSorted());
      for (const key of keys) {
        const { cluster, namespace, name } = key;
        const found = index.valuesAt({ ...wanted, cluster, namespace, name }).map((each) => textOf(each.key));
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

test('two indexes are read in one order, with the value of each for a key', (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.array(step, { maxLength: 60 }), scope, place, (one, other, asked, after) => {
      const [ours, theirs] = [grown(one), grown(other)];
      const wanted: Scope = aScope(asked);
      const has = (keys: readonly Key[], text: string): string | undefined => (keys.some((key) => textOf(key) === text) ? text : undefined);
      const both = [...new Map([...ours.keys, ...theirs.keys].map((key) => [textOf(key), key])).values()].toSorted(inOrder);
      for (const from of [undefined, aKey(after)]) {
        const read = [...ours.index.scanWith(theirs.index, wanted, from)].map(([a, b]) => [a && textOf(a.key), b && textOf(b.key)]);
        const keys = both.filter((key) => matches(wanted, key) && (from === undefined || inOrder(key, from) > 0));
        t.deepEqual(
          read,
          keys.map(textOf).map((text) => [has(ours.keys, text), has(theirs.keys, text)]),
        );
      }
    }),
  );
});

test('an object that changes keeps its place and gets its new revision', (t) => {
  const index = new KeyIndex<Value>();
  index.set(aValue(aKey(), 1));
  index.set(aValue(aKey(), 2));

  t.is(index.size, 1);
  t.is(index.get(aKey())?.revision, 2);
  index.delete(aKey());
  index.delete(aKey());
  t.is(index.size, 0);
  t.deepEqual(index.resources, []);
});

test('reading one shard does not visit others', (t) => {
  const index = new KeyIndex<Value>();
  for (let i = 0; i < 50_000; i += 1) index.set(aValue(aKey({ shard: i % 2 === 0 ? 'a' : 'c', name: `n${i}` }), i));
  index.set(aValue(aKey({ shard: 'b', name: 'only' }), 1));

  const names = (): readonly string[] => [...index.scan(aScope({ shard: 'b' }))].map(({ key }) => key.name);
  t.deepEqual(names(), ['only']);
  const tookMs = fastestMs(names, 5);
  t.true(tookMs < 5, `${tookMs.toFixed(2)} ms`);
});
