import test from 'ava';
import { kcpTypes } from '../../src/domain/catalogue-kcp.js';
import { openApiDocument, openApiIndex } from '../../src/web/openapi.js';
import { reviewTypes } from '../../src/web/review-types.js';

const served = kcpTypes.flatMap((type) => type.versions.map(({ name }) => ({ type, version: name })));

const kindExtension = 'x-kubernetes-group-version-kind';

type PatchOperation = Readonly<{
  [kindExtension]: { kind: string };
  parameters: readonly { name: string; in: string }[];
  requestBody: { content: Record<string, unknown> };
}>;

test('the index names a document for every group version, by the hash that is its ETag', (t) => {
  const index = openApiIndex(kcpTypes);
  const { paths } = JSON.parse(index.body);

  t.regex(index.etag, /^"[0-9A-F]{64}"$/);
  t.deepEqual(Object.keys(paths).toSorted(), [...new Set(served.map(({ type, version }) => `apis/${type.group}/${version}`))].toSorted());
  for (const { type, version } of served) {
    const { etag } = openApiDocument(kcpTypes, type.group, version) ?? { etag: '' };
    t.is(paths[`apis/${type.group}/${version}`].serverRelativeURL, `/openapi/v3/apis/${type.group}/${version}?hash=${etag.slice(1, -1)}`);
  }
});

test('the PATCH operation of every kind has fieldValidation and offers no patch that kubectl would compute from schemas', (t) => {
  for (const { type, version } of served) {
    const { openapi, paths } = JSON.parse(openApiDocument(kcpTypes, type.group, version)?.body ?? '');
    const patches = Object.values<{ patch?: PatchOperation }>(paths)
      .flatMap(({ patch }) => (patch === undefined ? [] : [patch]))
      .filter((patch) => patch[kindExtension].kind === type.kind);

    t.is(openapi, '3.0.0');
    t.is(patches.length, 1, type.kind);
    t.deepEqual(patches[0]?.[kindExtension], { group: type.group, version, kind: type.kind });
    t.true(patches[0]?.parameters.some((parameter) => parameter.name === 'fieldValidation' && parameter.in === 'query'));
    t.deepEqual(Object.keys(patches[0]?.requestBody.content ?? {}), ['application/json-patch+json', 'application/merge-patch+json']);
  }
});

test('paths follow the scope of the type, and every reference leads to a schema of the kind', (t) => {
  const { paths, components } = JSON.parse(openApiDocument(kcpTypes, 'rbac.authorization.k8s.io', 'v1')?.body ?? '');
  const prefix = '/apis/rbac.authorization.k8s.io/v1';

  t.true(`${prefix}/namespaces/{namespace}/roles/{name}` in paths);
  t.true(`${prefix}/clusterroles/{name}` in paths);
  t.deepEqual(
    paths[`${prefix}/namespaces/{namespace}/roles/{name}`].parameters.map(({ name }: { name: string }) => name),
    ['namespace', 'name'],
  );
  t.is(components.schemas['io.k8s.authorization.rbac.v1.Role']['x-kubernetes-group-version-kind'][0].kind, 'Role');
  for (const [, name = ''] of JSON.stringify(paths).matchAll(/#\/components\/schemas\/([^"]+)"/g)) t.true(name in components.schemas, name);
});

test('the documents of the core group are below api', (t) => {
  const types = kcpTypes
    .slice(0, 1)
    .map((type) => ({ ...type, group: '', resource: 'configmaps', kind: 'ConfigMap', versions: [{ name: 'v1', columns: [] }] }));

  t.deepEqual(Object.keys(JSON.parse(openApiIndex(types).body).paths), ['api/v1']);
  t.true('/api/v1/configmaps/{name}' in JSON.parse(openApiDocument(types, '', 'v1')?.body ?? '').paths);
});

test('there is no document where nothing is served', (t) => {
  t.is(openApiDocument(kcpTypes, '', 'v1'), undefined);
  t.is(openApiDocument(kcpTypes, 'apis.kcp.io', 'v1'), undefined);
  t.is(openApiDocument(kcpTypes, '__proto__', 'v1'), undefined);
});

test('a review can be posted, has no PATCH, and says what it asks and answers', (t) => {
  const { paths, components } = JSON.parse(openApiDocument(reviewTypes, 'authorization.k8s.io', 'v1')?.body ?? '');
  const { spec, status, metadata } = components.schemas['io.k8s.authorization.v1.SelfSubjectAccessReview'].properties;

  t.deepEqual(
    Object.entries(paths).map(([path, operations]) => [path, Object.keys(operations as object)]),
    ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'].map((resource) => [`/apis/authorization.k8s.io/v1/${resource}`, ['post']]),
  );
  t.deepEqual(Object.keys(spec.properties), ['resourceAttributes', 'nonResourceAttributes']);
  t.deepEqual(Object.keys(status.properties), ['allowed', 'reason']);
  t.regex(metadata.description, /not stored/);
});
