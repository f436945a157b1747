import { test } from '../../support/test.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import type { ServedType } from '../../../src/domain/catalogue/catalogue.js';
import { compose } from '../../../src/json/compose.js';
import { scanObject } from '../../../src/json/object-text.js';
import type { StoredObject } from '../../../src/domain/object.js';
import { listEncoding, watchRepresentation } from '../../../src/web/formats/encodings.js';
import { partialForm, tableForm, fullForm, type ObjectForm, type TableOptions } from '../../../src/web/formats/object-form.js';
import { deleted, failure } from '../../../src/web/formats/status.js';
import { aKey } from '../../support/objects.js';

const exportsType = kcpTypes.find(({ resource }) => resource === 'apiexports') as ServedType;
const key = aKey();

/**
 * An object as it is stored, with both annotations in front, and text that a re-serialisation would
 * change.
 */
function stored(metadata = '"name":"one"'): StoredObject {
  const text = `{ "kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{${metadata}},"spec":{"big":9007199254740993,"one":1.0,"__proto__":{"a":"\\u00e9\\/"}, "same":1,"same":2}}`;
  const body = compose(scanObject(Buffer.from(text), 100), {
    place: key,
    apiVersion: 'apis.kcp.io/v1alpha2',
    version: 'v1alpha2',
    metadata: {},
  });
  return { key, revision: 7, resourceVersion: '700', body };
}

function one(form: ObjectForm, object = stored(), resourceVersion = '700'): string {
  const line = Buffer.from(watchRepresentation(form).events([{ type: 'MODIFIED', object, resourceVersion }])).toString();
  return line.replace(/^\{"type":"MODIFIED","object":(.*)\}\n$/s, '$1');
}

const rest = '"spec":{"big":9007199254740993,"one":1.0,"__proto__":{"a":"\\u00e9\\/"}, "same":1,"same":2}}';

test('a whole object is its stored bytes with the resourceVersion inserted, and nothing else', (t) => {
  const object = stored();
  const bytes = Buffer.from(object.body.bytes).toString();

  const shown = one(fullForm(exportsType, 'v1alpha2'), object);

  t.is(
    shown.replace(/,?"resourceVersion":"700",?/, (found) => (found.startsWith(',') && found.endsWith(',') ? ',' : '')),
    bytes,
  );
  t.true(shown.endsWith(rest));
  t.is((JSON.parse(shown) as { metadata: { resourceVersion: string } }).metadata.resourceVersion, '700');
});

test('an event has the resourceVersion of its change, a DELETED that of the delete', (t) => {
  const metadata = (JSON.parse(one(fullForm(exportsType, 'v1alpha2'), stored(), '900')) as { metadata: Record<string, unknown> }).metadata;

  t.is(metadata['resourceVersion'], '900');
});

test('in another served version only apiVersion differs', (t) => {
  const [old, current] = [one(fullForm(exportsType, 'v1alpha1')), one(fullForm(exportsType, 'v1alpha2'))];

  t.is(old.replace('apis.kcp.io/v1alpha1', 'apis.kcp.io/v1alpha2'), current);
  t.not(old, current);
});

test('partial metadata is the stored metadata, under its own kind', (t) => {
  const shown = one(
    partialForm(exportsType, 'v1alpha2', false),
    stored('"name":"one","labels":{"a":"b"},"managedFields":[{"fieldsV1":{"x":1.0}}]'),
  );

  t.true(shown.startsWith('{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{'));
  t.true(shown.includes('"managedFields":[{"fieldsV1":{"x":1.0}}]'));
  const { metadata, ...others } = JSON.parse(shown) as { metadata: Record<string, unknown> };
  t.deepEqual(others as unknown, { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' });
  t.like(metadata, {
    name: 'one',
    resourceVersion: '700',
    labels: { a: 'b' },
    annotations: { 'kcp.io/cluster': 'acme', 'kcp.io/shard': 'amber' },
  });
  t.false(shown.includes('original-api-version'));
});

test('across all clusters partial metadata has the version of the object', (t) => {
  const annotations = (form: ObjectForm): Record<string, string> =>
    (JSON.parse(one(form)) as { metadata: { annotations: Record<string, string> } }).metadata.annotations;

  t.deepEqual(annotations(partialForm(exportsType, 'v1alpha2', true)), {
    'kcp.io/original-api-version': 'apis.kcp.io/v1alpha2',
    'kcp.io/cluster': 'acme',
    'kcp.io/shard': 'amber',
  });
  t.is(annotations(partialForm(exportsType, 'v1alpha1', true))['kcp.io/original-api-version'], 'apis.kcp.io/v1alpha1');
  t.is(annotations(partialForm(exportsType, 'v9', true))['kcp.io/original-api-version'], 'apis.kcp.io/v1alpha2');
});

test('elements of a list carry apiVersion and kind, each after a comma', (t) => {
  const bytes = Buffer.from(listEncoding(fullForm(exportsType, 'v1alpha2')).encode([stored(), stored()])).toString();

  const items = JSON.parse(`[${bytes.slice(1)}]`) as { kind: string; apiVersion: string }[];
  t.deepEqual(
    items.map(({ kind, apiVersion }) => `${apiVersion} ${kind}`),
    ['apis.kcp.io/v1alpha2 APIExport', 'apis.kcp.io/v1alpha2 APIExport'],
  );
});

function aTable(options: Partial<TableOptions> = {}): ObjectForm {
  return tableForm(exportsType, 'v1alpha2', {
    id: 'x',
    tableVersion: 'v1',
    includeObject: 'Metadata',
    open: { shard: false, cluster: false },
    now: () => 0,
    ...options,
  });
}

test('in a watch of tables only the first event has the columns, even if it is a bookmark', (t) => {
  const columnsOf = (line: Uint8Array): number =>
    (JSON.parse(Buffer.from(line).toString()) as { object: { columnDefinitions: unknown[] } }).object.columnDefinitions.length;
  const item = { type: 'ADDED', object: stored(), resourceVersion: '700' } as const;
  const [events, bookmarkFirst] = [watchRepresentation(aTable()), watchRepresentation(aTable())];

  t.deepEqual([events.events([item]), events.events([item]), events.bookmark('9', false)].map(columnsOf), [2, 0, 0]);
  t.deepEqual([bookmarkFirst.bookmark('9', true), bookmarkFirst.events([item])].map(columnsOf), [2, 0]);
});

test('a row includes the whole object, its metadata, or nothing of it', (t) => {
  const kinds = (['Object', 'Metadata', 'None'] as const).map((includeObject) => {
    const { rows } = JSON.parse(one(aTable({ includeObject }))) as { rows: { cells: unknown[]; object?: { kind: string } }[] };
    return [rows[0]?.cells[0], rows[0]?.object?.kind];
  });

  t.deepEqual(kinds, [
    ['one', 'APIExport'],
    ['one', 'PartialObjectMetadata'],
    ['one', undefined],
  ]);
});

test('a bookmark has a type and a revision; the one that ends the initial events says so', (t) => {
  const whole = watchRepresentation(fullForm(exportsType, 'v1alpha2'));
  const partial = watchRepresentation(partialForm(exportsType, 'v1alpha2', true));

  t.is(
    Buffer.from(whole.bookmark('812', true)).toString(),
    '{"type":"BOOKMARK","object":{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{"resourceVersion":"812","annotations":{"k8s.io/initial-events-end":"true"}}}}\n',
  );
  t.is(
    Buffer.from(partial.bookmark('812', false)).toString(),
    '{"type":"BOOKMARK","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"812"}}}\n',
  );
});

test('an object of which only the key is known is reported by name, namespace and place', (t) => {
  const bytes = watchRepresentation(fullForm(exportsType, 'v1alpha2')).forgotten([aKey(), aKey({ namespace: 'default', name: 'ü"' })], '9');

  t.deepEqual(
    Buffer.from(bytes).toString().trimEnd().split('\n').map((line) => JSON.parse(line) as unknown),
    [
      { type: 'DELETED', object: { kind: 'APIExport', apiVersion: 'apis.kcp.io/v1alpha2', metadata: { name: 'one', resourceVersion: '9', annotations: { 'kcp.io/cluster': 'acme', 'kcp.io/shard': 'amber' } } } },
      { type: 'DELETED', object: { kind: 'APIExport', apiVersion: 'apis.kcp.io/v1alpha2', metadata: { name: 'ü"', namespace: 'default', resourceVersion: '9', annotations: { 'kcp.io/cluster': 'acme', 'kcp.io/shard': 'amber' } } } },
    ],
  ); // prettier-ignore
});

test('an ERROR event carries a whole Status', (t) => {
  const bytes = watchRepresentation(fullForm(exportsType, 'v1alpha2')).error({
    reason: 'Expired',
    message: 'too old resource version: 5 (90)',
  });

  t.is(
    Buffer.from(bytes).toString(),
    '{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 5 (90)","reason":"Expired","code":410}}\n',
  );
});

test('a Status has code, reason and details; its continue token is in its metadata, a retry in its details', (t) => {
  t.deepEqual(JSON.parse(failure({ reason: 'Conflict', message: 'm', details: { name: 'x', group: 'g', kind: 'things' } }).text), {
    kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: 'm', reason: 'Conflict', details: { name: 'x', group: 'g', kind: 'things' }, code: 409,
  }); // prettier-ignore
  t.like(JSON.parse(failure({ reason: 'Expired', message: 'm', continue: 'token' }).text), { metadata: { continue: 'token' }, code: 410 });
  t.is(failure({ reason: 'TooManyRequests', message: 'm', details: { retryAfterSeconds: 1 } }).retryAfterSeconds, 1);
  t.is(failure({ reason: 'BadRequest', message: 'm' }).retryAfterSeconds, undefined);
  t.deepEqual(JSON.parse(deleted({ name: 'x', group: 'g', kind: 'things', uid: 'u' })), {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { name: 'x', group: 'g', kind: 'things', uid: 'u' },
  });
});
