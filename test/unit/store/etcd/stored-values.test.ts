import { test } from '../../../support/test.js';
import { readValue, Unreadable, valueOf } from '../../../../src/store/etcd/stored-values.js';
import { aBody, aKey } from '../../../support/objects.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (value: Uint8Array): string => new TextDecoder().decode(value);

test('a value is the object and a line break, and is read as the same body', (t) => {
  const key = aKey();
  const body = aBody(key, { labels: { a: 'b' }, spec: { n: 12345 } });

  const value = valueOf(body);

  t.is(textOf(value), `${textOf(body.bytes)}\n`);
  t.deepEqual(readValue(key, value).body, body);
});

test('the key decides the place, whatever the annotations say; values from kcp’s cache server are kept unchanged', (t) => {
  const key = aKey({
    shard: 'birch',
    cluster: 'root',
    namespace: 'ns1',
    name: 'rb',
    group: 'rbac.authorization.k8s.io',
    resource: 'rolebindings',
  });
  const stored =
    '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"annotations":{"kcp.io/shard":"amber"},"generation":1,"name":"rb","namespace":"ns1"},"roleRef":{"big":12345678901234567890}}\n';

  const { bytes: made, version, marks } = readValue(key, bytes(stored)).body;

  const { metadata, roleRef } = JSON.parse(textOf(made)) as { metadata: { annotations: object }; roleRef: object };
  t.deepEqual(metadata.annotations, { 'kcp.io/shard': 'birch', 'kcp.io/cluster': 'root' });
  t.true(textOf(made).endsWith('"roleRef":{"big":12345678901234567890}}'));
  t.is(version, 'v1');
  t.is(textOf(made.subarray(marks.metadataStart, marks.metadataStart + 1)), '{');
  t.truthy(roleRef);
});

test('an object that a client may store can be read, even with the members that the store adds', (t) => {
  const labels = Object.fromEntries(Array.from({ length: 9_995 }, (_, i) => [`l${i}`, '']));
  const value = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'one', uid: 'u', generation: 1, labels } };
  t.notThrows(() => readValue(aKey(), bytes(JSON.stringify(value))));
});

test('a value whose name differs from its key is unreadable, because a list would have two objects of that name', (t) => {
  const named = (metadata: object): Uint8Array =>
    bytes(JSON.stringify({ apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata }));
  t.notThrows(() => readValue(aKey(), named({ name: 'one' })));
  for (const metadata of [{ name: 'two' }, {}, { name: null }, { name: 'one', namespace: 'ns' }])
    t.throws(() => readValue(aKey(), named(metadata)), { instanceOf: Unreadable, message: /its key is not/ });
  t.notThrows(() => readValue(aKey({ namespace: 'ns' }), named({ name: 'one', namespace: 'ns' })));
});

test('a value that is no object of its key’s group is unreadable, and the error says why', (t) => {
  for (const [value, why] of [
    ['', /./],
    ['k8s\u0000binary', /./],
    ['[]', /./],
    ['{}', /no kind/],
    ['{"kind":"APIExport","metadata":{}}', /apiVersion is null/],
    ['{"kind":"APIExport","apiVersion":"v1","metadata":{}}', /apiVersion is "v1", but its key is of the group "apis.kcp.io"/],
    ['{"kind":"APIExport","apiVersion":"apis.kcp.io/","metadata":{}}', /apiVersion/],
    ['{"kind":"APIExport","apiVersion":7,"metadata":{}}', /apiVersion is null/],
    ['{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":[]}', /cannot unmarshal array/],
    ['{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2"}', /no metadata/],
    ['{"kind":"APIBinding","apiVersion":"apis.kcp.io/v1alpha2","metadata":{"name":"one"}}', /its kind is "APIBinding"/],
    [`{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{},"spec":${'['.repeat(10_001)}${']'.repeat(10_001)}}`, /./],
  ] as const)
    t.regex(t.throws(() => readValue(aKey(), bytes(value)), { instanceOf: Unreadable }, value)?.message ?? '', why, value.slice(0, 80));
  t.throws(() => readValue(aKey(), Uint8Array.of(0x7b, 0xff, 0x7d)), { instanceOf: Unreadable, message: /UTF-8/ });
});
