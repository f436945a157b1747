import { test } from '../support/test.js';
import { formatSlice } from '../../src/domain/slice.js';
import { aBody, aKey, shardName, type Place } from '../support/objects.js';
import type { ModelObject, ModelRule } from './model-rule.js';
import { ModelTree, type ModelCache, type ModelClaim } from './model-tree.js';

const all: readonly ModelRule[] = [{ types: ['*'] }];

/** A cache that lets everything through, except where `policies` say otherwise. */
function aCache(name: string, parent?: string, policies: Partial<ModelCache> = {}): ModelCache {
  return { name, parent, forward: all, follow: all, children: { '*': { accept: all, offer: all } }, ...policies };
}

/** The tree of most cases: two regions under one root, one of them with a tenant. */
function aTree(policies: Readonly<Record<string, Partial<ModelCache>>> = {}): readonly ModelCache[] {
  return [
    aCache('root', undefined, policies['root']),
    aCache('eu', 'root', policies['eu']),
    aCache('us', 'root', policies['us']),
    aCache('eu-1', 'eu', policies['eu-1']),
  ];
}

function anObject(place: Place, content: Readonly<{ labels?: Record<string, string>; path?: string }> = {}): ModelObject {
  const key = aKey(place);
  return { key, body: aBody(key, content) };
}

function aClaim(shard: string, cache: string, objects: readonly ModelObject[], term = 1): ModelClaim {
  return { shard: shardName(shard), cache, term, objects };
}

const [amberOne, amberTwo] = [anObject({ name: 'one' }), anObject({ name: 'two', resource: 'apiresourceschemas' })];
const birchOne = anObject({ shard: 'birch', name: 'one' });

function names(tree: ModelTree, cache: string): readonly string[] {
  return tree
    .objects(cache)
    .map(({ key }) => `${key.shard} ${key.name}`)
    .toSorted();
}

test('if every link lets everything through, every cache holds everything and knows its via', (t) => {
  const tree = new ModelTree(aTree(), [aClaim('amber', 'eu-1', [amberOne, amberTwo]), aClaim('birch', 'us', [birchOne])]);

  for (const cache of ['root', 'eu', 'us', 'eu-1']) {
    t.deepEqual(names(tree, cache), ['amber one', 'amber two', 'birch one']);
    t.deepEqual(tree.digests(cache), tree.digests('root'));
  }
  t.deepEqual(
    ['root', 'eu', 'us', 'eu-1'].map((cache) => tree.via(cache, shardName('amber'))),
    ['child/eu', 'child/eu-1', 'parent', 'local'],
  );
  t.deepEqual(
    ['root', 'eu', 'us', 'eu-1'].map((cache) => tree.via(cache, shardName('birch'))),
    ['child/us', 'parent', 'local', 'parent'],
  );
});

test('exactly what both ends let through crosses a link', (t) => {
  const exports: readonly ModelRule[] = [{ types: ['apiexports.apis.kcp.io'] }];
  const tree = new ModelTree(
    aTree({ eu: { forward: exports }, us: { follow: [] }, root: { children: { eu: { accept: all, offer: all } } } }),
    [aClaim('amber', 'eu-1', [amberOne, amberTwo])],
  );

  t.deepEqual(names(tree, 'eu'), ['amber one', 'amber two']);
  t.deepEqual(names(tree, 'root'), ['amber one']);
  t.deepEqual(names(tree, 'us'), []);
  t.is(tree.via('us', shardName('amber')), 'parent');
});

test('a child claims only the shards that its parent accepts from it', (t) => {
  const accept: readonly ModelRule[] = [{ shards: ['amber'] }];
  const tree = new ModelTree(aTree({ root: { children: { '*': { accept: all, offer: all }, eu: { accept, offer: all } } } }), [
    aClaim('amber', 'eu', [amberOne]),
    aClaim('birch', 'eu', [birchOne]),
  ]);

  t.deepEqual(names(tree, 'eu-1'), ['amber one', 'birch one']);
  t.deepEqual(names(tree, 'us'), ['amber one']);
});

test('only public objects go up, and a tenant’s cache holds those and its own', (t) => {
  const isPublic: ModelRule = { labels: { visibility: 'public' } };
  const shared = anObject({ name: 'shared', cluster: 'c1' }, { labels: { visibility: 'public' }, path: 'root:tenant-b' });
  const own = anObject({ name: 'own', cluster: 'c2' }, { path: 'root:tenant-a:team' });
  const alike = anObject({ name: 'alike', cluster: 'c3' }, { path: 'root:tenant-ab' });
  const placed = anObject({ name: 'placed', cluster: 'c2', resource: 'apiresourceschemas' });
  const tenant: Partial<ModelCache> = { follow: [isPublic, { pathPrefix: 'root:tenant-a' }] };

  const tree = new ModelTree(aTree({ eu: { forward: [isPublic] }, 'eu-1': tenant }), [aClaim('amber', 'eu', [shared, own, alike, placed])]);

  t.deepEqual(names(tree, 'root'), ['amber shared']);
  t.deepEqual(names(tree, 'us'), ['amber shared']);
  t.deepEqual(names(tree, 'eu-1'), ['amber own', 'amber placed', 'amber shared']);
});

test('a rule can ask for an annotation by its value or by its presence', (t) => {
  const received = anObject({ name: 'with-path' }, { path: 'root:acme' });
  const silent = anObject({ name: 'silent', cluster: 'other' });
  const held = (rule: ModelRule): readonly string[] =>
    names(new ModelTree([aCache('root'), aCache('eu', 'root', { forward: [rule] })], [aClaim('amber', 'eu', [received, silent])]), 'root');

  t.deepEqual(held({ annotations: { 'kcp.io/path': '*' } }), ['amber with-path']);
  t.deepEqual(held({ annotations: { 'kcp.io/path': 'root:acme' } }), ['amber with-path']);
  t.deepEqual(held({ annotations: { 'kcp.io/path': 'root:else' } }), []);
  t.deepEqual(held({ clusters: ['other'], types: ['apiexports.apis.kcp.io'] }), ['amber silent']);
});

test('of two claims the higher gets the shard at every cache that both reach', (t) => {
  const moved = new ModelTree(aTree(), [aClaim('amber', 'eu-1', [amberOne], 1), aClaim('amber', 'us', [amberTwo], 2)]);
  const deaf = { children: { '*': { accept: all, offer: all }, us: { accept: [], offer: all } } };
  const unheard = new ModelTree(aTree({ root: deaf }), [aClaim('amber', 'eu-1', [amberOne], 1), aClaim('amber', 'us', [amberTwo], 2)]);

  for (const cache of ['root', 'eu', 'us', 'eu-1']) t.deepEqual(names(moved, cache), ['amber two']);
  t.is(moved.via('eu-1', shardName('amber')), 'parent');
  t.deepEqual(
    ['root', 'eu', 'us', 'eu-1'].map((cache) => names(unheard, cache)),
    [['amber one'], ['amber one'], ['amber two'], ['amber one']],
  );
});

test('a shard that moves to a cache that lets none of it out leaves all other caches that hear of the claim', (t) => {
  const claims = [aClaim('amber', 'eu-1', [amberOne], 1), aClaim('amber', 'us', [amberTwo], 2)];
  const tree = new ModelTree(aTree({ us: { forward: [] } }), claims);

  t.deepEqual(
    ['root', 'eu', 'us', 'eu-1'].map((cache) => names(tree, cache)),
    [[], [], ['amber two'], []],
  );
  t.is(tree.via('eu-1', shardName('amber')), 'parent');
});

test('no cache holds a removed shard, and it has no via anywhere', (t) => {
  const removal: ModelClaim = { ...aClaim('amber', 'root', [], 5), removed: true };
  const tree = new ModelTree(aTree(), [aClaim('amber', 'eu-1', [amberOne]), removal, aClaim('birch', 'us', [birchOne])]);

  t.deepEqual(names(tree, 'eu-1'), ['birch one']);
  t.is(tree.via('eu', shardName('amber')), undefined);
});

test('objects of the same name on shards of different branches are two objects', (t) => {
  const tree = new ModelTree(aTree(), [aClaim('amber', 'eu', [amberOne]), aClaim('birch', 'us', [birchOne])]);
  const slices = [...tree.digests('root').keys()];

  t.deepEqual(slices.toSorted(), [amberOne, birchOne].map(({ key }) => formatSlice(key)).toSorted());
});
