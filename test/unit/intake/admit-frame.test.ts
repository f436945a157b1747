import { test } from '../../support/test.js';
import type { Push } from '../../../src/domain/push.js';
import type { FrameOf, PushedObject } from '../../../src/frames/frame.js';
import { admitFrame, arena, type AdmittedFrame } from '../../../src/intake/push/admit-frame.js';
import { apiExports, pushed, typeOf } from '../../support/intake/a-receiver.js';

const by = { kind: 'link', neighbour: 'parent' } as const;

function admitted(frame: FrameOf<'put' | 'delete'>): AdmittedFrame {
  const type = typeOf(apiExports.resource);
  if (type === undefined) throw new Error('apiexports are built in');
  return admitFrame(frame, {
    type,
    resource: apiExports.resource,
    version: frame.kind === 'put' ? frame.version : '',
    shard: apiExports.shard,
    by,
    bodyBytesMax: 10_000,
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
