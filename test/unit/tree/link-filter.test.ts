import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { parseCanonicalPath, type CanonicalPath } from '../../../src/domain/cluster.js';
import { formatPathEntry, pathEntryBody } from '../../../src/domain/path-entry.js';
import { formatGroupResource } from '../../../src/domain/resource.js';
import type { StoredObject } from '../../../src/domain/object.js';
import { LinkFilter } from '../../../src/tree/filters/link-filter.js';
import { aDeclaration, anObject, aPolicy, sliceOf, type WrittenRule } from '../../support/link-rules.js';
import { fastestMs } from '../../support/fastest.js';
import { aKey, shardName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';

const everything: WrittenRule = { types: ['*'] };
const rbacGroup = 'rbac.authorization.k8s.io';
const markedPublic = { annotations: { 'example.io/visibility': 'public' } };

function aFilter(...own: readonly WrittenRule[]): LinkFilter {
  return new LinkFilter(aPolicy(...own), aPolicy(everything));
}

function path(text: string): CanonicalPath {
  const parsed = parseCanonicalPath(text);
  if (parsed === undefined) throw new Error(`${text} is no canonical path`);
  return parsed;
}

function anExport(cluster: string, content: Parameters<typeof anObject>[1] = {}): StoredObject {
  return anObject({ cluster }, content);
}

test('rules for everything let each object through without reading it, and claims of every shard', (t) => {
  const filter = aFilter(everything);
  const object = anExport('acme');

  t.true(filter.lets(object, undefined));
  t.true(filter.letsAll(sliceOf(object)));
  t.true(filter.covers(sliceOf(object)));
  t.false(filter.needsPath(sliceOf(object)));
  t.true(filter.coversShard(shardName('amber')));
});

test('an empty policy at either end lets nothing through', (t) => {
  const object = anExport('acme');

  for (const filter of [new LinkFilter([], aPolicy(everything)), new LinkFilter(aPolicy(everything), []), new LinkFilter([], [])]) {
    t.false(filter.lets(object, undefined));
    t.false(filter.covers(sliceOf(object)));
    t.false(filter.letsAll(sliceOf(object)));
    t.false(filter.coversShard(shardName('amber')));
    t.not(filter.hashOf(sliceOf(object)), '');
  }
});

test('a rule can let only exports that are marked public go to the root', (t) => {
  const filter = aFilter({ types: ['apiexports.apis.kcp.io'], ...markedPublic });

  t.true(filter.lets(anExport('acme', markedPublic), undefined));
  t.false(filter.lets(anExport('acme'), undefined));
  t.false(filter.lets(anExport('acme', { annotations: { 'example.io/visibility': 'private' } }), undefined));
  t.false(filter.covers(sliceOf(anObject({ group: '', resource: 'secrets' }, markedPublic))));
});

test('a tenant’s cache holds public exports and those under its path, and a path matches only whole segments', (t) => {
  const exports = { types: ['apiexports.apis.kcp.io'] };
  const filter = new LinkFilter(aPolicy({ ...exports, ...markedPublic }, { ...exports, pathPrefix: 'root:tenant-a' }), aPolicy(everything));
  const at = (text: string): StoredObject => anExport('acme', { annotations: { 'kcp.io/path': text } });

  t.true(filter.lets(anExport('beta', markedPublic), path('root:tenant-b')));
  for (const inside of ['root:tenant-a', 'root:tenant-a:team', 'root:tenant-a:team:x']) {
    t.true(filter.lets(at(inside), undefined), inside);
    t.true(filter.lets(anExport('acme'), path(inside)), inside);
  }
  for (const outside of ['root:tenant-ab', 'root', 'root:tenant', 'root:tenant-b:root:tenant-a'])
    t.false(filter.lets(at(outside), undefined));
  t.false(filter.lets(anExport('acme'), undefined));
  t.true(filter.needsPath(sliceOf(at('root'))));
});

test('a region that never lets RBAC out lists the types that it lets out', (t) => {
  const types = ['apiexports.apis.kcp.io', 'apiresourceschemas.apis.kcp.io', 'workspacetypes.tenancy.kcp.io', 'shards.core.kcp.io'];
  const filter = aFilter({ types });

  t.true(filter.letsAll(sliceOf(anExport('acme'))));
  for (const resource of ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'])
    t.false(filter.covers(aKey({ group: rbacGroup, resource })), resource);
});

test('an object’s own path overrides the known path of its logical cluster; a malformed path counts as none', (t) => {
  const filter = aFilter({ pathPrefix: 'root:a' });

  t.false(filter.lets(anExport('acme', { annotations: { 'kcp.io/path': 'root:b' } }), path('root:a')));
  t.true(filter.lets(anExport('acme', { annotations: { 'kcp.io/path': 'Root:' } }), path('root:a')));
  t.true(aFilter({ pathPrefix: 'root' }).lets(anExport('acme', { annotations: { 'kcp.io/path': 'root' } }), undefined));
});

test('both ends must let an object through, each by a rule of its own', (t) => {
  const filter = new LinkFilter(aPolicy({ shards: ['amber'] }), aPolicy({ labels: 'tier' }, { clusters: ['beta'] }));

  t.true(filter.lets(anObject({ shard: 'amber', cluster: 'beta' }), undefined));
  t.true(filter.lets(anObject({ shard: 'amber' }, { labels: { tier: 'gold' } }), undefined));
  t.false(filter.lets(anObject({ shard: 'birch', cluster: 'beta' }), undefined));
  t.false(filter.lets(anObject({ shard: 'amber' }), undefined));
});

test('claims of a shard pass if both ends let a common type of it through', (t) => {
  const filter = new LinkFilter(
    aPolicy({ shards: ['amber'], types: ['secrets', 'a.b:1'] }, { shards: ['birch'], types: ['a.b:1'] }, { shards: ['cedar'] }),
    aPolicy({ shards: ['amber', 'cedar'], types: ['configmaps', 'a.b'] }, { shards: ['birch'], types: ['secrets'] }),
  );

  t.true(filter.coversShard(shardName('amber')));
  t.false(filter.coversShard(shardName('birch')));
  t.true(filter.coversShard(shardName('cedar')));
  t.false(filter.coversShard(shardName('dune')));
});

test('a rule for a declared type also lets its declaration through, on the same shards and whatever its other conditions', (t) => {
  const rule = { types: ['instances.machines.svm.io:A1'], shards: ['amber'], labels: 'tier=gold' };
  const filter = aFilter(rule);
  const anyIdentity = aFilter({ ...rule, types: ['instances.machines.svm.io'] });

  t.true(filter.lets(aDeclaration('A1'), undefined));
  t.false(filter.lets(aDeclaration('B2'), undefined));
  t.true(anyIdentity.lets(aDeclaration('B2'), undefined));
  t.false(anyIdentity.lets(aDeclaration('B2', {}, 'disks'), undefined));
  t.false(filter.lets(aDeclaration('A1', { shard: 'birch' }), undefined));
  t.false(filter.letsAll(sliceOf(aDeclaration('A1'))));
});

test('a rule for built-in types or for every type lets no declaration through by implication', (t) => {
  t.false(aFilter({ types: ['shards.core.kcp.io', 'apiexports.apis.kcp.io'] }).covers(sliceOf(aDeclaration('A1'))));
  t.false(aFilter({ types: ['*'], labels: 'tier' }).lets(aDeclaration('A1'), undefined));
});

test('path entries cross only if both ends name their types, and a rule for every type does not include them', (t) => {
  const entry = pathEntryBody(formatPathEntry({ kind: 'cluster', path: 'root:org', isParentless: false, isMigrating: false }));
  const object = { ...anObject({ group: 'paths.strata', resource: 'logicalclusters', name: 'cluster' }), body: entry };
  const named: WrittenRule = { types: ['logicalclusters.paths.strata'] };
  const crosses = (own: readonly WrittenRule[], other: readonly WrittenRule[]) => {
    const filter = new LinkFilter(aPolicy(...own), aPolicy(...other));
    t.is(filter.lets(object, undefined), filter.covers(sliceOf(object)));
    return filter.covers(sliceOf(object));
  };
  t.false(crosses([everything], [everything]));
  t.false(crosses([{ shards: ['amber'] }], [named]));
  t.false(crosses([everything], [named]));
  t.false(crosses([named], [everything]));
  t.true(crosses([named], [named]));
  t.true(crosses([everything, named], [everything, named]));
  t.false(crosses([named], [{ types: ['workspaces.paths.strata'] }]));

  const amber = shardName('amber');
  t.false(new LinkFilter(aPolicy(named), aPolicy(everything)).coversShard(amber));
  t.false(new LinkFilter(aPolicy(everything), aPolicy(named)).coversShard(amber));
  t.true(new LinkFilter(aPolicy(named), aPolicy(named)).coversShard(amber));
});

test('a rule for path entries lets no declaration through, and conditions on clusters or shards narrow it', (t) => {
  const named: WrittenRule = { types: ['workspaces.paths.strata'], clusters: ['acme'], shards: ['amber'] };
  const filter = new LinkFilter(aPolicy(named), aPolicy(named));
  t.false(filter.covers(sliceOf(aDeclaration('hash'))));
  const workspace = (place: Parameters<typeof anObject>[0]) => anObject({ group: 'paths.strata', resource: 'workspaces', ...place });
  t.true(filter.lets(workspace({}), undefined));
  t.false(filter.lets(workspace({ cluster: 'other' }), undefined));
  t.false(filter.lets(workspace({ shard: 'birch' }), undefined));
});

test('the hash of a slice identifies what passes of it, the same from both ends and however the rules are written', (t) => {
  const slice = aKey();
  const hash = (own: readonly WrittenRule[], other: readonly WrittenRule[] = [everything]): string =>
    new LinkFilter(aPolicy(...own), aPolicy(...other)).hashOf(slice);
  const rule = { types: ['apiexports.apis.kcp.io'], labels: 'tier=gold' };

  t.is(hash([rule], [everything]), hash([everything], [rule]));
  t.is(hash([rule, { clusters: ['acme'] }]), hash([{ clusters: ['acme'] }, rule]));
  t.is(hash([rule]), hash([rule, { types: ['secrets'] }, { shards: ['birch'] }]));
  t.is(hash([rule]), hash([{ types: ['*'], shards: ['amber', 'birch'], labels: { tier: 'gold' } }]));
  t.is(hash([rule], [rule]), hash([rule]));
  t.is(hash([everything, rule]), hash([{ shards: ['amber'] }]));
  t.is(hash([]), hash([{ types: ['secrets'] }]));
  const different = [[], [rule], [everything], [{ labels: 'tier' }], [{ annotations: { tier: 'gold' } }], [rule, { clusters: ['acme'] }]];
  t.is(new Set(different.map((rules) => hash(rules))).size, different.length);
  t.true(different.every((rules) => hash(rules).length === 16));
});

const shards = ['amber', 'birch'];
const clusters = ['acme', 'beta'];
const paths = ['root:a', 'root:ab', 'root:a:team'];
const types = [
  'apiexports.apis.kcp.io',
  'secrets',
  'instances.machines.svm.io',
  'instances.machines.svm.io:A1',
  'clustercachedresources.cache.kcp.io',
];
const places = [
  { group: 'apis.kcp.io', resource: 'apiexports', identity: '' },
  { group: '', resource: 'secrets', identity: '' },
  ...['A1', 'B2'].map((identity) => ({ group: 'machines.svm.io', resource: 'instances', identity })),
];

const oneRule: fc.Arbitrary<WrittenRule> = fc
  .record(
    {
      types: fc.oneof(fc.constant(['*']), fc.array(fc.constantFrom(...types), { minLength: 1, maxLength: 2 })),
      shards: fc.subarray(shards, { minLength: 1 }),
      clusters: fc.subarray(clusters, { minLength: 1 }),
      pathPrefix: fc.constantFrom('root', 'root:a', 'root:a:team'),
      labels: fc.constantFrom({ tier: 'gold' }, { tier: 'tin' }),
      annotations: fc.constantFrom({ seen: '*' }, { seen: 'yes' }),
    },
    { requiredKeys: [] },
  )
  .filter((rule) => Object.keys(rule).length > 0);

type Sample = Readonly<{
  object: StoredObject;
  path: CanonicalPath | undefined;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  declares: string | undefined;
}>;

const anySample: fc.Arbitrary<Sample> = fc
  .record({
    place: fc.constantFrom(...places),
    shard: fc.constantFrom(...shards),
    cluster: fc.constantFrom(...clusters),
    tier: fc.option(fc.constantFrom('gold', 'tin')),
    seen: fc.option(fc.constantFrom('yes', 'no')),
    ownPath: fc.option(fc.constantFrom('root', ...paths)),
    path: fc.option(fc.constantFrom(...paths)),
    declares: fc.option(fc.constantFrom('A1', 'B2')),
  })
  .map(({ place, shard, cluster, tier, seen, ownPath, path: known, declares }) => {
    const labels: Record<string, string> = tier === null ? {} : { tier };
    const annotations = { ...(seen === null ? {} : { seen }), ...(ownPath === null ? {} : { 'kcp.io/path': ownPath }) };
    const object =
      declares === null ? anObject({ ...place, shard, cluster }, { labels, annotations }) : aDeclaration(declares, { shard, cluster });
    const shown = declares === null ? { labels, annotations } : { labels: {}, annotations: {} };
    return { ...shown, object, path: known === null ? undefined : path(known), declares: declares ?? undefined };
  });

/** The rules as the documentation describes them, over plain values. */
function naivelyLets(rules: readonly WrittenRule[], sample: Sample): boolean {
  return rules.some((rule) => naivelyMatches(rule, sample) || naivelyImplies(rule, sample));
}

function naivelyMatches(rule: WrittenRule, { object: { key }, path: known, labels, annotations }: Sample): boolean {
  const type = formatGroupResource(key.resource);
  const where = annotations['kcp.io/path'] ?? known;
  return (
    (rule.types === undefined || ['*', type, `${type}:${key.resource.identity}`].some((name) => rule.types?.includes(name))) &&
    (rule.shards === undefined || rule.shards.includes(key.shard)) &&
    (rule.clusters === undefined || rule.clusters.includes(key.cluster)) &&
    (rule.pathPrefix === undefined || `${where}:`.startsWith(`${rule.pathPrefix}:`)) &&
    (rule.labels === undefined || Object.entries(rule.labels).every(([name, value]) => labels[name] === value)) &&
    (rule.annotations === undefined ||
      Object.entries(rule.annotations).every(([name, value]) => (value === '*' ? name in annotations : annotations[name] === value)))
  );
}

function naivelyImplies(rule: WrittenRule, { object: { key }, declares }: Sample): boolean {
  if (declares === undefined || rule.shards?.includes(key.shard) === false) return false;
  return ['instances.machines.svm.io', `instances.machines.svm.io:${declares}`].some((name) => rule.types?.includes(name));
}

const policies = fc.array(oneRule, { maxLength: 3 });
const samples = fc.array(anySample, { minLength: 1, maxLength: 8 });

test('a link filter decides as a naive reading of both policies, and its answers for whole slices agree', (t) => {
  fc.assert(
    fc.property(policies, policies, samples, (own, other, judged) => {
      const filter = new LinkFilter(aPolicy(...own), aPolicy(...other));
      for (const sample of judged) {
        const { object, path: known } = sample;
        const slice = sliceOf(object);
        const lets = filter.lets(object, known);

        t.is(lets, naivelyLets(own, sample) && naivelyLets(other, sample));
        if (lets) t.true(filter.covers(slice) && filter.coversShard(slice.shard));
        else t.false(filter.letsAll(slice));
        if (filter.letsAll(slice)) t.true(filter.covers(slice));
        if (filter.covers(slice)) t.true(filter.coversShard(slice.shard));
        if (!filter.needsPath(slice)) t.is(filter.lets(object, undefined), lets);
      }
    }),
    { numRuns: rounds(1000) },
  );
});

test('filters with the same hash for a slice let the same objects of it through', (t) => {
  const fewRules = fc.array(
    oneRule.map(({ types: named, labels, shards: on }) => ({
      types: named ?? ['*'],
      ...(labels && { labels }),
      ...(on && { shards: on }),
    })),
    { maxLength: 2 },
  );
  let same = 0;

  fc.assert(
    fc.property(fewRules, fewRules, fewRules, fewRules, samples, (own, other, thirds, fourths, judged) => {
      const one = new LinkFilter(aPolicy(...own), aPolicy(...other));
      const two = new LinkFilter(aPolicy(...thirds), aPolicy(...fourths));
      for (const { object, path: known } of judged) {
        if (one.hashOf(object.key) !== two.hashOf(object.key)) continue;
        same++;
        t.is(one.lets(object, known), two.lets(object, known));
        t.is(one.letsAll(object.key), two.letsAll(object.key));
      }
    }),
    { numRuns: 500 },
  );
  t.true(same > 100);
});

test('the hash covers both ends and does not depend on the order of rules', (t) => {
  fc.assert(
    fc.property(policies, policies, anySample, (own, other, { object: { key } }) => {
      const filter = new LinkFilter(aPolicy(...own), aPolicy(...other));

      t.is(new LinkFilter(aPolicy(...other), aPolicy(...own)).hashOf(key), filter.hashOf(key));
      t.is(new LinkFilter(aPolicy(...own.toReversed(), ...own), aPolicy(...other.toReversed())).hashOf(key), filter.hashOf(key));
      t.is(new LinkFilter(aPolicy(...own, { shards: ['cedar'] }), aPolicy(...other)).hashOf(key), filter.hashOf(key));
    }),
  );
});

test('a filter still decides correctly for more slices than it remembers', (t) => {
  const filter = aFilter({ types: ['secrets'] });

  for (let i = 0; i < 10_500; i++) filter.covers(aKey({ shard: `s-${i}` }));

  t.true(filter.letsAll(aKey({ group: '', resource: 'secrets' })));
  t.false(filter.covers(aKey()));
});

test('the cost of a slice does not grow with the texts of the rules', (t) => {
  const rules = (characters: number): readonly WrittenRule[] =>
    Array.from({ length: 100 }, (_, i) => ({ types: ['*'], labels: `l${i}=${'x'.repeat(characters)}` }));
  const tookMs = (characters: number): number =>
    fastestMs(() => {
      const filter = new LinkFilter(aPolicy(...rules(characters)), aPolicy(...rules(characters)));
      for (let i = 0; i < 2_000; i += 1) filter.covers(aSlice({ resource: `r${i}` }));
    }, 3);

  const [short, long] = [tookMs(2), tookMs(60)];
  t.true(long < 5 * short + 20, `${long} ms with long rules, ${short} ms with short ones`);
});
