/** The rules of metadata over the wire: every way to write keeps them, and what is refused is not stored. */
import test from 'ava';
import type { KubeObject, KubeStatus } from '../support/kube-client.js';
import { aPath, anApiExport } from '../support/objects.js';
import { TestServer } from '../support/test-server.js';

const server = TestServer.start();

test.after.always(async () => (await server).close());

const owner = { apiVersion: 'v1', kind: 'A', name: 'a', uid: '1' };

const wrong: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'two controllers': {
    ownerReferences: [
      { ...owner, controller: true },
      { ...owner, controller: true },
    ],
  },
  'an owner without a uid': { ownerReferences: [{ ...owner, uid: '' }] },
  'an owner that is null': { ownerReferences: [null] },
  'an Event as owner': { ownerReferences: [{ ...owner, kind: 'Event' }] },
  'a finalizer with a space': { finalizers: ['a b'] },
  'an empty finalizer': { finalizers: [''] },
  'two finalizers that contradict each other': { finalizers: ['orphan', 'foregroundDeletion'] },
  'a managed field of no operation': { managedFields: [{ manager: 'm' }] },
};

const begun = { deletionTimestamp: '2020-01-02T03:04:05Z', deletionGracePeriodSeconds: 0 };

let clusters = 0;

for (const [what, metadata] of Object.entries({ ...wrong, 'a deletion that an update would begin': begun }))
  test(`${what}: refused by POST, PUT, each PATCH and YAML, and nothing is stored`, async (t) => {
    const client = (await server).client();
    const path = aPath({ cluster: `rules${(clusters += 1)}` });
    const stored = await client.create(path, anApiExport());
    const changed = { ...stored, metadata: { ...stored.metadata, ...metadata } };
    const merge = { 'content-type': 'application/merge-patch+json' };
    const operations = Object.entries(metadata).map(([name, value]) => ({ op: 'add', path: `/metadata/${name}`, value }));

    const answers = await Promise.all([
      client.raw('PUT', `${path}/one`, { body: changed }),
      client.raw('PUT', `${path}/one?dryRun=All`, { body: changed }),
      client.raw('PUT', `${path}/one`, { body: JSON.stringify(changed), headers: { 'content-type': 'application/yaml' } }),
      client.raw('PATCH', `${path}/one`, { body: { metadata }, headers: merge }),
      client.raw('PATCH', `${path}/one`, { body: operations, headers: { 'content-type': 'application/json-patch+json' } }),
      ...(metadata === begun ? [] : [client.raw('POST', path, { body: anApiExport({ name: 'two', ...metadata }) })]),
    ]);

    for (const { status, text } of answers) {
      t.is(status, 422, text);
      const { reason, details } = JSON.parse(text) as KubeStatus;
      t.is(reason, 'Invalid');
      const fields = ((details?.['causes'] ?? []) as readonly { field: string }[]).map(({ field }) => field);
      for (const field of fields)
        t.true(
          Object.keys(metadata).some((name) => field.startsWith(`metadata.${name}`)),
          field,
        );
    }
    t.deepEqual((await client.list(path)).items, [stored]);
  });

test('a strategic merge patch keeps the rules as well', async (t) => {
  const client = (await server).client();
  const roles = aPath({ cluster: 'strategic', group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterroles' });
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'one', ownerReferences: [{ ...owner, controller: true }] },
  };
  const stored = await client.create(roles, role);
  const patch = (metadata: unknown) =>
    client.raw('PATCH', `${roles}/one`, { body: { metadata }, headers: { 'content-type': 'application/strategic-merge-patch+json' } });

  t.is((await patch({ ownerReferences: [{ ...owner, uid: '2', controller: true }] })).status, 422);
  t.is((await patch({ finalizers: ['a b'] })).status, 422);
  t.is((await patch(begun)).status, 422);
  t.deepEqual(await client.get(`${roles}/one`), stored);
  t.is((await patch({ ownerReferences: [{ ...owner, uid: '2' }], finalizers: ['x.io/y'] })).status, 200);
});

test('members of owners that are of another type are no metadata at all', async (t) => {
  const client = (await server).client();
  const path = aPath({ cluster: 'types' });
  for (const member of [{ controller: 'true' }, { controller: 1 }, { blockOwnerDeletion: {} }, { uid: 7 }, { kind: [] }]) {
    const { status, text } = await client.raw('POST', path, { body: anApiExport({ ownerReferences: [{ ...owner, ...member }] }) });
    t.is(status, 400, text);
  }
  t.is((await client.list(path)).items.length, 0);
});

test('a create drops the marks of a deletion, as upstream does, and a replica keeps them for good', async (t) => {
  const client = (await server).client();
  const path = aPath({ cluster: 'deleting' });
  const dropped = await client.create(path, anApiExport({ name: 'new', ...begun }));
  t.false('deletionTimestamp' in dropped.metadata);

  const replica = await client.create(path, anApiExport({ ...begun, finalizers: ['x.io/y'], annotations: { 'kcp.io/shard': 'amber' } }));
  const merge = (metadata: unknown) =>
    client.raw('PATCH', `${path}/one`, { body: { metadata }, headers: { 'content-type': 'application/merge-patch+json' } });
  t.is((await merge({ deletionTimestamp: null, deletionGracePeriodSeconds: null })).status, 200);
  t.is((await merge({ deletionTimestamp: '2030-01-01T00:00:00Z' })).status, 200);
  t.is((await merge({ deletionGracePeriodSeconds: 5 })).status, 422);
  t.is((await merge({ finalizers: ['x.io/y', 'x.io/z'] })).status, 422);
  t.deepEqual(await client.get(`${path}/one`), replica);
  const without = await merge({ finalizers: [] });
  t.is(without.status, 200);
  t.deepEqual((JSON.parse(without.text) as KubeObject).metadata.finalizers, []);
});
