/**
 * The rules of metadata over the wire: every way of writing must keep them, and a refused write
 * must store nothing.
 */
import { test } from '../../support/test.js';
import type { KubeObject, KubeStatus } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { TestServer } from '../../support/test-server.js';

const server = shared(
  () => TestServer.start(),
  (made) => made.close(),
);

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
    const client = (await server()).client();
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
  const client = (await server()).client();
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

test('owner references with members of a wrong type are refused as undecodable', async (t) => {
  const client = (await server()).client();
  const path = aPath({ cluster: 'types' });
  for (const member of [{ controller: 'true' }, { controller: 1 }, { blockOwnerDeletion: {} }, { uid: 7 }, { kind: [] }]) {
    const { status, text } = await client.raw('POST', path, { body: anApiExport({ ownerReferences: [{ ...owner, ...member }] }) });
    t.is(status, 400, text);
  }
  t.is((await client.list(path)).items.length, 0);
});

test('a create drops the marks of a deletion, as upstream does, and a replica keeps them', async (t) => {
  const client = (await server()).client();
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

const manager = { manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': {} } };

type Unknown = readonly [what: string, metadata: Readonly<Record<string, unknown>>, paths: readonly string[]];

const unknown: readonly Unknown[] = [
  ['a misspelled member', { lables: { a: 'b' } }, ['lables']],
  ['one that Kubernetes had once', { clusterName: 'x', initializers: null }, ['clusterName', 'initializers']],
  ['one without a name', { '': 5 }, ['']],
  ['one of a name of JavaScript', { constructor: [] }, ['constructor']],
  ['a member of the second owner', { ownerReferences: [owner, { ...owner, uid: '2', owner: true }] }, ['ownerReferences[1].owner']],
  [
    'a member of a managed field',
    { managedFields: [{ tiem: 'x', ...manager, fieldsV2: {} }] },
    ['managedFields[0].tiem', 'managedFields[0].fieldsV2'],
  ],
];

for (const [what, metadata, paths] of unknown)
  test(`${what} of metadata: refused by strict writes, warned of by others unless ignored, and never stored`, async (t) => {
    const client = (await server()).client();
    const path = aPath({ cluster: `unknown${(clusters += 1)}` });
    const stored = await client.create(path, anApiExport());
    const changed = { ...stored, metadata: { ...stored.metadata, ...metadata } };
    const operations = Object.entries(metadata).map(([name, value]) => ({ op: 'add', path: `/metadata/${name}`, value }));
    const ask = (query: string): ReturnType<typeof client.raw>[] => [
      client.raw('POST', `${path}?${query}`, { body: anApiExport({ name: 'two', ...metadata }) }),
      client.raw('PUT', `${path}/one?${query}`, { body: changed }),
      client.raw('PUT', `${path}/one?${query}`, { body: JSON.stringify(changed), headers: { 'content-type': 'application/yaml' } }),
      client.raw('PATCH', `${path}/one?${query}`, { body: operations, headers: { 'content-type': 'application/json-patch+json' } }),
    ];
    const causes = paths.map((each) => `unknown field "metadata.${each}"`);

    for (const { status, text } of await Promise.all(ask('fieldValidation=Strict'))) {
      t.is(status, 400, text);
      const message = `APIExport in version "v1alpha2" cannot be handled as a APIExport: strict decoding error: ${causes.join(', ')}`;
      t.is((JSON.parse(text) as KubeStatus).message, message);
    }
    t.deepEqual((await client.list(path)).items, [stored]);

    for (const query of ['', 'fieldValidation=Warn', 'fieldValidation=Ignore']) {
      for (const { status, headers, text } of await Promise.all(ask(`${query}&dryRun=All`))) {
        t.true(status === 201 || status === 200, text);
        const lines = query.endsWith('Ignore') ? undefined : causes.map((cause) => `299 - ${JSON.stringify(cause)}`).join(', ');
        t.is(headers['warning'], lines);
        for (const each of paths) t.false(text.includes(`${JSON.stringify(each.replace(/.*\./, ''))}:`), text);
      }
    }
    await client.raw('POST', path, { body: anApiExport({ name: 'two', ...metadata }) });
    const { metadata: kept } = await client.get(`${path}/two`);
    const known = Object.entries(metadata).flatMap(([name, value]) =>
      Array.isArray(value) && value.length > 0 ? [[name, value.length]] : [],
    );
    t.deepEqual(
      Object.entries(kept).flatMap(([name, value]) => (Array.isArray(value) ? [[name, value.length]] : [])),
      known,
    );
  });

for (const metadata of [
  { Name: 'x' },
  { NAME: 5 },
  { LABELS: { a: 'b' } },
  { 'label\u017f': {} },
  { Uid: 'x' },
  { resourceversion: '1' },
  { ownerReferences: [owner, { ...owner, uid: '2', UID: '3' }] },
  { ownerReferences: [{ ...owner, '\u212aind': 'B' }] },
  { managedFields: [{ ...manager, Time: '2020-01-02T03:04:05Z' }] },
  { managedFields: [{ ...manager, fieldsv1: {} }] },
])
  test(`${JSON.stringify(metadata)}: a differently spelled field of metadata is refused, whatever the field validation`, async (t) => {
    const client = (await server()).client();
    const path = aPath({ cluster: `spelled${(clusters += 1)}` });
    const stored = await client.create(path, anApiExport());

    for (const query of ['', '?fieldValidation=Strict', '?fieldValidation=Warn', '?fieldValidation=Ignore'])
      for (const { status, text } of await Promise.all([
        client.raw('POST', `${path}${query}`, { body: anApiExport({ name: 'two', ...metadata }) }),
        client.raw('PUT', `${path}/one${query}`, { body: { ...stored, metadata: { ...stored.metadata, ...metadata } } }),
        client.raw('PATCH', `${path}/one${query}`, { body: { metadata }, headers: { 'content-type': 'application/merge-patch+json' } }),
      ])) {
        t.is(status, 400, text);
        t.regex(text, /is another spelling of [a-zA-Z1]+ in ObjectMeta/);
      }

    t.deepEqual((await client.list(path)).items, [stored]);
  });

test('a page may end at a name of the maximum length, and the next page continues there; a longer name is refused', async (t) => {
  const known = await server();
  const path = '/services/cache/shards/amber/clusters/longnames/apis/rbac.authorization.k8s.io/v1/clusterroles';
  const aRole = (name: string): object => ({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name } });
  const client = known.client();
  const longest = '한'.repeat(1_024);
  for (const name of [longest, '하'.repeat(1_024)]) t.is((await client.raw('POST', path, { body: aRole(name) })).status, 201);

  for (const http2 of [false, true]) {
    const asking = known.client({ http2 });
    const first = JSON.parse((await asking.raw('GET', `${path}?limit=1`)).text) as { metadata: { continue: string } };
    t.is((await asking.raw('GET', `${path}?limit=1&continue=${first.metadata.continue}`)).status, 200);
  }
  const { status, text } = await client.raw('POST', path, { body: aRole(`${longest}x`) });
  t.is(status, 422);
  t.regex(text, /may not be more than 1024 characters/);
  t.true(text.length < 20_000);
});
