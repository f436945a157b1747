/**
 * Views over the wire: what the URL of an APIExport shows, what a syncer's shows, to whom, and what
 * neither ever shows.
 */
import type { ExecutionContext } from 'ava';
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import type { KubeClient, KubeList } from '../../support/kube-client.js';
import { aClusterCachedResource, aPath } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';

const apiExports = { group: 'apis.kcp.io', resource: 'apiexports', version: 'v1alpha2' };
const declarations = { group: 'cache.kcp.io', resource: 'clustercachedresources', version: 'v1alpha1' };
const instances = { group: 'machines.svm.io', resource: 'instances', version: 'v1' };
const ownApi = 'apis/machines.svm.io/v1/instances';
const partial = { accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1' };

type Storage = Readonly<{ crd: object }> | Readonly<{ virtual: Readonly<{ identityHash: string }> }>;

function anExport(name: string, identityHash: string, storage: Storage = { crd: {} }, more: readonly object[] = []): object {
  const schema = 'v1.instances.machines.svm.io';
  const resources = [{ group: 'machines.svm.io', name: 'instances', schema, storage }, ...more];
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name }, spec: { resources }, status: { identityHash } };
}

async function declare(
  client: KubeClient,
  place: { cluster: string; shard: string },
  identity: string,
  names: readonly string[],
): Promise<void> {
  await client.create(aPath({ ...declarations, ...place }), aClusterCachedResource(identity, { name: `of-${identity}` }));
  for (const name of names)
    await client.create(aPath({ ...instances, ...place, identity }), {
      apiVersion: 'machines.svm.io/v1',
      kind: 'Instance',
      metadata: { name },
      spec: {},
    });
}

/**
 * Instances of two identities on two shards. The APIExport `widgets` exports one of them; `cached`
 * names the other as its virtual storage.
 */
async function anInstallation(t: ExecutionContext): Promise<TestServer> {
  const server = await aServer(t);
  const client = server.client();
  await declare(client, { shard: 'amber', cluster: 'c1' }, 'hash', ['a', 'b']);
  await declare(client, { shard: 'birch', cluster: 'c2' }, 'hash', ['c']);
  await declare(client, { shard: 'birch', cluster: 'c3' }, 'other', ['x']);
  const home = { ...apiExports, shard: 'amber', cluster: 'provider' };
  await client.create(aPath(home), anExport('widgets', 'hash'));
  await client.create(aPath(home), anExport('cached', 'unused', { virtual: { identityHash: 'other' } }));
  return server;
}

async function namesAt(client: KubeClient, path: string): Promise<readonly (string | undefined)[]> {
  return (await client.list(path)).items.map(({ metadata }) => metadata.name).toSorted();
}

for (const http2 of [false, true])
  test(`the resources of an APIExport are listed, read and watched on all shards, over ${http2 ? 'HTTP/2' : 'HTTP/1.1'}`, async (t) => {
    const server = await anInstallation(t);
    const client = server.client({ http2 });
    const view = '/services/apiexport/provider/widgets';
    for (const prefix of [view, `${view}/hash`]) {
      t.deepEqual(await namesAt(client, `${prefix}/clusters/*/${ownApi}`), ['a', 'b', 'c'], prefix);
      t.deepEqual(await namesAt(client, `${prefix}/clusters/c2/${ownApi}`), ['c']);
      t.is((await client.get(`${prefix}/clusters/c1/${ownApi}/a`)).metadata.name, 'a');
      t.deepEqual(await namesAt(client, `${prefix}/clusters/c3/${ownApi}`), []);
      t.is((await client.raw('GET', `${prefix}/clusters/c3/${ownApi}/x`)).status, 404);
    }
    t.deepEqual(await namesAt(client, `/services/apiexport/provider/cached/clusters/*/${ownApi}`), ['x']);

    const metadata = await client.raw('GET', `${view}/clusters/*/${ownApi}`, { headers: partial });
    t.is(metadata.status, 200);
    t.deepEqual(
      (JSON.parse(metadata.text) as { items: { metadata: { name: string } }[] }).items.map((each) => each.metadata.name),
      ['a', 'b', 'c'],
    );

    const stop = new AbortController();
    t.teardown(() => stop.abort());
    const seen: (string | undefined)[] = [];
    void (async () => {
      for await (const { object } of client.watch(`${view}/clusters/*/${ownApi}`, { signal: stop.signal })) seen.push(object.metadata.name);
    })().catch(() => {});
    await until(() => seen.length === 3);
    for (const [cluster, shard, identity, name] of [
      ['c3', 'birch', 'other', 'y'],
      ['c2', 'birch', 'hash', 'd'],
    ] as const)
      // prettier-ignore
      await client.create(aPath({ ...instances, cluster, shard, identity }), { apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name }, spec: {} });
    await until(() => seen.length > 3);
    t.deepEqual(seen.slice(3), ['d']);
  });

test('an export that several shards have is 409, because one of the two may be forged', async (t) => {
  const server = await anInstallation(t);
  const mallory = server.client({
    as: server.authority.issue({ user: 'mallory', groups: ['strata'], uris: ['strata://shard/mallory'] }),
  });
  await mallory.create(aPath({ ...apiExports, shard: 'mallory', cluster: 'provider' }), anExport('widgets', 'other'));
  for (const identity of ['', '/hash', '/other']) {
    const { status, text } = await server.client().raw('GET', `/services/apiexport/provider/widgets${identity}/clusters/*/${ownApi}`);
    t.is(status, 409, identity);
    t.regex(text, /on several shards: amber, mallory/);
  }
});

test('discovery shows the types of the export, and that they are read-only', async (t) => {
  const server = await anInstallation(t);
  const client = server.client();
  const view = '/services/apiexport/provider/widgets/clusters/*';
  const groups = JSON.parse((await client.raw('GET', `${view}/apis`)).text) as { groups: { name: string }[] };
  t.deepEqual(groups.groups.map(({ name }) => name), ['machines.svm.io']); // prettier-ignore
  const found = JSON.parse((await client.raw('GET', `${view}/apis/machines.svm.io/v1`)).text) as {
    resources: { name: string; verbs: string[] }[];
  };
  t.deepEqual(found.resources.map(({ name, verbs }) => [name, ...verbs]), [['instances', 'get', 'list', 'watch']]); // prettier-ignore
  t.is((await client.raw('GET', `${view}/apis/apis.kcp.io/v1alpha2`)).status, 404);
  t.is((await client.raw('GET', `${view}/openapi/v3`)).status, 200);
});

test('a watch of a view gets 410 when its APIExport changes, and so does one from an older version', async (t) => {
  const server = await anInstallation(t);
  const client = server.client();
  const view = `/services/apiexport/provider/widgets/clusters/*/${ownApi}`;
  const { metadata } = await client.list(view);
  const home = aPath({ ...apiExports, shard: 'amber', cluster: 'provider', name: 'widgets' });
  let opened = (): void => {};
  const isOpen = new Promise<void>((resolve) => (opened = resolve));
  const open = (async () => {
    let last = '';
    for await (const { text } of client.watch(`${view}?watch=true`, { opened })) last = text;
    return last;
  })();
  await isOpen;
  await client.replace(home, { ...(await client.get(home)), status: { identityHash: 'other' } });

  const from = async (revision = ''): Promise<string> =>
    (await client.raw('GET', `${view}?watch=true&timeoutSeconds=1&resourceVersion=${revision}`)).text;
  t.true((await open).includes('"code":410'));
  t.true((await from(metadata.resourceVersion)).includes('"code":410'));
  const again = await client.list(view);
  t.deepEqual(
    again.items.map((item) => item.metadata.name),
    ['x'],
  );
  t.is(await from(again.metadata.resourceVersion), '');
});

test('a list of a view that waits while its APIExport changes shows the view at its version, or is 410', async (t) => {
  const server = await anInstallation(t);
  const client = server.client();
  const place = { ...instances, shard: 'amber', cluster: 'c1', identity: 'hash' };
  const anInstance = (name: string, fill = ''): object => ({
    apiVersion: 'machines.svm.io/v1',
    kind: 'Instance',
    metadata: { name },
    spec: { fill },
  });
  for (let i = 0; i < 20; i += 1) await client.create(aPath(place), anInstance(`large${i}`, 'x'.repeat(400_000)));
  const home = { ...apiExports, shard: 'amber', cluster: 'provider' };
  let waited = 0;

  for (let round = 0; round < 3; round += 1) {
    const made = await client.create(aPath(home), anExport(`e${round}`, 'hash'));
    const view = `/services/apiexport/provider/e${round}/clusters/*/${ownApi}`;
    const slow = await RawHttp1.open({ port: server.port, as: server.master });
    t.teardown(() => slow.destroy());
    slow.head('GET', view);
    await slow.until(() => slow.unread !== '', 'the beginning of a list');
    slow.stopReading();
    await client.create(aPath(place), anInstance(`another${round}`));

    const listed = client.raw('GET', view);
    const changed = await client.replace(aPath({ ...home, name: `e${round}` }), { ...made, status: { identityHash: 'other' } });
    const { status, text } = await listed;

    slow.destroy();
    if (status === 410) waited += 1;
    const isBefore = (version = '0'): boolean => BigInt(version) < BigInt(changed.metadata.resourceVersion ?? 0);
    const { items = [], metadata } = JSON.parse(text) as KubeList;
    t.true(status === 410 || items.length === (isBefore(metadata.resourceVersion) ? 24 + round : 1), `round ${round}: ${items.length}`);
  }

  t.log(`${waited} of 3 lists waited for the change`);
});

test('a view answers 404 for unknown exports, types, identities and clusters, and accepts no writes', async (t) => {
  const server = await anInstallation(t);
  const client = server.client();
  const status = async (path: string, method = 'GET', body?: object): Promise<number> =>
    (await client.raw(method, path, body === undefined ? {} : { body })).status;
  for (const path of [
    `/services/apiexport/provider/none/clusters/*/${ownApi}`,
    `/services/apiexport/elsewhere/widgets/clusters/*/${ownApi}`,
    `/services/apiexport/provider/widgets/other/clusters/*/${ownApi}`,
    `/services/apiexport/provider/widgets/*/clusters/*/${ownApi}`,
    `/services/apiexport/provider/widgets/clusters/*/${ownApi}:other`,
    `/services/apiexport/provider/widgets/clusters/*/${ownApi}:hash`,
    `/services/apiexport/provider/widgets/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports`,
    `/services/apiexport/provider/widgets/clusters/*/apis/machines.svm.io/v2/instances`,
    `/services/apiexport/provider/widgets/clusters/*/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`,
  ])
    t.is(await status(path), 404, path);
  for (const path of [
    '/services/apiexport/provider/widgets',
    `/services/apiexport/provider/widgets/hash/more/clusters/*/${ownApi}`,
    `/services/apiexport/root:org/widgets/clusters/*/${ownApi}`,
    `/services/apiexport/*/widgets/clusters/*/${ownApi}`,
    `/services/syncer/one/clusters/*/${ownApi}`,
    `/services/syncer/a%2Fb/clusters/c1/${ownApi}`,
    `/services/syncer/`,
  ])
    t.is(await status(path), 400, path);
  const view = '/services/apiexport/provider/widgets/clusters/c1';
  const instance = { apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name: 'a' }, spec: {} };
  t.is(await status(`${view}/${ownApi}`, 'POST', instance), 405);
  t.is(await status(`${view}/${ownApi}/a`, 'PUT', instance), 405);
  t.is(await status(`${view}/${ownApi}/a`, 'DELETE'), 405);
  t.is(await status(`/services/apiexport/provider/widgets/clusters/*/${ownApi}`, 'DELETE'), 405);
  t.is(await status(`${view}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`, 'POST', {}), 405);
  t.deepEqual(await namesAt(client, `/services/apiexport/provider/widgets/clusters/*/${ownApi}`), ['a', 'b', 'c']);
});

test('an export that names a type without identity shows nothing of that type', async (t) => {
  const server = await anInstallation(t);
  const client = server.client();
  const greedy = [
    { group: 'apis.kcp.io', name: 'apiexports', schema: 'v1.apiexports.apis.kcp.io', storage: { virtual: { identityHash: '' } } },
  ];
  await client.create(aPath({ ...apiExports, shard: 'amber', cluster: 'provider' }), anExport('greedy', '', { crd: {} }, greedy));
  const view = '/services/apiexport/provider/greedy/clusters/*';
  t.is((await client.raw('GET', `${view}/apis/apis.kcp.io/v1alpha2/apiexports`)).status, 404);
  t.is((await client.raw('GET', `${view}/${ownApi}`)).status, 404);
  t.deepEqual(JSON.parse((await client.raw('GET', `${view}/apis`)).text), { kind: 'APIGroupList', apiVersion: 'v1', groups: [] });
});

test('only masters see views of exports; a syncer’s view is also for its certificate, which reads nothing else', async (t) => {
  const server = await anInstallation(t);
  const speaker = (uri: string) => server.authority.issue({ user: uri.replaceAll('/', '-'), groups: ['strata'], uris: [uri] });
  const [shard, reader, syncer] = await Promise.all(['strata://shard/amber', 'strata://reader/r', 'strata://syncer/one'].map(speaker));
  const status = async (as: Awaited<ReturnType<typeof speaker>> | null | undefined, path: string): Promise<number> =>
    (await server.client({ as: as ?? null }).raw('GET', path)).status;
  for (const as of [shard, reader, syncer, null]) {
    t.is(await status(as, `/services/apiexport/provider/widgets/clusters/*/${ownApi}`), 403);
    t.is(await status(as, `/services/apiexport/provider/widgets/clusters/*/apis`), 403);
    t.is(await status(as, `/services/syncer/two/clusters/c1/${ownApi}`), 403);
  }
  for (const as of [shard, reader, null]) t.is(await status(as, `/services/syncer/one/clusters/c1/${ownApi}`), 403);
  t.is(await status(syncer, `/services/syncer/one/clusters/c1/${ownApi}`), 200);
  for (const path of [
    aPath({ ...instances, shard: '*', cluster: 'c1' }),
    '/metrics',
    '/services/cache/status',
    '/services/cache/resolve?path=root',
    '/services/cache/look-up?version=v1&resource=instances&group=machines.svm.io&cluster=c1&name=a',
  ])
    t.is(await status(syncer, path), 403, path);
});

test('a syncer sees the objects with its label, and an object that loses the label is deleted from its view', async (t) => {
  const server = await anInstallation(t);
  const syncer = server.authority.issue({ user: 'one', groups: ['strata'], uris: ['strata://syncer/one'] });
  const [master, own] = [server.client(), server.client({ as: syncer, http2: true })];
  const view = `/services/syncer/one/clusters/c1/${ownApi}`;
  const label = { 'state.workload.kcp.io/one': 'Sync' };
  const at = aPath({ ...instances, shard: 'amber', cluster: 'c1', identity: 'hash', name: 'a' });
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const seen: string[] = [];
  void (async () => {
    for await (const { type, object } of own.watch(view, { signal: stop.signal })) seen.push(`${type} ${object.metadata.name}`);
  })().catch(() => {});

  t.deepEqual(await namesAt(own, view), []);
  t.is((await own.raw('GET', `${view}/a`)).status, 404);
  const relabel = async (labels: object): Promise<void> => {
    const object = await master.get(at);
    const { status } = await master.raw('PUT', at, { body: { ...object, metadata: { ...object.metadata, labels } } });
    t.is(status, 200);
  };
  await relabel(label);
  await until(() => seen.includes('ADDED a'));
  t.deepEqual(await namesAt(own, view), ['a']);
  t.deepEqual(await namesAt(own, `${view}?labelSelector=none`), []);
  t.is((await own.get(`${view}/a`)).metadata.name, 'a');
  t.is((await own.raw('GET', `/services/syncer/one/clusters/c2/${ownApi}/c`)).status, 404);
  await relabel({ 'state.workload.kcp.io/two': 'Sync' });
  await until(() => seen.includes('DELETED a'));
  t.is((await own.raw('GET', `${view}/a`)).status, 404);
});

test('whatever an export names, its view shows exactly the objects of its identity', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  const identities = ['h1', 'h2', 'h3'];
  const held = identities.flatMap((identity, i) =>
    ['c1', 'c2'].map((cluster, j) => ({ identity, cluster, name: `n${i}${j}`, shard: j === 0 ? 'amber' : 'birch' })),
  );
  for (const { identity, name, ...place } of held) await declare(client, place, identity, [name]);
  let made = 0;
  const identity = fc.constantFrom(...identities, 'h4', '', '*');
  await fc.assert(
    fc.asyncProperty(
      identity,
      fc.option(identity, { nil: undefined }),
      fc.constantFrom('*', 'c1', 'c2', 'c9'),
      async (own, virtual, cluster) => {
        const name = `e${(made += 1)}`;
        const storage = virtual === undefined ? { crd: {} } : { virtual: { identityHash: virtual } };
        await client.create(aPath({ ...apiExports, shard: 'amber', cluster: 'provider' }), anExport(name, own, storage));
        const { status, text } = await client.raw('GET', `/services/apiexport/provider/${name}/clusters/${cluster}/${ownApi}`);
        const shown = virtual ?? own;
        t.is(status, identities.includes(shown) ? 200 : 404);
        const items = status === 200 ? (JSON.parse(text) as { items: { metadata: { name: string } }[] }).items : [];
        const wanted = held.filter((each) => each.identity === shown && (cluster === '*' || each.cluster === cluster));
        t.deepEqual(items.map(({ metadata }) => metadata.name).toSorted(), wanted.map((each) => each.name).toSorted());
      },
    ),
    { numRuns: rounds(60) },
  );
});
