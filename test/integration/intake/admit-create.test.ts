import { test } from '../../support/test.js';
import { parseCanonicalPath } from '../../../src/domain/cluster.js';
import type { Reason } from '../../../src/domain/errors.js';
import { mustParse } from '../../../src/domain/parsed.js';
import { admitCreate, type CreateInputs } from '../../../src/intake/admit/admit-create.js';
import { aCreate, aDeclaredType, anExport, aType, bytesOf, read, refusalOf, textOf } from '../../support/intake/bodies.js';
import { readTranscript } from '../../clients/golden/transcript.js';

type Refused = Readonly<{
  title: string;
  method: string;
  path: string;
  status: number;
  body?: string;
  answer: Readonly<{ reason: Reason; message: string; details?: unknown }>;
}>;

function created(text: string, changes: Partial<CreateInputs> = {}) {
  const { mutation, warnings, generated } = mustParse(admitCreate(bytesOf(text), aCreate(changes)));
  return { mutation, warnings, generated, object: read(textOf(mutation)) };
}

function refusedCreate(text: string, changes: Partial<CreateInputs> = {}) {
  return refusalOf(admitCreate(bytesOf(text), aCreate(changes)));
}

test('a new object gets uid, time and generation, and is not marked for deletion', (t) => {
  const sent = {
    name: 'one',
    uid: 'theirs',
    generation: 7,
    creationTimestamp: '2020-01-02T03:04:05Z',
    deletionTimestamp: '2020-01-02T03:04:05Z',
    deletionGracePeriodSeconds: 30,
    selfLink: '/x',
  };
  const { mutation, object, generated } = created(anExport(sent));

  t.deepEqual(object, {
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIExport',
    metadata: {
      annotations: { 'kcp.io/cluster': 'acme', 'kcp.io/shard': 'amber' },
      name: 'one',
      uid: 'made-uid',
      generation: 1,
      creationTimestamp: '2026-11-21T00:40:56Z',
      resourceVersion: '1000000000000007',
    },
    spec: { n: 1 },
  });
  t.deepEqual(mutation.key, {
    resource: { group: 'apis.kcp.io', resource: 'apiexports', identity: '' },
    shard: aCreate().shard,
    cluster: aCreate().cluster,
    namespace: '',
    name: 'one',
  });
  t.is(mutation.expect, 'absent');
  t.false(generated);
});

test('a replica keeps its metadata; only a missing uid or time is filled in', (t) => {
  const annotations = { 'kcp.io/shard': 'anything', 'kcp.io/path': 'root:acme' };
  const whole = {
    name: 'two',
    uid: 'uid-2',
    generation: 7,
    creationTimestamp: '2020-01-02T03:04:05Z',
    deletionTimestamp: '2021-01-02T03:04:05Z',
    deletionGracePeriodSeconds: 0,
    annotations,
  };
  const kept = created(anExport(whole));
  const filled = created(anExport({ name: 'two', uid: '', creationTimestamp: null, annotations }));

  const { resourceVersion: _r, annotations: placed, ...metadata } = kept.object.metadata;
  t.deepEqual({ ...metadata, annotations }, whole);
  t.deepEqual(placed, { 'kcp.io/cluster': 'acme', 'kcp.io/shard': 'amber', 'kcp.io/path': 'root:acme' });
  t.is(kept.mutation.path, parseCanonicalPath('root:acme'));
  t.is(filled.object.metadata.uid, 'made-uid');
  t.is(filled.object.metadata.creationTimestamp, '2026-11-21T00:40:56Z');
  t.false('generation' in filled.object.metadata);
});

test('a dry run is answered without a place, as upstream does', (t) => {
  t.is(created(anExport({ name: 'one' }), { dryRun: true }).object.metadata.annotations, undefined);
});

test('a malformed canonical path counts as no path', (t) => {
  t.is(created(anExport({ name: 'one', annotations: { 'kcp.io/path': 'No Path' } })).mutation.path, undefined);
});

test('generateName gives a name, cut so that it fits a DNS label', (t) => {
  const { mutation, object, generated } = created(anExport({ generateName: 'gen-' }));
  const long = created(anExport({ generateName: 'n'.repeat(100), name: '' }));

  t.true(generated);
  t.is(mutation.key.name, 'gen-4p88z');
  t.is(object.metadata.name, 'gen-4p88z');
  t.is(long.mutation.key.name, `${'n'.repeat(58)}4p88z`);
  t.is(long.object.metadata.name, long.mutation.key.name);
  t.false(created(anExport({ generateName: 'gen-', name: 'own' })).generated);
});

test('the namespace comes from the URL, or from the body for a declared type; a cluster-scoped object has none', (t) => {
  const binding = (namespace?: string): string =>
    JSON.stringify({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata: { name: 'rb', namespace } });
  const instance = (namespace?: string): string =>
    JSON.stringify({ apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name: 'i', namespace } });
  const inUrl = { type: aType('rolebindings'), version: 'v1', namespace: 'default' };
  const declared = { type: aDeclaredType(true), version: 'v1', identity: 'hash' };

  for (const { mutation, object } of [created(binding(), inUrl), created(binding(''), inUrl), created(binding('default'), inUrl)]) {
    t.is(mutation.key.namespace, 'default');
    t.is(object.metadata.namespace, 'default');
  }
  t.is(created(instance('team'), declared).mutation.key.namespace, 'team');
  t.is(created(instance('team'), declared).mutation.key.resource.identity, 'hash');
  t.is(refusedCreate(instance(), declared).reason, 'NotFound');
  t.is(refusedCreate(binding('default'), { ...inUrl, namespace: undefined }).reason, 'NotFound');
  t.deepEqual(refusedCreate(binding('other'), inUrl), {
    reason: 'BadRequest',
    message: 'the namespace of the provided object does not match the namespace sent on the request',
  });
  t.is(refusedCreate(binding(), { ...inUrl, namespace: 'Bad_NS' }).details?.causes?.[0]?.field, 'metadata.namespace');

  const dropped = created(anExport({ name: 'one', namespace: 'left-over' }));
  t.is(dropped.mutation.key.namespace, '');
  t.false('namespace' in dropped.object.metadata);
});

test('an object is stored in the storage version, whatever served version the client sent', (t) => {
  const text = anExport({ name: 'one' }).replace('v1alpha2', 'v1alpha1');
  const { mutation, object } = created(text, { version: 'v1alpha1' });

  t.is(mutation.body.version, 'v1alpha2');
  t.is(object.apiVersion, 'apis.kcp.io/v1alpha2');
});

test('RBAC names are path segments, others subdomains', (t) => {
  const role = (name: string): string =>
    JSON.stringify({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name } });
  const roles = { type: aType('clusterroles'), version: 'v1' };

  t.is(created(role('system:Reader'), roles).mutation.key.name, 'system:Reader');
  for (const name of ['.', '..', 'a/b', 'a%b', '\ud800'])
    t.is(refusedCreate(role(name), roles).details?.causes?.[0]?.field, 'metadata.name', name);
  t.is(refusedCreate(anExport({ name: 'system:reader' })).reason, 'Invalid');
});

test('a generateName may end with characters that a name may not end with', (t) => {
  t.notThrows(() => created(anExport({ generateName: 'a.b-' })));
  t.deepEqual(
    refusedCreate(anExport({ generateName: 'Bad_' })).details?.causes?.map(({ field }) => field),
    ['metadata.generateName', 'metadata.name'],
  );
});

test('metadata that does not decode as ObjectMeta is a bad request, so that no typed informer meets it', (t) => {
  const prefix = 'APIExport in version "v1alpha2" cannot be handled as a APIExport: ';
  const wrong: [Record<string, unknown>, string][] = [
    [{ labels: { a: 5 } }, 'json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string'],
    [{ labels: { a: null } }, 'json: cannot unmarshal null into Go struct field ObjectMeta.labels of type string'],
    [{ labels: [] }, 'json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string'],
    [{ annotations: { a: true } }, 'json: cannot unmarshal bool into Go struct field ObjectMeta.annotations of type string'],
    [{ name: 5 }, 'json: cannot unmarshal number into Go struct field ObjectMeta.name of type string'],
    [{ namespace: {} }, 'json: cannot unmarshal object into Go struct field ObjectMeta.namespace of type string'],
    [{ uid: ['u'] }, 'json: cannot unmarshal array into Go struct field ObjectMeta.uid of type string'],
    [{ generation: 1.5 }, 'json: cannot unmarshal number into Go struct field ObjectMeta.generation of type int64'],
    [{ generation: '1' }, 'json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64'],
    [{ generation: 1e30 }, 'json: cannot unmarshal number into Go struct field ObjectMeta.generation of type int64'],
    [
      { deletionGracePeriodSeconds: [] },
      'json: cannot unmarshal array into Go struct field ObjectMeta.deletionGracePeriodSeconds of type int64',
    ],
    [{ finalizers: 'x' }, 'json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []'],
    [{ finalizers: [1] }, 'json: cannot unmarshal number into Go struct field ObjectMeta.finalizers of type string'],
    [
      { ownerReferences: [{ controller: 'yes' }] },
      'json: cannot unmarshal string into Go struct field ObjectMeta.ownerReferences.controller of type bool',
    ],
    [{ managedFields: [{ time: 5 }] }, 'json: cannot unmarshal number into Go struct field ObjectMeta.managedFields.time of type string'],
    [
      { creationTimestamp: '2026-02-30T00:00:00Z' },
      'parsing time "2026-02-30T00:00:00Z" as "2006-01-02T15:04:05Z07:00": cannot parse ObjectMeta.creationTimestamp',
    ],
    [{ deletionTimestamp: 'now' }, 'parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse ObjectMeta.deletionTimestamp'],
  ];
  for (const [metadata, message] of wrong)
    t.deepEqual(refusedCreate(anExport({ name: 'x', ...metadata })), { reason: 'BadRequest', message: prefix + message });
  t.is(
    refusedCreate(anExport({}).replace('{}', '"x"')).message,
    `${prefix}json: cannot unmarshal string into Go struct field ObjectMeta of type struct`,
  );
  t.is(refusedCreate(anExport({ name: 'x' }).replace('"x"', '"x","generation":1.0')).reason, 'BadRequest');
});

test('null is the same as a missing member', (t) => {
  const nothing = {
    generateName: null,
    namespace: null,
    uid: null,
    resourceVersion: null,
    generation: null,
    creationTimestamp: null,
    deletionTimestamp: null,
    labels: null,
    annotations: null,
    finalizers: null,
    ownerReferences: null,
    managedFields: null,
  };

  t.is(created(anExport({ name: 'one', ...nothing })).object.metadata.uid, 'made-uid');
  t.is(refusedCreate(anExport({ name: null })).reason, 'Invalid');
  t.is(refusedCreate(anExport({}).replace('"metadata":{},', '')).reason, 'Invalid');
});

test('repeated fields cause a warning or are ignored, as the client asks', (t) => {
  const text = '{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"dup","name":"dup2"},"spec":{}}';

  t.deepEqual(created(text).warnings, ['duplicate field "metadata.name"']);
  t.deepEqual(created(text, { fieldValidation: 'Ignore' }).warnings, []);
  t.is(created(text).mutation.key.name, 'dup2');
});

test('of two metadata members the last one counts, in the checks and in what is stored', (t) => {
  const head = '{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":';

  t.is(created(`${head}{"name":"a","generation":5},"metadata":{"name":"b","annotations":{"kcp.io/shard":"s"}}}`).object.metadata.name, 'b');
  t.is(refusedCreate(`${head}{"name":"a"},"metadata":null}`).reason, 'Invalid');
  t.is(refusedCreate(`${head}{"name":"a"},"metadata":{"name":"b","labels":{"a":1}}}`).reason, 'BadRequest');
});

test("a kind that differs from the URL's is invalid, also for partial metadata and items of lists", (t) => {
  for (const kind of ['Nope', 'PartialObjectMetadata', 'List', 'APIExportList']) {
    const text = JSON.stringify({ apiVersion: 'apis.kcp.io/v1alpha2', kind, metadata: {} });
    const cause = { reason: 'FieldValueInvalid', message: `Invalid value: "${kind}": must be APIExport`, field: 'kind' };
    t.deepEqual(refusedCreate(text), {
      reason: 'Invalid',
      message: `${kind}.apis.kcp.io "" is invalid: kind: ${cause.message}`,
      details: { group: 'apis.kcp.io', kind, causes: [cause] },
    });
  }
  t.is(refusedCreate('{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"x"}}').reason, 'BadRequest');
});

test('a body that is not an object, not UTF-8 or too deep is refused, with a short quotation at most', (t) => {
  const deep = `{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{"name":"x"},"spec":${'['.repeat(10_000)}${']'.repeat(10_000)}}`;
  const cases: [Uint8Array, RegExp][] = [
    [bytesOf(deep), /exceeded max depth of 9996/],
    [bytesOf('[]'), /invalid character '\[' .*\(5b5d\)$/],
    [bytesOf('null'), /json parse error/],
    [bytesOf('{"kind":5}'), /cannot unmarshal number into Go struct field \.kind of type string/],
    [bytesOf('{"kind":"APIExport","metadata":{"name":"x"}}'), /the API version in the data \(\) does not match/],
    [Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), /not UTF-8/],
    [bytesOf(`{"x":"${'y'.repeat(1_000_000)}"}`), /Object 'Kind' is missing/],
  ];
  for (const [bytes, message] of cases) {
    const refusal = refusalOf(admitCreate(bytes, aCreate()));
    t.is(refusal.reason, 'BadRequest');
    t.regex(refusal.message, message);
    t.true(refusal.message.length < 500);
  }
});

test('a refusal lists at most a hundred causes', (t) => {
  const labels = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`!${i}`, 'x']));

  t.is(refusedCreate(anExport({ name: 'x', labels })).details?.causes?.length, 100);
});

/**
 * Cases that this test skips: the path, the reader of bodies or the store decides them; or Strata
 * deliberately differs; or the transcript is truncated.
 */
const elsewhere = new Set([
  'create again',
  'create with wrong shard annotation',
  'create with resourceVersion set',
  'create unknown content type',
  'path cluster create',
  'method not allowed',
  'rolebinding no ns in url',
  'too big 4MB',
  'big annotations',
]);

test('recorded creates are refused in upstream’s words', async (t) => {
  const steps = (await readTranscript('basics.upstream.jsonl')) as readonly Refused[];
  const refused = steps.filter(({ title, method, status }) => method === 'POST' && status >= 400 && !elsewhere.has(title));
  t.is(refused.length, 11);

  for (const { title, path, body = '', answer } of refused) {
    const resource = path.includes('rolebindings') ? 'rolebindings' : 'apiexports';
    const version = resource === 'apiexports' ? 'v1alpha2' : 'v1';
    const refusal = refusedCreate(body, { type: aType(resource), version, namespace: /namespaces\/([^/]+)\//.exec(path)?.[1] });

    t.is(refusal.reason, answer.reason, title);
    t.is(refusal.message.replace(/ \(byte \d+\)/, ''), answer.message, title);
    t.deepEqual(refusal.details, answer.details, title);
  }
});

test('a member that is too long, or that a create may not set, is refused', (t) => {
  const cause = { reason: 'FieldValueTooLong', message: 'Too long: may not be more than 262144 bytes', field: 'metadata.annotations' };
  const long = refusedCreate(anExport({ name: 'bigann', annotations: { a: 'x'.repeat(300_000) } }));

  t.is(long.message, `APIExport.apis.kcp.io "bigann" is invalid: metadata.annotations: ${cause.message}`);
  t.deepEqual(long.details?.causes, [cause]);
  t.deepEqual(refusedCreate(anExport({ name: 'withrv', resourceVersion: '5' })), {
    reason: 'BadRequest',
    message: 'resourceVersion should not be set on objects to be created',
  });
});
