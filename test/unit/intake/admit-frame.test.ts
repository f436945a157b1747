import { test } from '../../support/test.js';
import { keptAnnotation, keptCharactersMax } from '../../../src/domain/kept-names.js';
import type { Push, Speaker } from '../../../src/domain/push.js';
import type { FrameOf, PushedObject } from '../../../src/frames/frame.js';
import { admitFrame, arena, type AdmittedFrame } from '../../../src/intake/push/admit-frame.js';
import { apiExports, pushed, typeOf } from '../../support/intake/a-receiver.js';
import { anApiExport } from '../../support/objects.js';

const by = { kind: 'link', neighbour: 'parent' } as const;

function admitted(frame: FrameOf<'put' | 'delete'>, speaker: Speaker = by): AdmittedFrame {
  const type = typeOf(apiExports.resource);
  if (type === undefined) throw new Error('apiexports are built in');
  return admitFrame(frame, {
    type,
    resource: apiExports.resource,
    version: frame.kind === 'put' ? frame.version : '',
    shard: apiExports.shard,
    by: speaker,
    bodyBytesMax: 1_000_000,
    systemClusters: new Set(['system:shard']),
    allocate: arena(100_000),
  });
}

function aPut(...objects: readonly PushedObject[]): FrameOf<'put'> {
  return { kind: 'put', sequence: 7, slice: apiExports, version: 'v1alpha2', objects };
}

function kinds(pushes: readonly Push[]): readonly string[] {
  return pushes.map(({ kind }) => kind);
}

test('each object of a put becomes an upsert by the sender of the frame, in order', (t) => {
  const { pushes, refused } = admitted(aPut(pushed('one'), pushed('two')));

  t.deepEqual(kinds(pushes), ['upsert', 'upsert']);
  t.like(pushes[1], { key: { name: 'two', cluster: 'acme', shard: 'amber' }, by });
  t.deepEqual(refused, []);
});

test('a push may bring metadata that no plain write may bring, and it is stored unchanged', (t) => {
  const metadata = {
    name: 'one',
    uid: 'u1',
    finalizers: ['a b', 'orphan', 'foregroundDeletion'],
    ownerReferences: [null, { controller: true }],
    managedFields: [{}],
  };
  const body = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata };

  const { pushes, refused } = admitted(aPut({ ...pushed('one'), body: new TextEncoder().encode(JSON.stringify(body)) }));

  t.deepEqual(refused, []);
  t.deepEqual(kinds(pushes), ['upsert']);
});

test('an object without a body becomes a keep', (t) => {
  const { pushes } = admitted(aPut({ ...pushed('one'), body: undefined }));

  t.deepEqual(kinds(pushes), ['keep']);
});

test('a refused object is reported by its number, delays no other object, and its stored version stays', (t) => {
  const broken = { ...pushed('two'), body: new TextEncoder().encode('{') };

  const { pushes, refused } = admitted(aPut(pushed('one'), broken, pushed('three')));

  t.deepEqual(kinds(pushes), ['upsert', 'keep', 'upsert']);
  t.like(refused[0], { sequence: 8, key: { name: 'two' } });
});

test('an invalid key is refused, and no object is kept under it', (t) => {
  const { pushes, refused } = admitted(aPut({ ...pushed('one'), cluster: 'a/b' }, pushed('two')));

  t.deepEqual(kinds(pushes), ['upsert']);
  t.is(refused[0]?.sequence, 7);
});

test('each key of a delete becomes a retract; a refused key becomes nothing', (t) => {
  const keys = [
    { cluster: 'acme', namespace: '', name: 'one' },
    { cluster: 'a/b', namespace: '', name: 'two' },
    { cluster: 'acme', namespace: '', name: 'three' },
  ];

  const { pushes, refused } = admitted({ kind: 'delete', sequence: 7, slice: apiExports, keys });

  t.deepEqual(kinds(pushes), ['retract', 'retract']);
  t.deepEqual(
    refused.map(({ sequence }) => sequence),
    [8],
  );
});

const name = 'one';
const uid = 'uid-of-one';
/** What a cache adds at most to an object, of which it keeps 64 annotations and as many labels. */
const keptNames = Array.from({ length: 64 }, (_, i) => `k${i}`);
const labels = Object.fromEntries(keptNames.map((label) => [label, '']));
const left = keptCharactersMax - 2 * keptNames.join('').length;
const annotations = {
  ...Object.fromEntries(keptNames.map((annotation, i) => [annotation, i === 0 ? '\u0001'.repeat(left) : ''])),
  [keptAnnotation]: [...keptNames, ...keptNames.map((label) => `label ${label}`)].join(','),
  'kcp.io/cluster': 'acme',
  'kcp.io/shard': 'amber',
};
const numbers = (length: number) => [{ fieldsV1: Array.from({ length }, () => 1) }];
const text = (length: number) => [{ fieldsV1: 'x'.repeat(length) }];

for (const [what, atLimit, beyond] of [
  ['annotations', { annotations: { a: 'x'.repeat(262_143) } }, { annotations: { a: 'x'.repeat(262_144 + 32_768) } }],
  ['metadata', { managedFields: text(512 * 1024 - 100) }, { managedFields: text(512 * 1024 + 32_768) }],
  ['members and values', { managedFields: numbers(9_980) }, { managedFields: numbers(10_256) }],
] as const) {
  const sent = (metadata: object) => aPut(pushed('one', { body: anApiExport({ name, uid, ...metadata }) }));
  const copied = { ...atLimit, labels, annotations: { ...annotations, ...('annotations' in atLimit && atLimit.annotations) } };

  test(`an object at the limit of ${what} is accepted over a link with what a cache has added to it; one beyond that is refused`, (t) => {
    const pusher = { kind: 'pusher', term: 7 } as const;
    t.deepEqual(kinds(admitted(sent(atLimit), pusher).pushes), ['upsert']);
    t.deepEqual(kinds(admitted(sent(copied)).pushes), ['upsert']);
    t.deepEqual(kinds(admitted(sent(copied), pusher).pushes), ['keep']);
    t.deepEqual(kinds(admitted(sent(beyond)).pushes), ['keep']);
  });
}
