/** To which place a URL leads: wildcards, namespaces, canonical paths. */
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { KubeClient, KubeList, KubeStatus } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { frameTypes, RawHttp2 } from '../../support/raw-http2.js';
import { aServer, until } from '../../support/test-server.js';

function atPath(path: string): Record<string, unknown> {
  return anApiExport({ annotations: { 'kcp.io/path': path } });
}

async function answerOf(client: KubeClient, path: string, method = 'GET', body?: unknown): Promise<string> {
  const { status, text } = await client.raw(method, path, body === undefined ? {} : { body });
  const { reason, message, metadata } = JSON.parse(text) as KubeStatus;
  return status < 300 ? `${status} ${metadata.name ?? 'list'}` : `${status} ${reason}: ${message}`;
}

test('a read of a canonical path reads the logical cluster to which it leads', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(aPath({ cluster: 'acme' }), atPath('root:org:acme'));

  t.is(await answerOf(client, aPath({ cluster: 'root:org:acme', name: 'one' })), '200 one');
  t.is((await client.list(aPath({ cluster: 'root:org:acme', shard: '*' }))).items.length, 1);
  t.is((await client.list(aPath({ cluster: 'root:org:acme', shard: 'birch' }))).items.length, 0);
});

test('a canonical path that leads nowhere is 404, one that leads to several clusters is 409 and names them', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(aPath({ cluster: 'acme' }), atPath('root:org'));
  await client.create(aPath({ cluster: 'beta', shard: 'birch' }), atPath('root:org'));

  t.is(await answerOf(client, aPath({ cluster: 'root:none' })), '404 NotFound: no logical cluster has the canonical path "root:none"');
  t.is(
    await answerOf(client, aPath({ cluster: 'root:org' })),
    '409 Conflict: the canonical path "root:org" leads to several logical clusters: acme, beta',
  );
});

test('a watch of a canonical path ends with 410 when the path leads elsewhere, and continues otherwise', async (t) => {
  const client = (await aServer(t)).client();
  const made = await client.create(aPath({ cluster: 'acme' }), atPath('root:org'));
  const received: string[] = [];
  const watched = (async () => {
    for await (const { type, object } of client.watch(`${aPath({ cluster: 'root:org' })}?watch=true`))
      received.push(`${type} ${type === 'ERROR' ? object['code'] : object.metadata.name}`);
  })();
  await until(() => received.length === 1);

  await client.create(aPath({ cluster: 'acme' }), anApiExport({ name: 'two' }));
  await client.create(aPath({ cluster: 'beta' }), atPath('root:else'));
  await until(() => received.length === 2);
  await client.replace(aPath({ cluster: 'acme', name: 'one' }), {
    ...made,
    metadata: { ...made.metadata, annotations: { 'kcp.io/path': 'root:moved' } },
  });
  await watched;

  t.deepEqual(received.slice(0, 2), ['ADDED one', 'ADDED two']);
  t.is(received.at(-1), 'ERROR 410');
});

test('a watch of a canonical path from before it led elsewhere is 410, and a new list shows the current logical cluster', async (t) => {
  const client = (await aServer(t)).client();
  const path = aPath({ cluster: 'root:org' });
  const move = async (cluster: string, name: string, to: string): Promise<void> =>
    void (await client.mergePatch(aPath({ cluster, name }), { metadata: { annotations: { 'kcp.io/path': to } } }));
  const firstOf = async (resourceVersion = ''): Promise<string> => {
    for await (const { type, object } of client.watch(`${path}?watch=true&resourceVersion=${resourceVersion}&timeoutSeconds=1`))
      return `${type} ${type === 'ERROR' ? object['code'] : object.metadata.name}`;
    return 'nothing';
  };
  await client.create(aPath({ cluster: 'acme' }), atPath('root:org'));
  const { metadata } = await client.list(path);
  await client.create(aPath({ cluster: 'beta' }), anApiExport({ name: 'early' }));
  await client.create(aPath({ cluster: 'beta' }), atPath('root:other'));
  t.is(await firstOf(metadata.resourceVersion), 'nothing');

  await move('acme', 'one', 'root:gone');
  await move('beta', 'one', 'root:org');
  const between = (await client.list(aPath({ cluster: '*' }))).metadata.resourceVersion;
  t.is(await firstOf(metadata.resourceVersion), 'ERROR 410');
  const listed = await client.list(path);
  t.deepEqual(
    listed.items.map((item) => item.metadata.name),
    ['early', 'one'],
  );
  t.is(await firstOf(listed.metadata.resourceVersion), 'nothing');
  await client.create(aPath({ cluster: 'beta' }), anApiExport({ name: 'late' }));
  t.is(await firstOf(between), 'ADDED late');
  const list = await client.raw(
    'GET',
    `${path}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=${metadata.resourceVersion}`,
  );
  t.deepEqual([...list.text.matchAll(/"type":"(\w+)"/g)].map(([, type]) => type).slice(0, 4), ['ADDED', 'ADDED', 'ADDED', 'BOOKMARK']);
});

test('after a canonical path leads elsewhere, a slow watch of it sends nothing more of the former logical cluster', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  await client.create(aPath({ cluster: 'acme' }), atPath('root:org'));
  const slow = await RawHttp2.open({ port: server.port, as: server.master, windowBytes: 1 });
  t.teardown(() => slow.destroy());
  await slow.until(() => slow.hasServerSettings, 'settings');
  const stream = slow.request('GET', `${aPath({ cluster: 'root:org' })}?watch=true`);
  await slow.until(() => stream.text.length > 0, 'the first byte');
  for (let i = 0; i < 30; i += 1) await client.create(aPath({ cluster: 'acme' }), anApiExport({ name: `before-${i}` }));

  await client.mergePatch(aPath({ cluster: 'acme', name: 'one' }), { metadata: { annotations: { 'kcp.io/path': 'root:moved' } } });
  await client.create(aPath({ cluster: 'acme' }), anApiExport({ name: 'after' }));
  const more = Buffer.alloc(4);
  more.writeUInt32BE(1024 * 1024);
  slow.frames([stream.id, 0].map((id) => [frameTypes.windowUpdate, 0, id, more]));
  await slow.until(() => stream.isOver, 'the end');

  t.true(stream.text.trimEnd().split('\n').at(-1)?.includes('"code":410'), stream.text.slice(-500));
  t.false(stream.text.includes('root:moved'));
  t.false(stream.text.includes('"after"'));
});

test('a list of a canonical path that moves in the meantime shows one logical cluster, and a watch from it the same one', async (t) => {
  const server = await aServer(t);
  const [client, other] = [server.client({ http2: true }), server.client({ http2: true })];
  for (let round = 0; round < rounds(6); round += 1) {
    const [from, to, path] = [`from-${round}`, `to-${round}`, `root:org-${round}`];
    const listed = aPath({ cluster: path, shard: '*' });
    await client.create(aPath({ cluster: from }), atPath(path));
    await client.create(aPath({ cluster: to }), anApiExport({ name: 'two' }));
    const spec = { text: 'x'.repeat(100_000) };
    for (let i = 0; i < 20; i += 1) await client.create(aPath({ cluster: from }), anApiExport({ name: `long-${i}` }, { spec }));
    // A list that starts shortly after an unfinished one waits, so that both share what is read.
    const slow = await RawHttp2.open({ port: server.port, as: server.master, windowBytes: 1 });
    t.teardown(() => slow.destroy());
    await slow.until(() => slow.hasServerSettings, 'settings');
    slow.request('GET', listed);
    await client.create(aPath({ cluster: from }), anApiExport({ name: 'three' }));
    const list = other.raw('GET', listed);
    const move = (cluster: string, name: string, into: string): Promise<unknown> =>
      client.mergePatch(aPath({ cluster, name }), { metadata: { annotations: { 'kcp.io/path': into } } });
    await Promise.all([move(from, 'one', `root:old-${round}`), move(to, 'two', path)]);
    const { status, text } = await list;
    t.true([200, 404, 410].includes(status), `${status} ${text}`);
    if (status !== 200) continue;
    const { metadata, items } = JSON.parse(text) as KubeList;
    const shown = items.map((item) => item.metadata.annotations?.['kcp.io/cluster']);
    const watched = await client.raw(
      'GET',
      `${listed}&watch=true&timeoutSeconds=1&resourceVersion=${metadata.resourceVersion}`.replace('&', '?'),
    );
    t.true(shown.every((cluster) => cluster === to) || watched.text.includes('"code":410'), `${shown.join()}: ${watched.text}`);
  }
});

test('a write accepts no canonical path and no wildcard as its place', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(aPath(), atPath('root:org'));

  for (const [method, place] of [
    ['POST', {}],
    ['PUT', { name: 'one' }],
    ['PATCH', { name: 'one' }],
    ['DELETE', { name: 'one' }],
    ['DELETE', {}],
  ] as const) {
    t.is(
      await answerOf(client, aPath({ ...place, cluster: 'root:org' }), method, anApiExport()),
      '400 BadRequest: invalid cluster: "root:org" is not a logical cluster name',
    );
    t.is(
      await answerOf(client, aPath({ ...place, cluster: '*' }), method, anApiExport()),
      '400 BadRequest: a write needs one cluster, not all of them',
    );
    if (method !== 'PATCH')
      t.is(
        await answerOf(client, aPath({ ...place, shard: '*' }), method, anApiExport()),
        '400 BadRequest: a write needs one shard, not all of them',
      );
  }
  t.is((await client.list(aPath({ shard: '*', cluster: '*' }))).items.length, 1);
});

test('below the wildcard cluster a name that exists once is found; one that exists several times is 409 with its places', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(aPath({ shard: 'birch', cluster: 'beta' }), anApiExport({ name: 'once' }));
  for (const [shard, cluster] of [
    ['amber', 'acme'],
    ['amber', 'beta'],
    ['birch', 'acme'],
  ] as const)
    await client.create(aPath({ shard, cluster }), anApiExport());
  const everywhere = { shard: '*', cluster: '*' };

  t.is(await answerOf(client, aPath({ ...everywhere, name: 'once' })), '200 once');
  t.is(await answerOf(client, aPath({ shard: 'birch', cluster: '*', name: 'one' })), '200 one');
  t.is(
    await answerOf(client, aPath({ ...everywhere, name: 'one' })),
    '409 Conflict: apiexports.apis.kcp.io "one" is in several places (shard/cluster): amber/acme, amber/beta, birch/acme',
  );
  t.is(
    await answerOf(client, aPath({ shard: 'amber', cluster: '*', name: 'one' })),
    '409 Conflict: apiexports.apis.kcp.io "one" is in several logical clusters: acme, beta',
  );
  t.is(await answerOf(client, aPath({ ...everywhere, name: 'none' })), '404 NotFound: apiexports.apis.kcp.io "none" not found');
  t.is(
    await answerOf(client, aPath({ shard: 'cedar', cluster: '*', name: 'one' })),
    '404 NotFound: apiexports.apis.kcp.io "one" not found',
  );
});

test('below the wildcard cluster a name is looked up in one namespace, and a deleted object is not found', async (t) => {
  const client = (await aServer(t)).client();
  const roles = { group: 'rbac.authorization.k8s.io', resource: 'roles', version: 'v1' };
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'one' }, rules: [] };
  for (const namespace of ['default', 'other']) await client.create(aPath({ ...roles, namespace }), role);
  const one = aPath({ ...roles, shard: '*', cluster: '*', namespace: 'default', name: 'one' });

  t.is(await answerOf(client, one), '200 one');
  await client.delete(aPath({ ...roles, namespace: 'default', name: 'one' }));
  t.is(await answerOf(client, one), '404 NotFound: roles.rbac.authorization.k8s.io "one" not found');
});

test('a conflict below the wildcard cluster names ten places, and that there are others', async (t) => {
  const client = (await aServer(t)).client({ http2: true });
  const clusters = Array.from({ length: 300 }, (_, i) => `c${String(i).padStart(3, '0')}`);
  await Promise.all(
    clusters.map((cluster) => client.create(aPath({ cluster }), anApiExport({ name: cluster === 'c299' ? 'last' : 'one' }))),
  );

  t.is(
    await answerOf(client, aPath({ shard: 'amber', cluster: '*', name: 'one' })),
    `409 Conflict: apiexports.apis.kcp.io "one" is in several logical clusters: ${clusters.slice(0, 10).join(', ')} and others`,
  );
  t.is(await answerOf(client, aPath({ shard: '*', cluster: '*', name: 'last' })), '200 last');
});

test('below the wildcard shard a name is found where it is; on several shards it is 409 with their names', async (t) => {
  const client = (await aServer(t)).client();
  await client.create(aPath({ shard: 'birch' }), anApiExport());
  t.is(await answerOf(client, aPath({ shard: '*', name: 'one' })), '200 one');

  await client.create(aPath({ shard: 'cedar' }), anApiExport());

  t.is(
    await answerOf(client, aPath({ shard: '*', name: 'one' })),
    '409 Conflict: apiexports.apis.kcp.io "one" is on several shards: birch, cedar',
  );
  t.is((await client.list(aPath({ shard: '*' }))).items.length, 2);
});

test('wildcards with a namespace or a field selector list what matches, and all lists annotate the place', async (t) => {
  const client = (await aServer(t)).client();
  const roles = { group: 'rbac.authorization.k8s.io', resource: 'roles', version: 'v1' };
  const aRole = (name: string): Record<string, unknown> => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name },
    rules: [],
  });
  for (const [cluster, namespace, name] of [
    ['acme', 'team', 'a'],
    ['beta', 'team', 'b'],
    ['beta', 'other', 'a'],
  ] as const)
    await client.create(aPath({ ...roles, cluster, namespace }), aRole(name));
  const all = aPath({ ...roles, cluster: '*', shard: '*' });

  const shown = async (path: string): Promise<readonly string[]> =>
    (await client.list(path)).items.map(
      ({ metadata }) => `${metadata.annotations?.['kcp.io/cluster']}/${metadata.namespace}/${metadata.name}`,
    );

  t.deepEqual(await shown(all), ['acme/team/a', 'beta/other/a', 'beta/team/b']);
  t.deepEqual(await shown(aPath({ ...roles, cluster: '*', shard: '*', namespace: 'team' })), ['acme/team/a', 'beta/team/b']);
  t.deepEqual(await shown(`${all}?fieldSelector=metadata.name%3Da`), ['acme/team/a', 'beta/other/a']);
  t.deepEqual(await shown(`${all}?fieldSelector=metadata.name%3Da,metadata.namespace!%3Dteam`), ['beta/other/a']);
  t.deepEqual(await shown(aPath({ ...roles, cluster: 'beta', shard: '*' })), ['beta/other/a', 'beta/team/b']);
});

test('an object of a namespaced type needs its namespace, a cluster-scoped one has none', async (t) => {
  const client = (await aServer(t)).client();
  const roles = { group: 'rbac.authorization.k8s.io', resource: 'roles', version: 'v1' };

  t.regex(await answerOf(client, aPath({ ...roles, name: 'a' })), /^404 NotFound/);
  t.regex(
    await answerOf(client, aPath({ ...roles }), 'POST', {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'a', namespace: 'team' },
    }),
    /^404 NotFound/,
  );
  t.regex(await answerOf(client, aPath({ namespace: 'team', name: 'one' })), /^404 NotFound/);
  t.regex(await answerOf(client, aPath({ namespace: 'team' }), 'POST', anApiExport()), /^404 NotFound/);
});

test('except for discovery, a URL without a shard or a logical cluster is 400 with what is missing', async (t) => {
  const client = (await aServer(t)).client();
  const rule = 'a URL begins with /services/cache/shards/SHARD/clusters/CLUSTER, where * stands for all of them';
  const path = '/apis/apis.kcp.io/v1alpha2/apiexports';

  for (const before of ['', '/services/cache', '/clusters/root:org', '/services/cache/clusters/acme']) {
    for (const described of ['/api', '/apis', '/apis/apis.kcp.io', '/apis/apis.kcp.io/v1alpha2', '/openapi/v3', '/version'])
      t.is((await client.raw('GET', before + described)).status, 200, before + described);
    for (const method of ['GET', 'POST', 'DELETE'])
      t.is(await answerOf(client, before + path, method, {}), `400 BadRequest: a shard name is required: ${rule}`);
    for (const nothing of ['/nothing', '/metrics', '/apis/none'].filter((other) => before !== '' || other !== '/metrics'))
      t.is(await answerOf(client, before + nothing), `400 BadRequest: a shard name is required: ${rule}`);
  }
  t.is(await answerOf(client, `/services/cache/shards/amber${path}`), `400 BadRequest: a cluster name is required: ${rule}`);
});
