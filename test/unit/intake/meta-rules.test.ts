/**
 * The rules of metadata that plain writes keep, and pushes do not. Go's own ValidateObjectMeta
 * (apimachinery 0.36.6) printed the expected texts.
 */
import { test } from '../../support/test.js';
import { mustParse } from '../../../src/domain/parsed.js';
import { admitCreate } from '../../../src/intake/admit/admit-create.js';
import { admitUpdate } from '../../../src/intake/admit/admit-update.js';
import { aCreate, anExport, anUpdate, aStored, bytesOf, refusalOf, storedVersion, textOf } from '../../support/intake/bodies.js';

type Metadata = Readonly<Record<string, unknown>>;

const unqualified =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
  "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

function owner(changes: Metadata = {}): Metadata {
  return { apiVersion: 'v1', kind: 'A', name: 'a', uid: '1', ...changes };
}

/** Refused on create and on update. */
const refused: readonly (readonly [string, Metadata, readonly string[]])[] = [
  [
    'an owner that is null',
    { ownerReferences: [null] },
    [
      'ownerReferences.apiVersion: Invalid value: "": version must not be empty',
      'ownerReferences.kind: Invalid value: "": must not be empty',
      'ownerReferences.name: Invalid value: "": must not be empty',
      'ownerReferences.uid: Invalid value: "": must not be empty',
    ],
  ],
  [
    'an owner without a uid',
    { ownerReferences: [owner({ uid: undefined })] },
    ['ownerReferences.uid: Invalid value: "": must not be empty'],
  ],
  ['an owner without a name', { ownerReferences: [owner({ name: '' })] }, ['ownerReferences.name: Invalid value: "": must not be empty']],
  ['an owner without a kind', { ownerReferences: [owner({ kind: null })] }, ['ownerReferences.kind: Invalid value: "": must not be empty']],
  [
    'owners of no version',
    { ownerReferences: ['a/b/c', '/', 'apps/', ''].map((apiVersion) => owner({ apiVersion })) },
    ['a/b/c', '/', 'apps/', ''].map(
      (apiVersion) => `ownerReferences.apiVersion: Invalid value: "${apiVersion}": version must not be empty`,
    ),
  ],
  [
    'an Event as owner',
    { ownerReferences: [owner({ kind: 'Event', controller: null, more: 1 }), owner({ kind: 'Event', apiVersion: '/v1' })] },
    [
      'ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"a","uid":"1"}: /v1, Kind=Event is disallowed from being an owner',
      'ownerReferences: Invalid value: {"apiVersion":"/v1","kind":"Event","name":"a","uid":"1"}: /v1, Kind=Event is disallowed from being an owner',
    ],
  ],
  [
    'two controllers',
    { ownerReferences: [owner({ controller: true }), owner({ kind: 'B', name: 'b', controller: true, blockOwnerDeletion: false })] },
    [
      'ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":true},' +
        '{"apiVersion":"v1","kind":"B","name":"b","uid":"1","controller":true,"blockOwnerDeletion":false}]: ' +
        'Only one reference can have Controller set to true. Found "true" in references for A/a and B/b',
    ],
  ],
  [
    'finalizers that are no qualified names',
    { finalizers: ['a b', '', null, 'x.io/y/z'] },
    [
      `finalizers: Invalid value: "a b": ${unqualified}`,
      'finalizers: Invalid value: "": name part must be non-empty',
      `finalizers: Invalid value: "": ${unqualified}`,
      'finalizers: Invalid value: "": name part must be non-empty',
      `finalizers: Invalid value: "": ${unqualified}`,
      `finalizers: Invalid value: "x.io/y/z": ${unqualified.replace('name part', 'a valid label key')} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ],
  ],
  [
    'orphan together with foregroundDeletion',
    { finalizers: ['foregroundDeletion', 'x.io/y', 'orphan'] },
    ['finalizers: Invalid value: ["foregroundDeletion","x.io/y","orphan"]: finalizer orphan and foregroundDeletion cannot be both set'],
  ],
  [
    'managed fields that nobody could have',
    {
      managedFields: [
        { operation: 'Foo' },
        null,
        { operation: 'Apply', fieldsType: 'FieldsV2', manager: 'a\u0007b' },
        { operation: 'Update', manager: '\u00e9\u00a0\u200bx' },
        { operation: 'Update', manager: 'm'.repeat(129), subresource: 's'.repeat(257) },
      ],
    },
    [
      'managedFields[0].operation: Invalid value: "Foo": must be `Apply` or `Update`',
      'managedFields[1].operation: Invalid value: "": must be `Apply` or `Update`',
      'managedFields[2].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`',
      'managedFields[2].manager: Invalid value: "a\\u0007b": invalid character U+0007 (at position 1)',
      'managedFields[3].manager: Invalid value: "\u00e9\u00a0\u200bx": invalid character U+00A0 (at position 2)',
      'managedFields[3].manager: Invalid value: "\u00e9\u00a0\u200bx": invalid character U+200B (at position 4)',
      'managedFields[4].manager: Too long: may not be more than 128 bytes',
      'managedFields[4].subresource: Too long: may not be more than 256 bytes',
    ],
  ],
];

function causesOf(result: Parameters<typeof refusalOf>[0]): readonly string[] {
  const { reason, details } = refusalOf(result);
  if (reason !== 'Invalid') throw new Error(`refused as ${reason}`);
  return (details?.causes ?? []).map(({ field = '', message }) => `${field.replace('metadata.', '')}: ${message}`);
}

/** A PUT of the stored object with these changes to its metadata. */
function updated(metadata: Metadata, stored: Metadata = {}) {
  const current = aStored(anExport({ name: 'one', annotations: { 'kcp.io/shard': 'amber' }, ...stored }));
  const { metadata: held } = JSON.parse(textOf(current)) as { metadata: Metadata };
  return admitUpdate(bytesOf(anExport({ ...held, resourceVersion: storedVersion, ...metadata })), anUpdate(), current);
}

for (const [what, metadata, causes] of refused) {
  test(`a create is refused for ${what}`, (t) => {
    t.deepEqual(causesOf(admitCreate(bytesOf(anExport({ name: 'one', ...metadata })), aCreate())), causes);
    const replica = anExport({ name: 'one', annotations: { 'kcp.io/shard': 'amber' }, ...metadata });
    t.deepEqual(causesOf(admitCreate(bytesOf(replica), aCreate())), causes, 'a replica over plain HTTP as well');
  });
  test(`an update is refused for ${what}`, (t) => {
    t.deepEqual(causesOf(updated(metadata)), causes);
  });
}

test('a generation is not negative and never falls, and a prefix of names has no slash, on an update as well', (t) => {
  const negative = ['generation: Invalid value: -1: must be greater than or equal to 0'];
  t.deepEqual(causesOf(admitCreate(bytesOf(anExport({ name: 'one', generation: -1 })), aCreate())), negative);
  t.deepEqual(causesOf(updated({ generation: 2 }, { generation: 3 })), ['generation: Invalid value: 2: must not be decremented']);
  t.deepEqual(causesOf(updated({ generation: -1 }, { generation: 3 })), ['generation: Invalid value: -1: must not be decremented']);
  t.deepEqual(causesOf(updated({ generateName: 'a/b-' })), ['generateName: Invalid value: "a/b-": may not contain \'/\'']);
});

test('metadata that upstream accepts is accepted', (t) => {
  const sound: readonly Metadata[] = [
    { ownerReferences: [owner({ controller: true, blockOwnerDeletion: true }), owner({ name: 'b', controller: false })] },
    {
      ownerReferences: [
        owner({ apiVersion: 'events.k8s.io/v1', kind: 'Event' }),
        owner({ kind: 'event' }),
        owner({ uid: 'not a uid', name: 'A B' }),
      ],
    },
    { ownerReferences: [owner(), owner()] },
    { ownerReferences: null, finalizers: null, managedFields: null },
    { ownerReferences: [], finalizers: [], managedFields: [] },
    { finalizers: ['orphan', 'orphan', 'x.io/Y', 'Foo'] },
    { managedFields: [{ operation: 'Update', manager: 'b\u00e4r \ud83d\ude00', fieldsType: '', fieldsV1: {}, subresource: 'status' }] },
    { managedFields: [{ operation: 'Apply', manager: 'm'.repeat(128), fieldsType: 'FieldsV1', apiVersion: 'not one' }] },
  ];
  for (const metadata of sound) {
    t.notThrows(() => mustParse(admitCreate(bytesOf(anExport({ name: 'one', ...metadata })), aCreate())), JSON.stringify(metadata));
    t.notThrows(() => mustParse(updated(metadata)), JSON.stringify(metadata));
  }
});

const deleting = { deletionTimestamp: '2020-01-02T03:04:05Z', deletionGracePeriodSeconds: 30, finalizers: ['a'] };

test('an update cannot begin a deletion', (t) => {
  t.deepEqual(causesOf(updated({ deletionTimestamp: '2020-01-02T03:04:05.678+01:00', deletionGracePeriodSeconds: 30 })), [
    'deletionTimestamp: Invalid value: "2020-01-02T02:04:05Z": field is immutable',
    'deletionGracePeriodSeconds: Invalid value: 30: field is immutable',
  ]);
  t.deepEqual(causesOf(updated({ deletionGracePeriodSeconds: 0 })), ['deletionGracePeriodSeconds: Invalid value: 0: field is immutable']);
  t.notThrows(() => mustParse(updated({ deletionTimestamp: null, deletionGracePeriodSeconds: null })));
});

test('an update neither ends nor changes a deletion: its deletion time is ignored, another grace period is refused', (t) => {
  for (const change of [{ deletionTimestamp: undefined }, { deletionTimestamp: null }, { deletionTimestamp: '2030-01-01T00:00:00Z' }]) {
    const { mutation } = mustParse(updated({ ...change, labels: { a: 'b' } }, deleting));
    t.regex(textOf(mutation), /"deletionTimestamp":"2020-01-02T03:04:05Z"/);
  }
  const kept = mustParse(updated({ deletionGracePeriodSeconds: null, labels: { a: 'b' } }, deleting)).mutation;
  t.regex(textOf(kept), /"deletionGracePeriodSeconds":30/);
  t.deepEqual(causesOf(updated({ deletionGracePeriodSeconds: 10 }, deleting)), [
    'deletionGracePeriodSeconds: Invalid value: 10: field is immutable',
  ]);
});

test('an object that is being deleted may lose finalizers and may not get any', (t) => {
  t.deepEqual(causesOf(updated({ finalizers: ['c', 'a', 'b', 'c'] }, deleting)), [
    'finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"b", "c"}',
  ]);
  for (const finalizers of [[], null, ['a', 'a']]) t.notThrows(() => mustParse(updated({ finalizers, labels: { a: 'b' } }, deleting)));
  t.notThrows(() => mustParse(updated({ finalizers: ['b'] })));
});

test('a refusal stays small, however many errors it reports', (t) => {
  const many: readonly Metadata[] = [
    { ownerReferences: Array.from({ length: 900 }, () => null) },
    { ownerReferences: Array.from({ length: 1_500 }, () => owner({ controller: true })) },
    {
      ownerReferences: [
        owner({ name: 'n'.repeat(400_000), controller: true }),
        ...Array.from({ length: 900 }, () => owner({ controller: true })),
      ],
    },
    { finalizers: Array.from({ length: 5_000 }, () => ' ') },
    { finalizers: ['orphan', ...Array.from({ length: 5_000 }, (_, i) => `f${i}`), 'foregroundDeletion'] },
    { managedFields: Array.from({ length: 5_000 }, () => ({})) },
    { managedFields: [{ operation: 'Update', manager: '\u0007'.repeat(50_000) }] },
  ];
  for (const metadata of many) {
    const refusal = refusalOf(admitCreate(bytesOf(anExport({ name: 'one', ...metadata })), aCreate()));
    t.true((refusal.details?.causes?.length ?? 0) <= 104);
    t.true(JSON.stringify(refusal).length < 512 * 1024, `${JSON.stringify(refusal).length}`);
  }
  const added = { finalizers: Array.from({ length: 5_000 }, (_, i) => `f${i}`) };
  t.true(JSON.stringify(refusalOf(updated(added, deleting))).length < 8_192);
});
