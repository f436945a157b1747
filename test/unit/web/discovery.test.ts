import { test } from '../../support/test.js';
import { fastestMs } from '../../support/fastest.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import type { ServedType } from '../../../src/domain/catalogue/catalogue.js';
import {
  apiGroup,
  apiGroups,
  apiResources,
  coreVersions,
  parseDiscoveryForm,
  versionAnswer,
  type Answer,
} from '../../../src/web/discovery/discovery.js';

const configMaps: ServedType = {
  group: '',
  resource: 'configmaps',
  identity: 'hash',
  kind: 'ConfigMap',
  listKind: 'ConfigMapList',
  singular: 'configmap',
  shortNames: ['cm'],
  categories: [],
  namespaced: true,
  nameRule: 'subdomain',
  strategicMerge: false,
  versions: [{ name: 'v1', columns: [] }],
  storageVersion: 'v1',
};

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const kubectl =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json';

function read(answer: Answer | undefined) {
  return JSON.parse(answer?.body ?? 'null');
}

type DiscoveredVersion = Readonly<{ version: string; freshness: string; resources: readonly { resource: string }[] }>;

test('the form of discovery follows the Accept header: best quality first, then first named', (t) => {
  const v2beta1 = 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList';
  const cases: [string | undefined, ReturnType<typeof parseDiscoveryForm>][] = [
    [kubectl, 'v2'],
    [`application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,${kubectl}`, 'v2'],
    [`${v2beta1},application/json`, 'v2beta1'],
    ['application/json; as=APIGroupDiscoveryList; v="v2"; g=apidiscovery.k8s.io', 'v2'],
    [`application/json;q=1,${v2beta1};q=0.9`, 'legacy'],
    [`application/json;q=0.8,${v2beta1};q=0.9`, 'v2beta1'],
    ['application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json', 'legacy'],
    ['application/json;g=meta.k8s.io;v=v1;as=Table', undefined],
    ['application/json;charset=utf-8', 'legacy'],
    ['application/json, */*', 'legacy'],
    ['*/*', 'legacy'],
    ['', 'legacy'],
    [undefined, 'legacy'],
    ['application/vnd.kubernetes.protobuf', undefined],
    ['application/vnd.kubernetes.protobuf,application/json', 'legacy'],
    ['application/json;q=0', 'legacy'],
    ['application/json;q=much', 'legacy'],
    [`application/json;q=0,${v2beta1};q=much`, 'legacy'],
    [`*/*,${v2beta1}`, 'v2beta1'],
    ['text/html;q=much', undefined],
    [',', undefined],
  ];
  for (const [accept, form] of cases) t.is(parseDiscoveryForm(accept), form, accept);
});

test('aggregated discovery names its form in Content-Type and lists each type once per version', (t) => {
  for (const form of ['v2', 'v2beta1'] as const) {
    const answer = apiGroups([...kcpTypes, configMaps], form);
    const { kind, apiVersion, items } = read(answer);

    t.is(answer.contentType, `application/json;g=apidiscovery.k8s.io;v=${form};as=APIGroupDiscoveryList`);
    t.is(kind, 'APIGroupDiscoveryList');
    t.is(apiVersion, `apidiscovery.k8s.io/${form}`);
    t.deepEqual(
      items.map((item: { metadata: { name: string } }) => item.metadata.name),
      [
        'apis.kcp.io',
        'core.kcp.io',
        'migration.kcp.io',
        'cache.kcp.io',
        'tenancy.kcp.io',
        'rbac.authorization.k8s.io',
        'admissionregistration.k8s.io',
        'apiextensions.k8s.io',
      ],
    );
    t.deepEqual(
      items[0].versions.map(({ version, freshness, resources }: DiscoveredVersion) => [
        version,
        freshness,
        resources.map(({ resource }) => resource),
      ]),
      [
        ['v1alpha2', 'Current', ['apiexports']],
        ['v1alpha1', 'Current', ['apiresourceschemas', 'apiconversions', 'apiexports', 'apiexportendpointslices']],
      ],
    );
    t.deepEqual(items[0].versions[0].resources[0], {
      resource: 'apiexports',
      responseKind: { group: 'apis.kcp.io', version: 'v1alpha2', kind: 'APIExport' },
      scope: 'Cluster',
      singularResource: 'apiexport',
      verbs,
      categories: ['kcp'],
    });
    t.is(items[5].versions[0].resources[0].scope, 'Namespaced');
  }
});

test('the legacy list names groups with their versions, the preferred one first', (t) => {
  const answer = apiGroups(kcpTypes, 'legacy');
  const { kind, apiVersion, groups } = read(answer);

  t.is(answer.contentType, 'application/json');
  t.deepEqual([kind, apiVersion, groups.length], ['APIGroupList', 'v1', 8]);
  const v1alpha2 = { groupVersion: 'apis.kcp.io/v1alpha2', version: 'v1alpha2' };
  const versions = [v1alpha2, { groupVersion: 'apis.kcp.io/v1alpha1', version: 'v1alpha1' }];
  t.deepEqual(groups[0], { name: 'apis.kcp.io', versions, preferredVersion: v1alpha2 });
  t.deepEqual(read(apiGroup(kcpTypes, 'apis.kcp.io')), {
    kind: 'APIGroup',
    apiVersion: 'v1',
    name: 'apis.kcp.io',
    versions,
    preferredVersion: v1alpha2,
  });
});

test('a group version lists its types', (t) => {
  t.deepEqual(read(apiResources(kcpTypes, 'apis.kcp.io', 'v1alpha2')), {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: 'apis.kcp.io/v1alpha2',
    resources: [{ name: 'apiexports', singularName: 'apiexport', namespaced: false, kind: 'APIExport', verbs, categories: ['kcp'] }],
  });
  const [crds] = read(apiResources(kcpTypes, 'apiextensions.k8s.io', 'v1')).resources;
  t.deepEqual(crds.shortNames, ['crd', 'crds']);
});

test('the core group has the kind List, without verbs, beside its served types', (t) => {
  for (const [types, names] of [
    [kcpTypes, ['lists']],
    [
      [...kcpTypes, configMaps],
      ['lists', 'configmaps'],
    ],
  ] as const) {
    t.deepEqual(read(coreVersions(types, 'legacy')).versions, ['v1']);
    const [{ metadata, versions: shown }] = read(coreVersions(types, 'v2')).items;
    const resources = read(apiResources(types, '', 'v1')).resources as readonly { name: string; kind: string; verbs: readonly string[] }[];

    t.deepEqual([metadata.name, shown.length, shown[0].version], ['', 1, 'v1']);
    t.deepEqual(
      shown[0].resources.map(({ resource }: { resource: string }) => resource),
      names,
    );
    t.deepEqual(
      resources.map(({ name }) => name),
      names,
    );
    t.deepEqual([resources[0]?.kind, resources[0]?.verbs], ['List', []]);
  }
});

test('types in the core group are not listed in other groups', (t) => {
  const types = [...kcpTypes, configMaps];
  t.false(read(apiGroups(types, 'legacy')).groups.some(({ name }: { name: string }) => name === ''));
});

test('the path of an unknown group or version gives 404', (t) => {
  t.is(apiGroup(kcpTypes, 'nothing.io'), undefined);
  t.is(apiGroup(kcpTypes, '__proto__'), undefined);
  t.is(apiGroup([configMaps], ''), undefined);
  t.is(apiResources(kcpTypes, 'nothing.io', 'v1'), undefined);
  t.is(apiResources(kcpTypes, 'apis.kcp.io', 'v1'), undefined);
  t.is(apiResources(kcpTypes, '', 'v2'), undefined);
});

test('the version has Kubernetes’ own form, every member a string, with Strata’s version after the plus', (t) => {
  const version = read(versionAnswer('0.1.0'));

  t.is(version.gitVersion, 'v1.36.0+strata-v0.1.0');
  t.deepEqual(Object.keys(version), [
    'major',
    'minor',
    'gitVersion',
    'gitCommit',
    'gitTreeState',
    'buildDate',
    'goVersion',
    'compiler',
    'platform',
  ]);
  t.true(Object.values(version).every((member) => typeof member === 'string'));
});

test('20,000 groups are described in linear time', (t) => {
  const of = (count: number) => Array.from({ length: count }, (_, i) => ({ ...configMaps, group: `g${i}.io` }));
  const [few, many] = [of(2_000), of(20_000)];

  for (const form of ['v2', 'legacy'] as const) {
    const fewMs = fastestMs(() => apiGroups(few, form), 3);
    t.true(fastestMs(() => apiGroups(many, form), 5) < 40 * fewMs + 20, form);
  }
});
