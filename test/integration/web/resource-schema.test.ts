import { test } from '../../support/test.js';
import type { ServedType } from '../../../src/domain/catalogue/catalogue.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { formatSchema } from '../../../src/web/discovery/openapi-schema.js';
import { parseResourceSchema, schemasNamedBy } from '../../../src/web/discovery/resource-schema.js';
import { recordedObjects } from '../../demo/recorded-shards.js';
import { fastestMs } from '../../support/fastest.js';

const workspaceTypes = typeOf('WorkspaceType');
const names = { kind: 'WorkspaceType', plural: 'workspacetypes' };

const anything = { 'x-kubernetes-preserve-unknown-fields': true };

test('an APIExport names schemas by group and resource, in each of its versions', (t) => {
  const named = { group: 'tenancy.kcp.io', resource: 'workspacetypes', name: 'v1.workspacetypes.tenancy.kcp.io' };
  const { name: schema, group, resource: name } = named;

  t.deepEqual(schemasNamedBy(body({ resources: [{ group, name, schema, storage: { crd: {} } }] })), [named]);
  t.deepEqual(schemasNamedBy(body({ latestResourceSchemas: [schema] })), [named]);
});

test('an APIExport of unexpected form names no schemas, whatever is wrong with it', (t) => {
  const odd = [null, 7, 'text', [], {}, { group: 'a.io' }, { group: 'a.io', name: 1, schema: {} }];
  const many = { resources: Array.from({ length: 15_000 }, () => ({})) };

  for (const spec of [null, 7, [], {}, { resources: {} }, { resources: odd }, { latestResourceSchemas: [null, 7, {}] }, many])
    t.deepEqual(schemasNamedBy(body(spec)), []);
  t.deepEqual(schemasNamedBy(Buffer.from('[]')), []);
  t.deepEqual(schemasNamedBy(body({ latestResourceSchemas: ['short'] })), [{ group: '', resource: '', name: 'short' }]);
});

test('every field of a real schema is described, except the fields of all objects, and nothing else of it is kept', async (t) => {
  const recorded = await recordedObjects('kcp-2-shards.jsonl');
  const schemas = recorded.filter(({ collection }) => /clusters\/root\/.*\/apiresourceschemas$/.test(collection));
  const read = kcpTypes.flatMap((type) =>
    schemas.flatMap(({ object }) => {
      const found = parseResourceSchema(Buffer.from(JSON.stringify(object)), type);
      return [...found].map(([version, schema]) => ({ kind: type.kind, version, schema }));
    }),
  );

  t.deepEqual(read.map(({ kind, version }) => `${kind} ${version}`).toSorted(), [
    'CachedObject v1alpha1',
    'ClusterCachedResource v1alpha1',
    'ClusterCachedResourceEndpointSlice v1alpha1',
    'LogicalCluster v1alpha1',
    'LogicalClusterMigration v1alpha1',
    'Shard v1alpha1',
    'WorkspaceType v1alpha1',
  ]);
  for (const { schema } of read) {
    const { status: _, ...fields } = schema.fields;
    t.deepEqual(Object.keys(fields), ['spec']);
  }
  const { schema } = read.find(({ kind }) => kind === 'WorkspaceType')!;
  const text = JSON.stringify(schema);
  t.regex(text, /"defaultChildWorkspaceType":\{"type":"object","description":"/);
  t.notRegex(text, /x-kubernetes-(?:validations|list|map)|"(?:pattern|maxLength|default)":/);
});

test('a schema counts only for its own group, resource and kind, and for versions that are served', (t) => {
  const version = { name: 'v1alpha1', schema: { type: 'object', properties: { spec: {} } } };
  const said = (spec: object) => [
    ...parseResourceSchema(body({ group: 'tenancy.kcp.io', names, versions: [version], ...spec }), workspaceTypes),
  ];

  t.deepEqual(said({}), [['v1alpha1', { fields: { spec: anything } }]]);
  t.deepEqual(said({ versions: [{ ...version, name: 'v1' }, null, 7, version] }), [['v1alpha1', { fields: { spec: anything } }]]);
  for (const spec of [
    { group: 'tenancy.io' },
    { names: { ...names, kind: 'Workspace' } },
    { names: { ...names, plural: 'workspaces' } },
    { names: null },
    { versions: [{ ...version, name: 'v2' }] },
    { versions: {} },
  ])
    t.deepEqual(said(spec), []);
});

test('a schema without fields is ignored', (t) => {
  for (const schema of [
    undefined,
    null,
    7,
    'text',
    [],
    {},
    { type: 'object', description: 'any' },
    { properties: [] },
    { properties: 'text' },
  ])
    t.is(kindSchema(schema), undefined, JSON.stringify(schema));
});

test('members that OpenAPI does not have, and references, are left out', (t) => {
  const odd = {
    description: 7,
    required: ['spec', 7],
    $ref: '#/components/schemas/other',
    'x-kubernetes-group-version-kind': 7,
    properties: {
      metadata: { description: 'theirs' },
      list: { type: ['array'], items: [{}], enum: ['a', {}] },
      map: { type: 'object', additionalProperties: { $ref: '#', type: 'string', format: {} } },
      any: { 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-int-or-string': 'yes', additionalProperties: false },
      wrong: 'text',
      nothing: null,
      chosen: { enum: ['a', 1, true] },
    },
  };

  t.deepEqual(kindSchema(odd), {
    fields: {
      list: anything,
      map: { type: 'object', additionalProperties: { type: 'string' } },
      any: { 'x-kubernetes-preserve-unknown-fields': true, additionalProperties: false },
      wrong: anything,
      nothing: anything,
      chosen: { enum: ['a', 1, true] },
    },
  });
});

test('a schema with half a surrogate pair is ignored, one with whole characters is not', (t) => {
  t.is(kindSchema({ description: 'half \ud800', properties: {} }), undefined);
  t.is(kindSchema({ properties: { '\udc00': {} } }), undefined);
  t.deepEqual(kindSchema({ description: 'whole \ud83d\ude00', properties: {} }), { description: 'whole \ud83d\ude00', fields: {} });
});

test('a field with the name __proto__ is a field like others', (t) => {
  const schema = JSON.parse(
    '{"__proto__":{"description":"not mine"},"properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}',
  );
  const found = kindSchema(schema)!;
  const { properties, description } = JSON.parse(formatSchema(workspaceTypes, 'v1alpha1', found));

  t.deepEqual(Object.keys(properties), ['apiVersion', 'kind', 'metadata', '__proto__', 'constructor']);
  t.regex(description, /^WorkspaceType of a shard/);
});

test('of 4,000 levels the deepest are not described, and a schema beyond the bounds is ignored', (t) => {
  const levels = 4_000;
  const deep = `${'{"properties":{"a":'.repeat(levels)}{}${'}}'.repeat(levels)}`;
  const fields = Object.fromEntries(Array.from({ length: 15_000 }, (_, index) => [`f${index}`, {}]));

  const text = formatSchema(workspaceTypes, 'v1alpha1', parseResourceSchema(inVersion(deep), workspaceTypes).get('v1alpha1')!);
  t.is(text.split('"a":').length - 1, 65);
  t.is(kindSchema({ properties: { spec: {} }, padding: 'x'.repeat(256 * 1024) }), undefined);
  t.is(kindSchema({ properties: fields }), undefined);
});

function kindSchema(schema: unknown) {
  return parseResourceSchema(inVersion(JSON.stringify(schema) ?? 'null'), workspaceTypes).get('v1alpha1');
}

/** The body of an APIResourceSchema with `schema`, which is JSON. */
function inVersion(schema: string): Uint8Array {
  return Buffer.from(
    `{"spec":{"group":"tenancy.kcp.io","names":${JSON.stringify(names)},"versions":[{"name":"v1alpha1","schema":${schema}}]}}`,
  );
}

function body(spec: unknown): Uint8Array {
  return Buffer.from(JSON.stringify({ spec }));
}

function typeOf(kind: string): ServedType {
  return kcpTypes.find((type) => type.kind === kind)!;
}

test('text that could move a terminal’s cursor is left out, and the cache’s own fields are not replaced', (t) => {
  const spec = {
    ok: { type: 'string', description: 'a\n\tb' },
    bad: { type: 'string', description: '\u001b[2Jx' },
    'na\u0007me': { type: 'string' },
  };
  const found = kindSchema({
    properties: { spec: { type: 'object', properties: spec }, apiVersion: { type: 'object' }, kind: { type: 'integer' } },
  });

  t.deepEqual(Object.keys(found?.fields ?? {}), ['spec']);
  t.deepEqual((found!.fields['spec'] as { properties: object }).properties, {
    ok: { type: 'string', description: 'a\n\tb' },
    bad: { type: 'string' },
  });
});

test('a name that no object can have is skipped quickly, however long it is', (t) => {
  const body = Buffer.from(JSON.stringify({ spec: { latestResourceSchemas: ['.'.repeat(200_000), 'v1.widgets.example.io'] } }));

  t.deepEqual(schemasNamedBy(body), [{ group: 'example.io', resource: 'widgets', name: 'v1.widgets.example.io' }]);
  const tookMs = fastestMs(() => schemasNamedBy(body), 5);
  t.true(tookMs < 10, `${tookMs} ms`);
});
