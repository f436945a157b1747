import { test } from '../../support/test.js';
import type { StoredObject } from '../../../src/domain/object.js';
import { mustParse } from '../../../src/domain/parsed.js';
import { sameContent, stringsDiffer } from '../../../src/json/same-content.js';
import { admitUpdate, type UpdateInputs } from '../../../src/intake/admit/admit-update.js';
import {
  aCreate,
  aDeclaredType,
  anExport,
  anUpdate,
  aStored,
  bytesOf,
  read,
  refusalOf,
  storedVersion,
  textOf,
} from '../../support/intake/bodies.js';

const replica = {
  name: 'one',
  uid: 'uid-1',
  generation: 7,
  creationTimestamp: '2020-01-02T03:04:05Z',
  annotations: { 'kcp.io/shard': 'amber', 'kcp.io/cluster': 'acme' },
};

function admitted(text: string, current: StoredObject, changes: Partial<UpdateInputs> = {}) {
  const outcome = mustParse(admitUpdate(bytesOf(text), anUpdate(changes), current));
  const [next, stored] = [outcome.mutation.body.bytes, outcome.stored.bytes];
  const isSame = !stringsDiffer(next, stored) && sameContent(next, stored);
  return { ...outcome, kind: isSame ? 'unchanged' : 'changed' };
}

function updated(text: string, current: StoredObject, changes: Partial<UpdateInputs> = {}) {
  const outcome = admitted(text, current, changes);
  if (outcome.kind === 'unchanged') throw new Error('it changes nothing');
  return { ...outcome, object: read(textOf(outcome.mutation)) };
}

function refusedUpdate(metadata: Record<string, unknown>, changes: Partial<UpdateInputs> = {}) {
  return refusalOf(
    admitUpdate(
      bytesOf(anExport({ ...replica, resourceVersion: storedVersion, ...metadata }, { spec: { n: 2 } })),
      anUpdate(changes),
      aStored(anExport(replica)),
    ),
  );
}

test('a PUT replaces exactly the state that it names, content and status together', (t) => {
  const current = aStored(anExport(replica));
  const { mutation, object } = updated(
    anExport({ ...replica, resourceVersion: storedVersion, generation: 9 }, { spec: { n: 2 }, status: { s: 1 } }),
    current,
  );

  t.is(mutation.expect, current.revision);
  t.deepEqual(mutation.key, current.key);
  t.deepEqual(object, {
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIExport',
    metadata: { ...replica, resourceVersion: storedVersion, generation: 9 },
    spec: { n: 2 },
    status: { s: 1 },
  });
});

test('a PUT that does not fit the stored state is refused', (t) => {
  const conflict = 'Operation cannot be fulfilled on apiexports.apis.kcp.io "one": ';
  const details = { name: 'one', group: 'apis.kcp.io', kind: 'apiexports' };
  const revision = {
    reason: 'FieldValueInvalid',
    message: 'Invalid value: 0: must be specified for an update',
    field: 'metadata.resourceVersion',
  };
  const missing = {
    reason: 'Invalid',
    message: `apiexports.apis.kcp.io "one" is invalid: metadata.resourceVersion: ${revision.message}`,
    details: { ...details, causes: [revision] },
  } as const;
  const generation = { reason: 'FieldValueInvalid', message: 'Invalid value: 6: must not be decremented', field: 'metadata.generation' };

  for (const resourceVersion of [undefined, '', null, '0']) t.deepEqual(refusedUpdate({ resourceVersion }), missing);
  for (const resourceVersion of ['5', `0${storedVersion}`, 'junk']) {
    t.deepEqual(refusedUpdate({ resourceVersion }), {
      reason: 'Conflict',
      message: `${conflict}the object has been modified; please apply your changes to the latest version and try again`,
      details,
    });
  }
  t.deepEqual(refusedUpdate({ uid: 'other' }), {
    reason: 'Conflict',
    message: `${conflict}Precondition failed: UID in precondition: other, UID in object meta: uid-1`,
    details,
  });
  t.deepEqual(refusedUpdate({ name: 'two' }), {
    reason: 'BadRequest',
    message: 'the name of the object (two) does not match the name on the URL (one)',
  });
  t.deepEqual(refusedUpdate({ name: undefined }), {
    reason: 'BadRequest',
    message: 'the name of the object (one based on URL) was undeterminable: name must be provided',
  });
  t.deepEqual(refusedUpdate({ generation: 6 }), {
    reason: 'Invalid',
    message: `APIExport.apis.kcp.io "one" is invalid: metadata.generation: ${generation.message}`,
    details: { name: 'one', group: 'apis.kcp.io', kind: 'APIExport', causes: [generation] },
  });
  t.deepEqual(
    refusedUpdate({ labels: { 'a b': 'c d' } }).details?.causes?.map(({ field }) => field),
    ['metadata.labels', 'metadata.labels'],
  );
  t.is(refusedUpdate({ labels: { a: 5 } }).reason, 'BadRequest');
  t.is(refusedUpdate({}, { version: 'v1alpha1' }).reason, 'BadRequest');
});

test('a patch may omit the resourceVersion, but a resourceVersion that it names must match', (t) => {
  const current = aStored(anExport(replica));

  t.is(updated(anExport(replica, { spec: { n: 2 } }), current, { mustNameRevision: false }).mutation.expect, current.revision);
  t.is(refusedUpdate({ resourceVersion: '5' }, { mustNameRevision: false }).reason, 'Conflict');
});

test('the identity and the creation time of an object stay as stored', (t) => {
  const deleting = { ...replica, deletionTimestamp: '2021-01-01T00:00:00Z', deletionGracePeriodSeconds: 5 };
  const bare = { name: 'one', resourceVersion: storedVersion };
  const theirs = { ...bare, generation: 0, creationTimestamp: '2026-01-01T00:00:00Z' };

  for (const metadata of [bare, theirs]) {
    for (const stored of [replica, deleting]) {
      const { object } = updated(anExport(metadata, {}), aStored(anExport(stored)));
      t.deepEqual(object.metadata, { ...stored, resourceVersion: storedVersion });
    }
  }
});

test('a generation beyond 2^53 is compared and kept exactly', (t) => {
  const current = aStored(anExport(replica).replace('"generation":7', '"generation":9007199254740993'));
  const lower = anExport({ ...replica, resourceVersion: storedVersion }).replace('"generation":7', '"generation":9007199254740992');
  const none = anExport({ ...replica, generation: undefined, resourceVersion: storedVersion }, {});

  t.is(refusalOf(admitUpdate(bytesOf(lower), anUpdate(), current)).reason, 'Invalid');
  t.true(textOf(updated(none, current).mutation).includes('"generation":9007199254740993'));
});

test('a PUT that changes nothing is no mutation, however it is spelled', (t) => {
  const spec = '{"big":9007199254740993,"f":1.0,"e":1e3,"zero":0,"list":[{"a":1},{"b":null}],"__proto__":{"x":1},"u":"\\u00e9"}';
  const text = (changed: string): string =>
    anExport({ ...replica, resourceVersion: storedVersion }, { spec: 'SPEC' }).replace('"SPEC"', changed);
  const current = aStored(anExport(replica, { spec: 'SPEC' }).replace('"SPEC"', spec));

  const same = [
    textOf(current),
    text(spec),
    text(spec).replaceAll(',"', ' ,\n "'),
    text('{"__proto__":{"x":1},"list":[{"a":1e0},{"b":null}],"big":9007199254740993,"e":1000,"f":1,"zero":-0,"u":"é"}'),
    text(spec)
      .replace('"uid":"uid-1",', '')
      .replace('"generation":7', '"generation":0')
      .replace('"kcp.io/shard":"amber"', '"kcp.io/shard":"birch"'),
    text(spec).replace('"name":"one"', '"name":"one","namespace":"dropped","selfLink":"/x"'),
  ];
  for (const put of same) t.is(admitted(put, current).kind, 'unchanged', put);

  const other = [
    '"big":9007199254740993→"big":9007199254740992',
    '{"a":1}→{"a":2}',
    '{"b":null}→{}',
    '{"x":1}→{"x":2}',
    '"__proto__"→"proto"',
    '"f":1.0→"f":"1.0"',
    '[{"a":1},{"b":null}]→{"0":{"a":1},"1":{"b":null}}',
    '"zero":0→"zero":null',
    '"e":1e3,→',
  ];
  for (const edit of other) {
    const [from = '', to = ''] = edit.split('→');
    t.is(admitted(text(spec.replace(from, to)), current).kind, 'changed', edit);
  }
  t.is(admitted(text(spec).replace('"name":"one"', '"name":"one","labels":{}'), current).kind, 'changed', 'an empty member is content');
});

test('a PUT without new content in another served version changes nothing', (t) => {
  const text = anExport({ ...replica, resourceVersion: storedVersion }).replace('v1alpha2', 'v1alpha1');

  t.is(admitted(text, aStored(anExport(replica)), { version: 'v1alpha1' }).kind, 'unchanged');
});

test('a body stored in a former storage version is compared by its content', (t) => {
  const type = aDeclaredType(false);
  const current = aStored(
    '{"apiVersion":"machines.svm.io/v1","kind":"Instance","metadata":{"name":"i"}}',
    aCreate({ type, version: 'v1', identity: 'hash' }),
  );
  const newer = { ...type, versions: [{ name: 'v2', columns: [] }, ...type.versions], storageVersion: 'v2' };

  t.is(admitted(textOf(current), current, { type: newer, version: 'v1' }).kind, 'unchanged');
  t.is(updated(textOf(current).replace('}}', '},"spec":1}'), current, { type: newer, version: 'v1' }).mutation.body.version, 'v2');
});

test('strings are compared wherever they are, and however they are escaped', (t) => {
  const spec = (text: string): string => anExport(replica, { spec: 'SPEC' }).replace('"SPEC"', text);
  const current = aStored(spec('{"a":"xy","b":"","c":["é","1"]}'));
  const kindOf = (text: string): string => admitted(spec(text), current, { mustNameRevision: false }).kind;

  t.is(kindOf('{ "c": ["é", "1"], "b": "", "a": "xy" }'), 'unchanged');
  t.is(kindOf('{"a":"x\\u0079","b":"","c":["\\u00e9","1"]}'), 'unchanged');
  t.is(kindOf('{"a":"x","b":"y","c":["é","1"]}'), 'changed');
  t.is(kindOf('{"a":"xy","b":"","c":["1","é"]}'), 'changed');
  t.is(kindOf('{"a":"xy","b":"","c":["é",1]}'), 'changed');
  t.is(kindOf('{"a":"xy","b":"","c":["é","1",""]}'), 'changed');
});

test('text that ends within a string has no strings to compare', (t) => {
  t.false(stringsDiffer(bytesOf('{"a":"b'), bytesOf('{}')));
  t.false(stringsDiffer(bytesOf('{}'), bytesOf('"')));
});

test('text nested as deep as allowed is compared without recursion', (t) => {
  const nested = (open: string, close: string, inner: string): string =>
    anExport({ ...replica }, { spec: 'SPEC' }).replace('"SPEC"', open.repeat(9_990) + inner + close.repeat(9_990));
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    const current = aStored(nested(open, close, '1'));
    t.is(admitted(nested(open, close, ' 1.0'), current, { mustNameRevision: false }).kind, 'unchanged');
    t.is(admitted(nested(open, close, '2'), current, { mustNameRevision: false }).kind, 'changed');
  }
});

test('if a body has a namespace, it must be that of the object', (t) => {
  const type = aDeclaredType(true);
  const text = (namespace?: string): string =>
    JSON.stringify({
      apiVersion: 'machines.svm.io/v1',
      kind: 'Instance',
      metadata: { name: 'i', namespace, resourceVersion: storedVersion },
      spec: 2,
    });
  const current = aStored(
    '{"apiVersion":"machines.svm.io/v1","kind":"Instance","metadata":{"name":"i"}}',
    aCreate({ type, version: 'v1', identity: 'hash', namespace: 'team' }),
  );

  t.is(updated(text(), current, { type, version: 'v1' }).object.metadata.namespace, 'team');
  t.is(updated(text('team'), current, { type, version: 'v1' }).object.metadata.namespace, 'team');
  t.is(refusalOf(admitUpdate(bytesOf(text('other')), anUpdate({ type, version: 'v1' }), current)).reason, 'BadRequest');
});

test('repeated fields give a warning even if nothing changes', (t) => {
  const current = aStored(anExport(replica));

  t.deepEqual(admitted(textOf(current).replace('"name":"one"', '"name":"x","name":"one"'), current).warnings, [
    'duplicate field "metadata.name"',
  ]);
});

test('an object whose name no create would accept can still be updated', (t) => {
  const current = aStored(anExport(replica));
  const key = { ...current.key, name: 'Bad Name!' };

  const body = anExport({ ...replica, name: key.name }, { spec: { n: 2 } });
  t.is(updated(body, { ...current, key }, { mustNameRevision: false }).mutation.key.name, 'Bad Name!');
});
