/**
 * Many concurrent writes of one object: a write that names no version must never be in conflict,
 * and no write may be lost.
 */
import type { ExecutionContext } from 'ava';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { Answer, KubeClient, KubeObject } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { TestServer } from '../../support/test-server.js';

const server = shared(
  () => TestServer.start(),
  (made) => made.close(),
);

let clusters = 0;

const merge = { 'content-type': 'application/merge-patch+json' };
const json = { 'content-type': 'application/json-patch+json' };
const strategic = { 'content-type': 'application/strategic-merge-patch+json' };

/** An object in a logical cluster of the test's own. */
async function anObject(
  metadata: Readonly<Record<string, unknown>> = {},
  spec: unknown = {},
): Promise<{ client: KubeClient; path: string; object: KubeObject }> {
  const client = (await server()).client();
  const collection = aPath({ cluster: `many${(clusters += 1)}` });
  const object = await client.create(collection, anApiExport({ labels: { first: 'x' }, ...metadata }, { spec }));
  return { client, path: `${collection}/one`, object };
}

async function aRole(): Promise<{ client: KubeClient; path: string }> {
  const client = (await server()).client();
  const path = aPath({ cluster: `many${(clusters += 1)}`, group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterroles' });
  await client.create(path, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'one', labels: { first: 'x' } },
  });
  return { client, path: `${path}/one` };
}

function labelled(client: KubeClient, path: string, label: string, headers: Readonly<Record<string, string>> = merge): Promise<Answer> {
  const body =
    headers === json ? [{ op: 'add', path: `/metadata/labels/${label}`, value: 'x' }] : { metadata: { labels: { [label]: 'x' } } };
  return client.raw('PATCH', path, { headers, body });
}

function countsOf(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function named(count: number, prefix = 'l'): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i}`);
}

/** All writes were stored, one after the other, and the object has what each one wrote. */
async function assertAllStored(
  t: ExecutionContext,
  answers: readonly Answer[],
  { client, path }: { client: KubeClient; path: string },
): Promise<void> {
  t.deepEqual(countsOf(answers), { 200: answers.length }, answers.find(({ status }) => status !== 200)?.text);
  const versions = answers.map(({ text }) => (JSON.parse(text) as KubeObject).metadata.resourceVersion);
  t.is(new Set(versions).size, answers.length, 'each has a revision of its own');
  t.is(Object.keys((await client.get(path)).metadata.labels ?? {}).length, answers.length + 1);
}

for (const count of [30, 200])
  for (const [what, headers] of [
    ['merge', merge],
    ['JSON', json],
    ['strategic merge', strategic],
  ] as const)
    (count === 30 ? test.serial : largeTest)(`${count} ${what} patches of one object at once are all stored`, async (t) => {
      const place = headers === strategic ? await aRole() : await anObject();

      const answers = await Promise.all(named(count).map((label) => labelled(place.client, place.path, label, headers)));

      await assertAllStored(t, answers, place);
    });

test.serial('concurrent patches of one object over several connections of both protocols are all stored', async (t) => {
  const { path } = await anObject();
  const clients = [true, false, true].map((http2) => ({ http2 }));
  const open = await Promise.all(clients.map(async (options) => (await server()).client(options)));

  const answers = await Promise.all(named(90).map((label, i) => labelled(open[i % open.length]!, path, label, i % 2 === 0 ? merge : json)));

  await assertAllStored(t, answers, { client: open[0]!, path });
});

test.serial('forty concurrent patches of one object that is too large for the serving thread are all stored', async (t) => {
  const place = await anObject({}, { filling: 'x'.repeat(64 * 1024) });

  const answers = await Promise.all(named(40).map((label) => labelled(place.client, place.path, label)));

  await assertAllStored(t, answers, place);
});

test.serial('a patch that names a version is in conflict once that is replaced: of thirty one is stored', async (t) => {
  const { client, path, object } = await anObject();
  const { resourceVersion } = object.metadata;

  const answers = await Promise.all(
    named(30).map((label) =>
      client.raw('PATCH', path, { headers: merge, body: { metadata: { resourceVersion, labels: { [label]: 'x' } } } }),
    ),
  );

  t.deepEqual(countsOf(answers), { 200: 1, 409: 29 });
  const tested = await client.raw('PATCH', path, {
    headers: json,
    body: [
      { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
      { op: 'add', path: '/metadata/labels/late', value: 'x' },
    ],
  });
  t.is(tested.status, 422);
});

test.serial('a patch with a wrong uid is refused only because of the uid, however many others there are', async (t) => {
  const { client, path, object } = await anObject();
  const { uid } = object.metadata;
  const own = named(30).map((label) =>
    client.raw('PATCH', path, { headers: merge, body: { metadata: { uid, labels: { [label]: 'x' } } } }),
  );
  const anothers = named(5, 'z').map((label) =>
    client.raw('PATCH', path, { headers: merge, body: { metadata: { uid: 'another', labels: { [label]: 'x' } } } }),
  );

  t.deepEqual(countsOf(await Promise.all(own)), { 200: 30 });
  t.deepEqual(countsOf(await Promise.all(anothers)), { 409: 5 });
});

test.serial(
  'patches among PUTs, deletes and creates are stored or find nothing: only a PUT, which names a version, is in conflict',
  async (t) => {
    const { client, path } = await anObject();
    const collection = path.slice(0, -'/one'.length);
    const replace = async (i: number): Promise<Answer> => {
      const read = await client.raw('GET', path);
      if (read.status !== 200) return read;
      return client.raw('PUT', path, { body: { ...(JSON.parse(read.text) as KubeObject), spec: { i } } });
    };

    const [patches, puts, deletes, creates] = await Promise.all([
      Promise.all(named(100).map((label, i) => labelled(client, path, label, i % 2 === 0 ? merge : json))),
      Promise.all(named(30).map((_, i) => replace(i))),
      Promise.all(named(5).map(() => client.raw('DELETE', path))),
      Promise.all(named(10).map(() => client.raw('POST', collection, { body: anApiExport({ labels: {} }) }))),
    ]);

    const statuses = (answers: readonly Answer[]): readonly number[] => [...new Set(answers.map(({ status }) => status))].toSorted();
    for (const status of [...statuses(patches), ...statuses(deletes)]) t.true([200, 404, 422].includes(status), `${status}`);
    for (const { status, text } of patches) if (status === 422) t.regex(text, /the path .*nonexistent|nonexistent|not exist/i);
    for (const status of statuses(puts)) t.true([200, 404, 409].includes(status), `${status}`);
    for (const status of statuses(creates)) t.true([201, 409].includes(status), `${status}`);
  },
);

test.serial('a delete is in conflict only if it names a version: neither without preconditions nor with a uid', async (t) => {
  const { client, path, object } = await anObject();
  const body = { preconditions: { uid: object.metadata.uid } };
  const patches = named(60).map((label) => labelled(client, path, label));
  const deletes = [...named(3).map(() => client.raw('DELETE', path, { body })), client.raw('DELETE', path)];

  t.deepEqual(countsOf(await Promise.all(deletes)), { 200: 1, 404: 3 });
  for (const { status } of await Promise.all(patches)) t.true([200, 404].includes(status), `${status}`);
});

test.serial('a collection can be deleted while its objects are being patched', async (t) => {
  const client = (await server()).client();
  const collection = aPath({ cluster: `many${(clusters += 1)}` });
  for (const name of named(5, 'o')) await client.create(collection, anApiExport({ name, labels: { first: 'x' } }));
  const patches = named(60).map((label, i) => labelled(client, `${collection}/o${i % 5}`, label));

  t.is((await client.raw('DELETE', collection)).status, 200);

  for (const { status } of await Promise.all(patches)) t.true([200, 404].includes(status), `${status}`);
});
