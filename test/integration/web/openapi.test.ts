import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { openApiDocument, openApiIndex, type Sources } from '../../../src/web/discovery/openapi.js';
import { reviewTypes } from '../../../src/web/reviews/review-types.js';
import type { KubeClient } from '../../support/kube-client.js';
import { anApiExport, anApiResourceSchema, aPath } from '../../support/objects.js';
import { aServer } from '../../support/test-server.js';

const served = kcpTypes.flatMap((type) => type.versions.map(({ name }) => ({ type, version: name })));

/** No shard has published a schema. */
const nothing: Sources = { published: new Map(), release: '1.2.3' };
const kindExtension = 'x-kubernetes-group-version-kind';

type PatchOperation = Readonly<{
  [kindExtension]: { kind: string };
  parameters: readonly { name: string; in: string }[];
  requestBody: { content: Record<string, unknown> };
}>;

test('the index names a document for every group version, with the hash that is its ETag', (t) => {
  const index = openApiIndex(kcpTypes, nothing);
  const { paths } = JSON.parse(index.body);

  t.regex(index.etag, /^"[0-9A-F]{64}"$/);
  t.deepEqual(Object.keys(paths).toSorted(), [...new Set(served.map(({ type, version }) => `apis/${type.group}/${version}`))].toSorted());
  for (const { type, version } of served) {
    const { etag } = openApiDocument(kcpTypes, nothing, { group: type.group, version }) ?? { etag: '' };
    t.is(paths[`apis/${type.group}/${version}`].serverRelativeURL, `/openapi/v3/apis/${type.group}/${version}?hash=${etag.slice(1, -1)}`);
  }
});

test('the PATCH operation of every kind has fieldValidation, and offers no patch type that kubectl would compute from schemas', (t) => {
  for (const { type, version } of served) {
    const { openapi, paths } = JSON.parse(openApiDocument(kcpTypes, nothing, { group: type.group, version })?.body ?? '');
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

test('paths follow the scope of the type, and every reference leads to a schema', (t) => {
  const { paths, components } = JSON.parse(
    openApiDocument(kcpTypes, nothing, { group: 'rbac.authorization.k8s.io', version: 'v1' })?.body ?? '',
  );
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

  t.deepEqual(Object.keys(JSON.parse(openApiIndex(types, nothing).body).paths), ['api/v1']);
  t.true('/api/v1/configmaps/{name}' in JSON.parse(openApiDocument(types, nothing, { group: '', version: 'v1' })?.body ?? '').paths);
});

test('a group version that is not served has no document', (t) => {
  t.is(openApiDocument(kcpTypes, nothing, { group: '', version: 'v1' }), undefined);
  t.is(openApiDocument(kcpTypes, nothing, { group: 'apis.kcp.io', version: 'v1' }), undefined);
  t.is(openApiDocument(kcpTypes, nothing, { group: '__proto__', version: 'v1' }), undefined);
});

test('a review can be posted but not patched, and its schema describes question and answer', (t) => {
  const { paths, components } = JSON.parse(
    openApiDocument(reviewTypes, nothing, { group: 'authorization.k8s.io', version: 'v1' })?.body ?? '',
  );
  const { spec, status, metadata } = components.schemas['io.k8s.authorization.v1.SelfSubjectAccessReview'].properties;

  t.deepEqual(
    Object.entries(paths).map(([path, operations]) => [path, Object.keys(operations as object)]),
    ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'].map((resource) => [`/apis/authorization.k8s.io/v1/${resource}`, ['post']]),
  );
  t.deepEqual(Object.keys(spec.properties), ['resourceAttributes', 'nonResourceAttributes']);
  t.deepEqual(Object.keys(status.properties), ['allowed', 'reason']);
  t.regex(metadata.description, /not stored/);
});

test('while an APIExport in root names a schema for a kind, the document has that schema, and a hash of its own', async (t) => {
  const client = (await aServer(t)).client();
  const before = await readDocument(t, client);
  t.deepEqual(Object.keys(before.schema.properties), ['apiVersion', 'kind', 'metadata', 'spec', 'status']);

  await client.create(exports, exporting('one.workspacetypes.tenancy.kcp.io'));
  t.is((await readDocument(t, client)).hash, before.hash);
  await client.create(
    schemas,
    anApiResourceSchema('one.workspacetypes.tenancy.kcp.io', {
      description: 'A type of workspace.',
      required: ['spec'],
      properties: { spec: { properties: { limit: { type: 'integer', description: 'How many.' } } }, metadata: { description: 'theirs' } },
    }),
  );
  const published = await readDocument(t, client);
  t.not(published.hash, before.hash);
  t.is(published.schema.description, 'A type of workspace.');
  t.deepEqual(published.schema.required, ['spec']);
  t.deepEqual(published.schema.properties['spec'], { properties: { limit: { type: 'integer', description: 'How many.' } } });
  t.deepEqual(published.schema.properties['metadata'], before.schema.properties['metadata']);
  t.deepEqual(published.schema[kindExtension], [{ group: 'tenancy.kcp.io', version: 'v1alpha1', kind: 'WorkspaceType' }]);
  t.true(published.schema['x-kubernetes-preserve-unknown-fields']);
  t.deepEqual(published.paths, before.paths);

  await client.mergePatch(`${schemas}/one.workspacetypes.tenancy.kcp.io`, {
    spec: { versions: [{ name: 'v1alpha1', schema: { properties: { spec: { description: 'changed' } } } }] },
  });
  const changed = await readDocument(t, client);
  t.false([before.hash, published.hash].includes(changed.hash));
  t.deepEqual(changed.schema.properties['spec'], { description: 'changed' });

  await client.delete(`${exports}/tenancy.kcp.io`);
  t.deepEqual(await readDocument(t, client), before);
});

test('the first shard with a usable schema counts; schemas outside root never do', async (t) => {
  const client = (await aServer(t)).client();
  const before = await readDocument(t, client);
  const put = async (shard: string, schema: Record<string, unknown> | undefined, cluster = 'root') => {
    const place = { shard, cluster };
    await client.create(aPath(place), exporting('one.workspacetypes.tenancy.kcp.io'));
    if (schema !== undefined) await client.create(aPath({ ...place, resource: 'apiresourceschemas', version: 'v1alpha1' }), schema);
  };
  const saying = (description: string, spec?: Record<string, unknown>) =>
    anApiResourceSchema('one.workspacetypes.tenancy.kcp.io', { description, properties: {} }, spec);

  await put('a', saying('elsewhere'), 'acme');
  await put('a', undefined);
  await put('b', saying('of another kind', { names: { kind: 'Workspace', plural: 'workspacetypes' } }));
  await put('c', saying('x'.repeat(70_000)));
  await put('d', saying('x'.repeat(300_000)));
  await put('e', saying('of another version', { versions: [{ name: 'v1', schema: { properties: {} } }] }));
  await put('f', anApiResourceSchema('one.workspacetypes.tenancy.kcp.io', ['not', 'a', 'schema']));
  t.deepEqual(await readDocument(t, client), before);

  await put('h', saying('the last'));
  t.is((await readDocument(t, client)).schema.description, 'the last');
  await put('g', saying('the first'));
  t.is((await readDocument(t, client)).schema.description, 'the first');
});

test('no schema breaks a document, however deep it is, and whatever its names and values are', async (t) => {
  const client = (await aServer(t)).client();
  const levels = 4_000;
  const deep = `${'{"properties":{"a":'.repeat(levels)}{}${'}}'.repeat(levels)}`;
  const odd = `{"properties":{"__proto__":{"type":"string"},"deep":${deep},"ref":{"$ref":"#/nowhere","description":[]}}}`;
  const object = JSON.stringify(anApiResourceSchema('odd.workspacetypes.tenancy.kcp.io', 'SCHEMA')).replace('"SCHEMA"', odd);

  await client.create(exports, exporting('odd.workspacetypes.tenancy.kcp.io'));
  await client.create(schemas, object);
  const { schema } = await readDocument(t, client);

  t.deepEqual(Object.keys(schema.properties), ['apiVersion', 'kind', 'metadata', '__proto__', 'deep', 'ref']);
  t.deepEqual(schema.properties['ref'], { 'x-kubernetes-preserve-unknown-fields': true });
});

test('OpenAPI v2 has no definitions, in JSON and in the protobuf that kubectl requests', async (t) => {
  const server = await aServer(t);
  const path = '/services/cache/shards/birch/clusters/acme/openapi/v2';
  const ask = (accept: string, method = 'GET') => server.client().raw(method, path, { headers: { accept } });
  const protobuf = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';

  const inJson = await ask('application/json');
  const { swagger, info, paths, ...more } = JSON.parse(inJson.text);
  t.deepEqual([inJson.headers['content-type'], swagger, paths, more], ['application/json', '2.0', {}, {}]);

  const inProtobuf = await ask(`${protobuf}, application/json`);
  // Each field: number and wire type, then the length.
  const ofInfo = `\x0a\x06Strata\x12${String.fromCharCode(info.version.length)}${info.version}`;
  t.is(inProtobuf.headers['content-type'], protobuf.replace('@', '.'));
  t.is(inProtobuf.text, `\x0a\x032.0\x12${String.fromCharCode(ofInfo.length)}${ofInfo}\x42\x00`);

  t.not(inJson.headers['etag'], inProtobuf.headers['etag']);
  t.is((await ask('application/xml')).status, 406);
  t.is((await ask('application/json', 'POST')).status, 404);
  t.is((await server.client().raw('GET', `${path}/more`)).status, 404);
});

const exports = aPath({ cluster: 'root' });
const schemas = aPath({ cluster: 'root', resource: 'apiresourceschemas', version: 'v1alpha1' });

function exporting(schema: string): Record<string, unknown> {
  const resources = [{ group: 'tenancy.kcp.io', name: 'workspacetypes', schema, storage: { crd: {} } }];
  return anApiExport({ name: 'tenancy.kcp.io' }, { spec: { resources } });
}

type KindSchema = Readonly<{
  description: string;
  required?: readonly string[];
  properties: Readonly<Record<string, unknown>>;
  [kindExtension]: unknown;
  'x-kubernetes-preserve-unknown-fields': boolean;
}>;

/** The document of tenancy.kcp.io to which the index leads, with the schema of WorkspaceType. */
async function readDocument(t: ExecutionContext, client: KubeClient) {
  const prefix = '/services/cache/shards/birch/clusters/acme';
  const index = JSON.parse((await client.raw('GET', `${prefix}/openapi/v3`)).text);
  const url: string = index.paths['apis/tenancy.kcp.io/v1alpha1'].serverRelativeURL;
  const { status, headers, text } = await client.raw('GET', `${prefix}${url}`);
  const [, hash = ''] = /\?hash=(.*)$/.exec(url) ?? [];
  t.is(status, 200);
  t.is(headers['etag'], `"${hash}"`);
  const { paths, components } = JSON.parse(text);
  return { hash, paths, schema: components.schemas['io.kcp.tenancy.v1alpha1.WorkspaceType'] as KindSchema };
}
