import { readFileSync } from 'node:fs';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { Catalogue, type Resolution, type ServedType, type TypeRequest } from '../../../src/domain/catalogue/catalogue.js';
import type { Declared, DeclarationKey } from '../../../src/domain/catalogue/declaration.js';
import { compareVersions } from '../../../src/domain/syntax/version-order.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { shardName } from '../../support/objects.js';
import { projectFile } from '../../support/project.js';

const encoder = new TextEncoder();

type Said = Readonly<{
  group?: string;
  resource?: string;
  version?: string;
  identity?: string | undefined;
  kind?: string | undefined;
  scope?: string | undefined;
}>;

function aClusterCachedResource(said: Said = {}): Uint8Array {
  const { group = 'machines.svm.io', resource = 'instances', version = 'v1alpha1' } = said;
  const { identity, kind, scope } = { identity: 'hash-a', kind: 'Instance', scope: 'Cluster', ...said };
  const annotations = { 'cache.kcp.io/resource-kind': kind, 'cache.kcp.io/resource-scope': scope };
  return encoder.encode(
    JSON.stringify({ metadata: { annotations }, spec: { group, resource, version }, status: { identityHash: identity } }),
  );
}

function aPlace(place: Partial<DeclarationKey> = {}): DeclarationKey {
  return { shard: 'amber', cluster: 'acme', name: 'instances', ...place };
}

function aRequest(request: Partial<TypeRequest> = {}): TypeRequest {
  return {
    group: 'machines.svm.io',
    version: 'v1alpha1',
    resource: 'instances',
    identity: undefined,
    cluster: 'acme',
    partial: false,
    ...request,
  };
}

let revision = 0;

/** Declares, and returns the types that end because of it. */
function declareIn(catalogue: Catalogue, place: DeclarationKey, body: Uint8Array): readonly Declared[] {
  revision += 1;
  return namesOf(catalogue.declare(place, body, revision));
}

function withdrawFrom(catalogue: Catalogue, place: DeclarationKey): readonly Declared[] {
  revision += 1;
  return namesOf(catalogue.withdraw(place, revision));
}

function namesOf(types: readonly ServedType[]): readonly Declared[] {
  return types.map(({ group, resource, identity }) => ({ group, resource, identity }));
}

/** The identity under which the objects are, or 'unknown'. */
function shown(resolution: Resolution): string {
  return resolution.kind === 'found' ? resolution.identity : resolution.kind;
}

test('a request for every type that a kcp informer waits for finds it, under the wildcards and in its version', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const waitedFor = [
    ['rbac.authorization.k8s.io', 'v1', ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings']],
    [
      'admissionregistration.k8s.io',
      'v1',
      ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations', 'validatingadmissionpolicies'],
    ],
    [
      'admissionregistration.k8s.io',
      'v1',
      ['validatingadmissionpolicybindings', 'mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'],
    ],
    ['apiextensions.k8s.io', 'v1', ['customresourcedefinitions']],
    ['apis.kcp.io', 'v1alpha2', ['apiexports']],
    ['apis.kcp.io', 'v1alpha1', ['apiresourceschemas', 'apiconversions', 'apiexportendpointslices', 'apiexports']],
    ['core.kcp.io', 'v1alpha1', ['shards', 'logicalclusters']],
    ['tenancy.kcp.io', 'v1alpha1', ['workspacetypes']],
    ['cache.kcp.io', 'v1alpha1', ['clustercachedresources', 'clustercachedresourceendpointslices', 'cachedobjects']],
    ['migration.kcp.io', 'v1alpha1', ['logicalclustermigrations']],
  ] as const;
  for (const [group, version, resources] of waitedFor) {
    for (const resource of resources) {
      t.is(shown(catalogue.resolve(aRequest({ group, version, resource, cluster: '*' }))), '', `${resource}.${group}`);
    }
  }
  t.is(kcpTypes.length, 22);
});

test('each type has all its data: the preferred version is stored, versions are ordered, list kind and singular follow the kind', (t) => {
  for (const type of kcpTypes) {
    const versions = type.versions.map(({ name }) => name);
    t.true(versions[0] === type.storageVersion);
    t.deepEqual(
      versions,
      versions.toSorted((left, right) => compareVersions(left, right)),
    );
    t.is(type.listKind, `${type.kind}List`);
    t.is(type.singular, type.kind.toLowerCase());
    t.is(type.nameRule, type.group === 'rbac.authorization.k8s.io' ? 'path-segment' : 'subdomain');
  }
  t.deepEqual(
    kcpTypes.filter(({ namespaced }) => namespaced).map(({ resource }) => resource),
    ['roles', 'rolebindings'],
  );
});

test('a built-in type ignores the identity in the URL; its version counts, except in a wildcard request for metadata', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const exports = { group: 'apis.kcp.io', resource: 'apiexports' };
  const cases: [Partial<TypeRequest>, string][] = [
    [{ version: 'v1alpha2' }, ''],
    [{ version: 'v1alpha1', identity: 'anything' }, ''],
    [{ version: 'v1alpha2', cluster: '*', identity: 'anything' }, ''],
    [{ version: 'v1' }, 'unknown'],
    [{ version: 'v1', cluster: '*' }, 'unknown'],
    [{ version: 'v1', partial: true }, 'unknown'],
    [{ version: 'v1', cluster: '*', partial: true }, ''],
  ];
  for (const [request, answer] of cases)
    t.is(shown(catalogue.resolve(aRequest({ ...exports, ...request }))), answer, JSON.stringify(request));
});

test('names that every JavaScript object has are unknown as group, resource, identity, version and cluster', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  declareIn(catalogue, aPlace(), aClusterCachedResource());
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '']) {
    for (const part of ['group', 'resource', 'identity', 'version', 'cluster'] as const) {
      t.is(shown(catalogue.resolve(aRequest({ identity: 'hash-a', [part]: name }))), 'unknown', `${part} ${name}`);
    }
    t.is(shown(catalogue.resolve(aRequest({ group: 'apis.kcp.io', resource: name, version: 'v1alpha1' }))), 'unknown');
  }
});

test('every request that may name a declared type finds it', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  declareIn(catalogue, aPlace(), aClusterCachedResource());
  declareIn(catalogue, aPlace({ cluster: 'beta' }), aClusterCachedResource({ identity: 'hash-b', version: 'v1' }));
  const cases: [Partial<TypeRequest>, string][] = [
    // In one cluster its own ClusterCachedResource decides, with or without the identity.
    [{}, 'hash-a'],
    [{ identity: 'hash-a' }, 'hash-a'],
    [{ cluster: 'beta', version: 'v1' }, 'hash-b'],
    [{ partial: true }, 'hash-a'],
    [{ identity: 'hash-b', version: 'v1' }, 'unknown'],
    [{ identity: '' }, 'unknown'],
    [{ version: 'v1' }, 'unknown'],
    [{ version: 'v1', partial: true }, 'unknown'],
    [{ cluster: 'gamma' }, 'unknown'],
    // In a wildcard request the identity is required …
    [{ cluster: '*', identity: 'hash-a' }, 'hash-a'],
    [{ cluster: '*', identity: 'hash-b', version: 'v1' }, 'hash-b'],
    [{ cluster: '*', identity: 'hash-b' }, 'unknown'],
    [{ cluster: '*', identity: 'hash-c' }, 'unknown'],
    [{ cluster: '*', identity: '*' }, 'unknown'],
    [{ cluster: '*' }, 'unknown'],
    // … unless the request is for metadata only: that shows all identities, whatever the version.
    [{ cluster: '*', partial: true }, '*'],
    [{ cluster: '*', partial: true, version: 'v9' }, '*'],
    [{ cluster: '*', partial: true, identity: 'hash-b', version: 'v9' }, '*'],
    [{ cluster: '*', partial: true, identity: 'hash-c' }, 'unknown'],
    [{ cluster: '*', partial: true, resource: 'others' }, 'unknown'],
  ];
  for (const [request, answer] of cases) t.is(shown(catalogue.resolve(aRequest(request))), answer, JSON.stringify(request));
});

test('a declared type has the kind and scope of the annotations and all versions of the declarations with its identity', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  for (const version of ['v1beta1', 'v2', 'v1', 'v1alpha1']) {
    declareIn(catalogue, aPlace({ cluster: `cluster-${version}` }), aClusterCachedResource({ version, scope: 'Namespaced' }));
  }
  declareIn(catalogue, aPlace({ cluster: 'other' }), aClusterCachedResource({ version: 'v7', identity: 'hash-b' }));

  const resolution = catalogue.resolve(aRequest({ cluster: '*', identity: 'hash-a' }));

  t.is(resolution.kind, 'found');
  if (resolution.kind !== 'found') return;
  const { versions, ...type } = resolution.type;
  t.deepEqual(
    versions.map(({ name }) => name),
    ['v2', 'v1', 'v1beta1', 'v1alpha1'],
  );
  t.deepEqual(type, {
    group: 'machines.svm.io',
    resource: 'instances',
    identity: 'hash-a',
    kind: 'Instance',
    listKind: 'InstanceList',
    singular: 'instance',
    shortNames: [],
    categories: [],
    namespaced: true,
    nameRule: 'subdomain',
    strategicMerge: false,
    storageVersion: 'v2',
  });
});

test('a ClusterCachedResource declares nothing until it has kind, scope and identity, nor with an invalid name', (t) => {
  const unusable: Said[] = [
    { identity: undefined },
    { identity: '' },
    { identity: '*' },
    { identity: 'a/b' },
    { kind: undefined },
    { kind: 'In stance' },
    { scope: undefined },
    { scope: 'Galaxy' },
    { version: '' },
    { resource: '' },
    { resource: 'a/b' },
    { group: 'a/b' },
    { group: 'a'.repeat(254) },
    { kind: 'a'.repeat(254) },
    { identity: 'a'.repeat(254) },
  ];
  for (const said of unusable) {
    const catalogue = new Catalogue(kcpTypes);

    t.deepEqual(declareIn(catalogue, aPlace(), aClusterCachedResource(said)), []);

    t.deepEqual(catalogue.declared(), [], JSON.stringify(said));
  }
  for (const text of ['{}', '[]', 'null', '{"spec":null,"status":7}', '{"__proto__":{"spec":{"resource":"x"}}}']) {
    const catalogue = new Catalogue(kcpTypes);
    t.deepEqual(declareIn(catalogue, aPlace(), encoder.encode(text)), []);
    t.deepEqual(catalogue.declared(), []);
  }
});

test('a built-in type cannot be declared again', (t) => {
  const catalogue = new Catalogue(kcpTypes);

  declareIn(catalogue, aPlace(), aClusterCachedResource({ group: 'apis.kcp.io', resource: 'apiexports', version: 'v9', kind: 'Evil' }));

  t.deepEqual(catalogue.declared(), []);
  t.is(shown(catalogue.resolve(aRequest({ group: 'apis.kcp.io', resource: 'apiexports', version: 'v9' }))), 'unknown');
});

test('a replaced table ends the types that it serves differently, and is rejected if it contains a declared type', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const [shards, exports] = ['shards', 'apiexports'].map((name) => kcpTypes.find(({ resource }) => resource === name)!);
  const widgets = { ...shards!, group: 'example.com', resource: 'widgets', kind: 'Widget' };
  const others = kcpTypes.filter((type) => type !== shards && type !== exports);
  const oneVersion = { ...exports!, versions: exports!.versions.slice(0, 1) };
  const columns = { ...shards!, versions: [{ ...shards!.versions[0]!, columns: [] }] };
  t.deepEqual(catalogue.replaceTable([...others, columns, oneVersion, widgets]), { begun: [widgets], ended: [exports], widened: [] });
  t.deepEqual(catalogue.replaceTable(kcpTypes), { begun: [], ended: [widgets], widened: [exports] });
  t.is(catalogue.table, kcpTypes);

  declareIn(catalogue, aPlace(), aClusterCachedResource({ group: 'example.com', resource: 'widgets' }));
  t.throws(() => catalogue.replaceTable([...kcpTypes, widgets]), { message: /^widgets\.example\.com is declared/ });
  t.is(catalogue.table, kcpTypes);
});

test('the core group is the same whether a request spells it core or omits it', (t) => {
  for (const group of ['', 'core']) {
    const catalogue = new Catalogue(kcpTypes);
    declareIn(
      catalogue,
      aPlace(),
      aClusterCachedResource({ group, resource: 'configmaps', version: 'v1', kind: 'ConfigMap', scope: 'Namespaced' }),
    );
    for (const asked of ['', 'core']) {
      t.is(shown(catalogue.resolve(aRequest({ group: asked, resource: 'configmaps', version: 'v1' }))), 'hash-a');
      t.is(shown(catalogue.resolve(aRequest({ group: asked, resource: 'configmaps', version: 'v1', cluster: '*', partial: true }))), '*');
    }
    t.is(catalogue.declared()[0]?.group, '');
  }
});

test('the end of an identity is reported once, when its last declaration changes or is deleted', (t) => {
  const gone = [{ group: 'machines.svm.io', resource: 'instances', identity: 'hash-a' }];
  const catalogue = new Catalogue(kcpTypes);
  declareIn(catalogue, aPlace(), aClusterCachedResource());
  declareIn(catalogue, aPlace({ shard: 'birch' }), aClusterCachedResource());
  declareIn(catalogue, aPlace({ cluster: 'beta' }), aClusterCachedResource());

  t.deepEqual(withdrawFrom(catalogue, aPlace()), []);
  t.deepEqual(withdrawFrom(catalogue, aPlace()), []);
  t.is(shown(catalogue.resolve(aRequest())), 'hash-a', 'the other shard still has the same ClusterCachedResource');
  t.deepEqual(withdrawFrom(catalogue, aPlace({ shard: 'birch' })), []);
  t.is(shown(catalogue.resolve(aRequest())), 'unknown');
  t.deepEqual(
    declareIn(catalogue, aPlace({ cluster: 'beta' }), aClusterCachedResource({ version: 'v2' })),
    gone,
    'another version, the same identity',
  );
  t.deepEqual(declareIn(catalogue, aPlace({ cluster: 'beta' }), aClusterCachedResource({ identity: 'hash-b' })), gone);
  t.is(shown(catalogue.resolve(aRequest({ cluster: '*', identity: 'hash-a' }))), 'unknown');
  t.deepEqual(declareIn(catalogue, aPlace({ cluster: 'beta' }), aClusterCachedResource({ identity: undefined })), [
    { ...gone[0], identity: 'hash-b' },
  ]);
  t.deepEqual(withdrawFrom(catalogue, aPlace({ cluster: 'beta' })), []);
  t.is(shown(catalogue.resolve(aRequest({ cluster: '*', partial: true }))), 'unknown');
});

test('a type also ends when another kind, scope or version replaces it, but not while another declaration still has all of it', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  declareIn(catalogue, aPlace(), aClusterCachedResource());
  const ends = (said: Said): boolean => declareIn(catalogue, aPlace(), aClusterCachedResource(said)).length > 0;

  t.deepEqual(
    [{}, { kind: 'Machine' }, { kind: 'Machine', scope: 'Namespaced' }, {}, { version: 'v2' }].map((said) => ends(said)),
    [false, true, true, true, true],
  );
  declareIn(catalogue, aPlace({ shard: 'birch' }), aClusterCachedResource({ version: 'v2' }));
  t.false(ends({ version: 'v3' }), 'the other shard has v2');
  t.true(ends({ version: 'v4' }));
  const first = aPlace({ name: '0' });
  t.deepEqual(declareIn(catalogue, first, aClusterCachedResource({ version: 'v4' })), [], 'one that is first, and says the same');
  t.is(declareIn(catalogue, first, aClusterCachedResource({ version: 'v4', kind: 'Machine' })).length, 1);
  t.is(withdrawFrom(catalogue, first).length, 1, 'the next one in line declares Instance');
});

test('the served types do not depend on the order in which ClusterCachedResources arrived', (t) => {
  const seen: [DeclarationKey, Uint8Array][] = [
    [aPlace({ name: 'b' }), aClusterCachedResource({ identity: 'hash-b', kind: 'Second' })],
    [aPlace({ name: 'a' }), aClusterCachedResource({ identity: 'hash-a', kind: 'First' })],
    [
      aPlace({ name: 'c', cluster: 'beta' }),
      aClusterCachedResource({ identity: 'hash-a', kind: 'Third', scope: 'Namespaced', version: 'v1' }),
    ],
  ];
  const views = [seen, seen.toReversed()].map((order) => {
    const catalogue = new Catalogue([]);
    for (const [place, body] of order) declareIn(catalogue, place, body);
    return [catalogue.declared(), catalogue.resolve(aRequest()), catalogue.forCluster('acme'), catalogue.forCluster('*')];
  });
  t.deepEqual(views[0], views[1]);
});

test('pushed objects are checked against the declaration of their own shard, even if another shard declared the identity first', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const resource = { group: 'machines.svm.io', resource: 'instances', identity: 'hash-a' };
  const [amber, bravo, cedar] = [shardName('amber'), shardName('bravo'), shardName('cedar')];
  const judged = (shard = bravo) => {
    const type = catalogue.find(resource, shard);
    return type && [type.kind, type.namespaced, type.storageVersion];
  };
  declareIn(catalogue, aPlace({ shard: 'bravo' }), aClusterCachedResource());
  t.deepEqual(judged(), ['Instance', false, 'v1alpha1']);

  declareIn(catalogue, aPlace({ name: '0' }), aClusterCachedResource({ kind: 'Copied', scope: 'Namespaced', version: 'v9' }));

  t.deepEqual(judged(bravo), ['Instance', false, 'v1alpha1']);
  t.deepEqual(judged(amber), ['Copied', true, 'v9']);
  t.deepEqual(judged(cedar), ['Copied', true, 'v9'], 'for a shard that declares nothing, as readers see it');
  declareIn(catalogue, aPlace({ shard: 'bravo' }), aClusterCachedResource({ version: 'v2' }));
  t.deepEqual(judged(bravo), ['Instance', false, 'v2']);
  withdrawFrom(catalogue, aPlace({ shard: 'bravo' }));
  t.deepEqual(judged(bravo), ['Copied', true, 'v9']);
  withdrawFrom(catalogue, aPlace({ name: '0' }));
  t.is(judged(bravo), undefined);
});

test('a key belongs to a type only with exactly its group: core is a spelling of URLs', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const amber = shardName('amber');
  declareIn(catalogue, aPlace(), aClusterCachedResource({ group: 'core', resource: 'configmaps', version: 'v1', kind: 'ConfigMap' }));
  const configMaps = { group: '', resource: 'configmaps', identity: 'hash-a' };

  t.is(catalogue.find(configMaps, amber)?.kind, 'ConfigMap');
  t.true(catalogue.declares(configMaps));
  for (const other of [{ group: 'core' }, { identity: '' }, { identity: 'hash-b' }, { resource: 'secrets' }]) {
    t.is(catalogue.find({ ...configMaps, ...other }, amber), undefined);
    t.false(catalogue.declares({ ...configMaps, ...other }));
  }
  t.is(catalogue.find({ group: 'apis.kcp.io', resource: 'apiexports', identity: '' }, amber)?.kind, 'APIExport');
  t.is(catalogue.find({ group: 'apis.kcp.io', resource: 'apiexports', identity: 'hash-a' }, amber), undefined);
});

test('a ClusterCachedResource of more than 64 KiB declares nothing, and revokes its earlier declaration', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const { length } = aClusterCachedResource();
  const padded = (bytes: number): Uint8Array => {
    const body = new Uint8Array(bytes).fill(' '.charCodeAt(0));
    body.set(aClusterCachedResource());
    return body;
  };
  t.true(length < 64 * 1024);

  declareIn(catalogue, aPlace(), padded(64 * 1024));
  t.is(catalogue.declared().length, 1);

  t.is(declareIn(catalogue, aPlace(), padded(64 * 1024 + 1)).length, 1);
  t.is(catalogue.declared().length, 0);
});

for (const { of, max, at } of [
  { of: 'a shard', max: 20_000, at: (index: number) => ({ cluster: `c${index}`, identity: `hash-${index}` }) },
  { of: 'one logical cluster', max: 1_000, at: (index: number) => ({ cluster: 'acme', identity: `hash-${index}` }) },
  { of: 'one type', max: 1_000, at: (index: number) => ({ cluster: `c${index}`, identity: 'hash' }) },
])
  test(`at most ${max} ClusterCachedResources of ${of} declare types, and other shards are not affected`, (t) => {
    const catalogue = new Catalogue(kcpTypes);
    const place = (index: number, shard: string) => aPlace({ shard, cluster: `${at(index).cluster}-${shard}`, name: `of-${index}` });
    const declare = (index: number, shard = 'amber') =>
      declareIn(catalogue, place(index, shard), aClusterCachedResource({ identity: at(index).identity }));
    const declares = (index: number, shard = 'amber') => {
      const { cluster } = place(index, shard);
      return catalogue.resolve(aRequest({ cluster, identity: at(index).identity })).kind === 'found';
    };
    for (let index = 0; index < max; index += 1) declare(index);
    t.true(declares(max - 1));

    t.deepEqual(declare(max), []);
    t.false(declares(max));
    declare(0, 'birch');
    t.true(declares(0, 'birch'));
    t.deepEqual(declare(7), [], 'one that already declares a type may be written again');
    t.false(declares(max), 'it keeps its place');
    withdrawFrom(catalogue, place(0, 'amber'));
    t.true(declares(max), 'the one that was waiting');
    declare(0);
    t.false(declares(0));
  });

test('a type that only waiting ClusterCachedResources name is not served; its objects stay until the last of these is deleted', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const full = aClusterCachedResource({ identity: 'other' });
  for (let index = 0; index < 20_000; index += 1)
    declareIn(catalogue, aPlace({ cluster: `c${index}` }), aClusterCachedResource({ identity: `other-${index}` }));
  const type = { group: 'machines.svm.io', resource: 'instances', identity: 'hash-a' };
  const first = aPlace({ cluster: 'c1' });

  t.deepEqual(declareIn(catalogue, first, aClusterCachedResource({ identity: 'other-0' })), [{ ...type, identity: 'other-1' }]);
  declareIn(catalogue, aPlace({ cluster: 'late' }), aClusterCachedResource());
  declareIn(catalogue, aPlace({ cluster: 'later' }), aClusterCachedResource());

  t.is(catalogue.find(type, shardName('amber')), undefined);
  t.true(catalogue.declares(type));
  t.deepEqual(withdrawFrom(catalogue, aPlace({ cluster: 'late' })), []);
  t.deepEqual(declareIn(catalogue, aPlace({ cluster: 'later' }), full), [type]);
  t.false(catalogue.declares(type));
});

largeTest('objects of a type stay while any of 1,700 ClusterCachedResources declares it, in whatever order they are deleted', (t) => {
  const type = { group: 'machines.svm.io', resource: 'instances', identity: 'hash-a' };
  const places = Array.from({ length: 1_700 }, (_, index) => aPlace({ cluster: `c${index % 30}`, name: `of-${index}` }));
  for (const order of [places, places.toReversed()]) {
    const catalogue = new Catalogue(kcpTypes);
    for (const place of places) declareIn(catalogue, place, aClusterCachedResource());
    for (const place of order.slice(0, -1)) {
      t.deepEqual(withdrawFrom(catalogue, place), []);
      if (catalogue.find(type, shardName('amber')) === undefined) t.fail(`not served once ${place.name} is gone`);
    }
    t.deepEqual(withdrawFrom(catalogue, order.at(-1)!), [type]);
  }
});

test('the next waiting ClusterCachedResource is the first within all limits: one that still exceeds another limit is passed over', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const declare = (cluster: string, name: string, identity: string): readonly unknown[] =>
    declareIn(catalogue, aPlace({ cluster, name }), aClusterCachedResource({ identity }));
  const serves = (cluster: string, identity: string): boolean => catalogue.resolve(aRequest({ cluster, identity })).kind === 'found';
  for (let index = 0; index < 1_000; index += 1) declare(`c${index}`, 'popular', 'popular');
  for (let index = 0; index < 1_000; index += 1) declare('full', `of-${index}`, `own-${index}`);
  declare('full', 'popular', 'popular');
  declare('free', 'popular', 'popular');

  withdrawFrom(catalogue, aPlace({ cluster: 'c0', name: 'popular' }));
  t.false(serves('full', 'popular'));
  t.true(serves('free', 'popular'));

  withdrawFrom(catalogue, aPlace({ cluster: 'full', name: 'of-0' }));
  t.false(serves('full', 'popular'), 'its type has reached its limit');
  withdrawFrom(catalogue, aPlace({ cluster: 'c1', name: 'popular' }));
  t.true(serves('full', 'popular'));
});

largeTest('at most 20,000 ClusterCachedResources of a shard wait', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const type = { group: 'machines.svm.io', resource: 'instances', identity: 'hash-a' };
  const last = { ...type, identity: 'hash-z' };
  for (let index = 0; index < 21_000; index += 1) declareIn(catalogue, aPlace({ cluster: `c${index}` }), aClusterCachedResource());
  for (let index = 0; index < 19_000; index += 1)
    declareIn(catalogue, aPlace({ cluster: `d${index}` }), aClusterCachedResource({ identity: `own-${index}` }));

  declareIn(catalogue, aPlace({ cluster: 'late' }), aClusterCachedResource({ identity: 'hash-z' }));
  t.false(catalogue.declares(last), 'forgotten');
  withdrawFrom(catalogue, aPlace({ cluster: 'c20999' }));
  declareIn(catalogue, aPlace({ cluster: 'late' }), aClusterCachedResource({ identity: 'hash-z' }));
  t.true(catalogue.declares(last), 'after it is written again, it waits');
  declareIn(catalogue, aPlace({ shard: 'birch' }), aClusterCachedResource({ identity: 'hash-b' }));
  t.not(catalogue.find({ ...type, identity: 'hash-b' }, shardName('birch')), undefined, 'another shard has its own limit');
});

test('discovery of a cluster shows built-in types and those the cluster declares; discovery of the wildcard shows each type once', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  declareIn(catalogue, aPlace(), aClusterCachedResource());
  declareIn(catalogue, aPlace({ cluster: 'beta' }), aClusterCachedResource({ identity: 'hash-b' }));
  declareIn(
    catalogue,
    aPlace({ cluster: 'beta', name: 'disks' }),
    aClusterCachedResource({ identity: 'hash-c', resource: 'disks', kind: 'Disk' }),
  );
  const declaredIn = (cluster: string) =>
    catalogue
      .forCluster(cluster)
      .slice(kcpTypes.length)
      .map(({ resource, identity }) => `${resource}:${identity}`);

  t.deepEqual(catalogue.forCluster('acme').slice(0, kcpTypes.length), [...kcpTypes]);
  t.deepEqual(declaredIn('acme'), ['instances:hash-a']);
  t.deepEqual(declaredIn('beta'), ['disks:hash-c', 'instances:hash-b']);
  t.deepEqual(declaredIn('gamma'), []);
  t.deepEqual(declaredIn('*'), ['disks:hash-c', 'instances:hash-a']);
  t.is(catalogue.declared().length, 3);
});

test('stable versions precede beta and alpha, higher numbers precede lower ones, and other spellings come last', (t) => {
  const versions = ['foo10', 'v1', 'v11alpha2', 'v3beta1', 'foo1', 'v10', 'v12alpha1', 'v10beta3', 'v11beta2', 'v2', 'v0', 'v1gamma1'];

  t.deepEqual(
    versions.toSorted((left, right) => compareVersions(left, right)),
    ['v10', 'v2', 'v1', 'v11beta2', 'v10beta3', 'v3beta1', 'v12alpha1', 'v11alpha2', 'foo1', 'foo10', 'v0', 'v1gamma1'],
  );
});

test('a ClusterCachedResource as kcp writes it declares its type from when it has an identity until it is deleted', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const place = { shard: 'root', cluster: '2jru3535m9df8fm6', name: 'instances' };
  const lines = readFileSync(projectFile('test/clients/golden/kcp-identity.jsonl'), 'utf8')
    .split('\n')
    .filter((text) => text !== '');
  const writes = lines
    .map((line) => JSON.parse(line))
    .filter(({ method, url, status }) => method !== 'GET' && url.includes('/clustercachedresources') && status < 300);
  t.true(writes.length > 5);
  for (const { body } of writes) {
    const gone = declareIn(catalogue, place, encoder.encode(body));

    const identity = JSON.parse(body).status?.identityHash;
    t.deepEqual(gone, []);
    t.deepEqual(
      catalogue.declared().map((type) => [type.kind, type.group, type.namespaced, type.identity]),
      identity === undefined ? [] : [['Instance', 'machines.svm.io', false, identity]],
    );
  }
  t.is(withdrawFrom(catalogue, place).length, 1);
  t.deepEqual(catalogue.declared(), []);
});

test('short names are those of the definitions in kcp and in Kubernetes', (t) => {
  const named = kcpTypes.flatMap(({ resource, shortNames }) => shortNames.map((name) => `${name} ${resource}`));

  t.deepEqual(named, ['crd customresourcedefinitions', 'crds customresourcedefinitions']);
});

test('a request without an identity means another one only once the first ClusterCachedResource of its logical cluster names another', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  const asked = { group: 'machines.svm.io', resource: 'instances', cluster: 'acme' };
  const steps: readonly [string, isOther: boolean, () => unknown][] = [
    ['the first', true, () => declareIn(catalogue, aPlace({ name: 'm' }), aClusterCachedResource())],
    ['a later name', false, () => declareIn(catalogue, aPlace({ name: 'z' }), aClusterCachedResource({ identity: 'hash-b' }))],
    [
      'another logical cluster',
      false,
      () => declareIn(catalogue, aPlace({ cluster: 'beta', name: 'a' }), aClusterCachedResource({ identity: 'hash-b' })),
    ],
    [
      'another type',
      false,
      () => declareIn(catalogue, aPlace({ name: 'b' }), aClusterCachedResource({ resource: 'others', identity: 'hash-b' })),
    ],
    ['the first again', false, () => declareIn(catalogue, aPlace({ name: 'm' }), aClusterCachedResource({ version: 'v2' }))],
    ['an earlier name', true, () => declareIn(catalogue, aPlace({ name: 'a' }), aClusterCachedResource({ identity: 'hash-b' }))],
    ['one that is not the first goes', false, () => withdrawFrom(catalogue, aPlace({ name: 'm' }))],
    ['the first goes, the next names the same', false, () => withdrawFrom(catalogue, aPlace({ name: 'a' }))],
    ['the last goes', false, () => withdrawFrom(catalogue, aPlace({ name: 'z' }))],
    ['another identity comes after it', true, () => declareIn(catalogue, aPlace({ name: 'm' }), aClusterCachedResource())],
  ];

  for (const [title, isOther, step] of steps) {
    const before = revision;
    step();
    t.is(catalogue.hasIdentityChangedSince(asked, before), isOther, title);
    t.false(catalogue.hasIdentityChangedSince(asked, revision), title);
  }
});

test('discovery of * shows the first 1,000 declared types by name, and discovery of a logical cluster shows all', (t) => {
  const catalogue = new Catalogue(kcpTypes);
  for (let i = 0; i < 1_500; i += 1)
    declareIn(
      catalogue,
      aPlace({ cluster: `c${i % 2}`, name: `n${i}` }),
      aClusterCachedResource({ group: `g${String(i).padStart(4, '0')}.io`, identity: `h${i}` }),
    );

  const all = catalogue.forCluster('*').filter(({ identity }) => identity !== '');

  t.is(all.length, 1_000);
  t.is(all.at(-1)?.group, 'g0999.io');
  t.is(catalogue.forCluster('c1').filter(({ identity }) => identity !== '').length, 750);
});
