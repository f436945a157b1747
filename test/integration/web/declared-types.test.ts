/**
 * The life of a type that ClusterCachedResources declare: served while one exists, and removed with
 * its objects after the last.
 */
import { test } from '../../support/test.js';
import type { KubeClient, KubeObject, WatchEvent } from '../../support/kube-client.js';
import { aClusterCachedResource, aPath } from '../../support/objects.js';
import { pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, TestServer, until } from '../../support/test-server.js';

const partial = { accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1' };
const partialList = { accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1' };

function instances(
  place: { cluster?: string; shard?: string; identity?: string; name?: string; namespace?: string; version?: string } = {},
): string {
  return aPath({ group: 'machines.svm.io', resource: 'instances', version: 'v1', ...place });
}

function declarations(place: { cluster?: string; shard?: string; name?: string } = {}): string {
  return aPath({ group: 'cache.kcp.io', resource: 'clustercachedresources', version: 'v1alpha1', ...place });
}

function anInstance(name: string, metadata: Record<string, unknown> = {}): Record<string, unknown> {
  return { apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name, ...metadata }, spec: {} };
}

async function statusOf(client: KubeClient, path: string, method = 'GET', body?: unknown): Promise<number> {
  return (await client.raw(method, path, body === undefined ? {} : { body })).status;
}

/** Collects the events of a watch; `isOver`: whether it has ended. */
function following(
  client: KubeClient,
  path: string,
  headers: Record<string, string> = {},
): { received: string[]; events: WatchEvent[]; done: Promise<void>; isOver: () => boolean } {
  const received: string[] = [];
  const events: WatchEvent[] = [];
  let over = false;
  const done = (async () => {
    for await (const event of client.watch(`${path}?watch=true`, { headers })) {
      events.push(event);
      received.push(`${event.type} ${event.object.metadata.name ?? ''}`.trim());
    }
    over = true;
  })();
  // A watch that is still open at the end of the test breaks off with its server.
  done.catch(() => {});
  return { received, events, done, isOver: () => over };
}

test('a type is unknown before it is declared, served while it is, and removed with its objects and watches afterwards', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  t.is(await statusOf(client, instances({ identity: 'hash' }), 'POST', anInstance('early')), 404);
  t.is(await statusOf(client, instances({ cluster: '*', shard: '*', identity: 'hash' })), 404);

  await client.create(declarations(), aClusterCachedResource('hash'));
  await client.create(instances({ identity: 'hash' }), anInstance('a'));
  await client.create(instances({ identity: 'hash' }), anInstance('b'));
  t.is((await client.list(instances({ cluster: '*', shard: '*', identity: 'hash' }))).items.length, 2);
  t.is((await client.list(instances())).items.length, 2);
  t.is(await statusOf(client, instances({ cluster: 'beta' })), 404);
  t.is(await statusOf(client, instances({ cluster: '*', shard: '*', identity: 'other' })), 404);
  t.is(await statusOf(client, instances({ cluster: '*', shard: '*' })), 404);
  t.is(await statusOf(client, instances({ version: 'v2' })), 404);

  const watches = [following(client, instances({ cluster: '*', shard: '*', identity: 'hash' })), following(client, instances())];
  await until(() => watches.every(({ received }) => received.length === 2));
  await client.delete(declarations({ name: 'instances' }));
  await Promise.all(watches.map(({ done }) => done));

  for (const { received } of watches) t.deepEqual(received, ['ADDED a', 'ADDED b', 'DELETED a', 'DELETED b']);
  t.is(await statusOf(client, instances({ cluster: '*', shard: '*', identity: 'hash' })), 404);
  t.is(await statusOf(client, instances()), 404);
});

test('a declaration without status declares nothing, and a type stays declared as long as one of several declarations exists', async (t) => {
  const client = (await aServer(t)).client();
  const { status: _, ...unfinished } = aClusterCachedResource('hash');
  const first = await client.create(declarations(), unfinished);
  t.is(await statusOf(client, instances({ identity: 'hash' }), 'POST', anInstance('a')), 404);

  await client.replace(declarations({ name: 'instances' }), { ...first, status: { identityHash: 'hash' } });
  await client.create(declarations({ cluster: 'beta' }), aClusterCachedResource('hash', { name: 'again' }));
  await client.create(instances({ identity: 'hash' }), anInstance('a'));
  await client.delete(declarations({ name: 'instances' }));

  t.is(await statusOf(client, instances({ cluster: '*', shard: '*', identity: 'hash' })), 200);
  t.is(await statusOf(client, instances({ cluster: 'beta' })), 200);
  t.is(await statusOf(client, instances({ cluster: 'acme' })), 404);
});

test('the wildcard view of metadata shows every identity, live: one that is declared later joins an open watch', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(declarations(), aClusterCachedResource('first'));
  await client.create(instances({ identity: 'first' }), anInstance('a'));
  const watch = following(client, instances({ cluster: '*', shard: '*', version: 'v9', identity: 'first' }), partial);
  await until(() => watch.received.length === 1);

  await client.create(declarations({ cluster: 'beta' }), aClusterCachedResource('second', { version: 'v2' }));
  await client.create(instances({ cluster: 'beta', identity: 'second', version: 'v2' }), {
    ...anInstance('b'),
    apiVersion: 'machines.svm.io/v2',
  });
  await until(() => watch.received.length === 2);
  await client.delete(declarations({ name: 'instances' }));
  await until(() => watch.received.length === 3);

  t.deepEqual(watch.received, ['ADDED a', 'ADDED b', 'DELETED a']);
  t.false(watch.isOver());
  const annotations = (object: KubeObject | undefined): Record<string, string> => ({ ...object?.metadata.annotations });
  t.like(annotations(watch.events[1]?.object), {
    'kcp.io/cluster': 'beta',
    'kcp.io/shard': 'amber',
    'kcp.io/original-api-version': 'machines.svm.io/v2',
  });
  const list = JSON.parse(
    (await client.raw('GET', instances({ cluster: '*', shard: '*', version: 'v9' }), { headers: partialList })).text,
  ) as { items: KubeObject[] };
  t.deepEqual(
    list.items.map(({ metadata }) => metadata.name),
    ['b'],
  );
});

test('each identity has its own keys: the same name under two identities is two objects', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(declarations(), aClusterCachedResource('first'));
  await client.create(declarations(), aClusterCachedResource('second', { name: 'other' }));

  await client.create(instances({ identity: 'first' }), anInstance('a', { labels: { of: 'first' } }));
  await client.create(instances({ identity: 'second' }), anInstance('a', { labels: { of: 'second' } }));

  t.is((await client.get(instances({ identity: 'first', name: 'a' }))).metadata.labels?.['of'], 'first');
  t.is((await client.get(instances({ identity: 'second', name: 'a' }))).metadata.labels?.['of'], 'second');
  t.is((await client.list(instances({ cluster: '*', shard: '*', identity: 'second' }))).items.length, 1);
});

test('a watch without an identity ends with 410 when its logical cluster declares another, and an older version cannot resume', async (t) => {
  const client = (await aServer(t)).client();
  const first = async (revision: string): Promise<string> => {
    for await (const { type, object } of client.watch(`${instances()}?watch=true&resourceVersion=${revision}&timeoutSeconds=1`))
      return `${type} ${type === 'ERROR' ? object['code'] : object.metadata.name}`;
    return 'nothing';
  };
  await client.create(declarations({ cluster: 'beta' }), aClusterCachedResource('hash-a', { name: 'kept' }));
  await client.create(declarations(), aClusterCachedResource('hash-a', { name: 'm' }));
  await client.create(instances({ identity: 'hash-a' }), anInstance('old'));
  const before = (await client.list(instances())).metadata.resourceVersion ?? '';
  const [unnamed, named] = [following(client, instances()), following(client, instances({ identity: 'hash-a' }))];
  await until(() => unnamed.received.length === 1 && named.received.length === 1);

  await client.create(declarations(), aClusterCachedResource('hash-b', { name: 'z' }));
  await client.create(declarations({ cluster: 'beta' }), aClusterCachedResource('hash-b', { name: 'a' }));
  await client.create(instances({ identity: 'hash-b' }), anInstance('new'));
  await client.create(instances({ identity: 'hash-a' }), anInstance('older'));
  await until(() => unnamed.received.length === 2 && named.received.length === 2);
  t.is(await first(before), 'ADDED older');
  await client.create(declarations(), aClusterCachedResource('hash-b', { name: 'a' }));
  await until(unnamed.isOver);

  t.deepEqual(unnamed.received.slice(0, -1), ['ADDED old', 'ADDED older']);
  t.is(unnamed.events.at(-1)?.object['code'], 410);
  t.is(await first(before), 'ERROR 410');
  t.is(await statusOf(client, `${instances()}?resourceVersion=${before}&resourceVersionMatch=Exact`), 410);
  const { items, metadata } = await client.list(instances());
  t.deepEqual(
    items.map((item) => item.metadata.name),
    ['new'],
  );
  await client.create(instances({ identity: 'hash-b' }), anInstance('newer'));
  t.is(await first(metadata.resourceVersion ?? ''), 'ADDED newer');
  t.false(named.isOver());
});

test('a watch ends when its type gets another version or kind, at once or after it was gone, and other watches continue', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  const wildcard = instances({ cluster: '*', shard: '*', identity: 'hash' });
  const replaceWith = async (definition: Parameters<typeof aClusterCachedResource>[1]): Promise<void> => {
    const { metadata } = await client.get(declarations({ name: 'instances' }));
    const body = { ...aClusterCachedResource('hash', definition), metadata };
    t.is(await statusOf(client, declarations({ name: 'instances' }), 'PUT', body), 200);
  };
  await client.create(declarations({ cluster: 'other' }), aClusterCachedResource('another', { name: 'others' }));
  const other = following(client, instances({ cluster: '*', shard: '*', identity: 'another' }));
  await client.create(declarations(), aClusterCachedResource('hash'));
  await client.create(instances({ identity: 'hash' }), anInstance('a'));

  const ofFirst = following(client, wildcard);
  await until(() => ofFirst.received.length === 1);
  await replaceWith({ version: 'v2' });
  await ofFirst.done;
  t.deepEqual(ofFirst.received, ['ADDED a']);
  t.is(await statusOf(client, wildcard), 404);

  const ofSecond = following(client, instances({ cluster: '*', shard: '*', identity: 'hash', version: 'v2' }));
  await until(() => ofSecond.received.length === 1);
  await client.delete(declarations({ name: 'instances' }));
  await client.create(declarations(), aClusterCachedResource('hash', { version: 'v2', kind: 'Machine' }));
  await ofSecond.done;

  await client.create(instances({ cluster: 'other', identity: 'another' }), anInstance('b'));
  await until(() => other.received.length === 1);
  t.false(other.isOver());
});

test('an object of a namespaced declared type may name its namespace in the body only, as kcp replicates it', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(declarations(), aClusterCachedResource('hash', { scope: 'Namespaced' }));

  const created = await client.create(instances({ identity: 'hash' }), anInstance('a', { namespace: 'team' }));

  t.is(created.metadata.namespace, 'team');
  t.is((await client.get(instances({ identity: 'hash', namespace: 'team', name: 'a' }))).metadata.name, 'a');
  t.is(await statusOf(client, instances({ identity: 'hash' }), 'POST', anInstance('b')), 404);
});

for (const resource of ['status', 'finalize', 'namespaces'])
  test(`${resource === 'namespaces' ? 'status' : resource} below a namespace is its subresource, even if a type ${resource} is declared`, async (t) => {
    const client = (await aServer(t)).client();
    const of = (place: { namespace?: string; identity?: string; name?: string }): string =>
      instances(place).replace('/instances', `/${resource}`);
    const isNamespaced = resource !== 'namespaces';
    const declared = aClusterCachedResource('hash', { scope: isNamespaced ? 'Namespaced' : 'Cluster' });
    await client.create(declarations(), { ...declared, spec: { ...(declared['spec'] as object), resource } });
    for (const name of ['a', 'b']) await client.create(of({ identity: 'hash' }), anInstance(name, isNamespaced ? { namespace: 'a' } : {}));
    const part = isNamespaced ? of({ namespace: 'a' }) : `${of({ name: 'a' })}/status`;

    for (const path of [part, `${part}/a`, `${part}?dryRun=All`, part.replace('machines.svm.io', 'other.io')])
      for (const method of ['DELETE', 'GET', 'POST', 'PUT', 'PATCH'])
        t.regex(String(await statusOf(client, path, method, method === 'GET' ? undefined : {})), /^(?:404|405)$/, `${method} ${path}`);
    t.is(await statusOf(client, part, 'DELETE'), 404);

    t.is((await client.list(of({ identity: 'hash' }))).items.length, 2);
  });

test('a shard that copies an identity does not change what the identity’s own shard may push', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  const slice = sliceOf('instances', { shard: 'bravo', group: 'machines.svm.io', identity: 'hash' });
  await client.create(declarations({ shard: 'bravo' }), aClusterCachedResource('hash'));
  await client.create(declarations(), aClusterCachedResource('hash', { name: '0', kind: 'Copied', scope: 'Namespaced', version: 'v9' }));

  const bravo = await RawPusher.open(server, { name: 'bravo' });
  await bravo.sync(slice, [pushedObject(anInstance('a', { uid: 'a' }))], 'v1');

  const { items } = await client.list(instances({ cluster: '*', shard: 'bravo', identity: 'hash' }));
  t.deepEqual(
    items.map(({ apiVersion, kind }) => [apiVersion, kind]),
    [['machines.svm.io/v1', 'Instance']],
  );
});

test('a type that is redeclared while its objects are being removed is resynced as a whole, whatever was synced in the meantime', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  const slice = sliceOf('instances', { group: 'machines.svm.io', identity: 'hash' });
  const everything = instances({ cluster: '*', shard: '*', identity: 'hash' });
  const many = Array.from({ length: 1_500 }, (_, index) => pushedObject(anInstance(`i-${index}`, { uid: `${index}` })));
  const amber = await RawPusher.open(server);
  await client.create(declarations({ shard: 'bravo' }), aClusterCachedResource('hash'));
  amber.begin(slice);
  for (let from = 0; from < many.length; from += 100) await amber.acknowledged(amber.put(slice, many.slice(from, from + 100), 'v1'));
  await amber.acknowledged(amber.end(slice, many.length));

  await client.delete(declarations({ shard: 'bravo', name: 'instances' }));
  await client.create(declarations({ shard: 'bravo' }), aClusterCachedResource('hash'));
  await amber.sync(slice, many.slice(-50), 'v1');
  await until(() => server.logged.some(({ event }) => event === 'type.removed'));
  amber.socket.terminate();

  // The pusher has not seen the request for a resync, and objects acknowledged in between may have
  // been removed.
  const again = await RawPusher.open(server, { named: amber.term, position: amber.position });
  again.put(slice, many.slice(0, 1), 'v1');
  t.like(await again.expect('resync'), { slice });
  await again.sync(slice, many.slice(-50), 'v1');

  t.is((await client.list(everything)).items.length, 50);
});

test('after a restart a declared type is served as before', async (t) => {
  const server = await TestServer.start();
  const client = server.client();
  await client.create(declarations(), aClusterCachedResource('hash'));
  await client.create(instances({ identity: 'hash' }), anInstance('a'));

  const again = await server.restart();
  t.teardown(() => again.close());

  t.is((await again.client().list(instances({ cluster: '*', shard: '*', identity: 'hash' }))).items.length, 1);
});
