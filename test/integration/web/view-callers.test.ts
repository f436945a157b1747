/**
 * Whom RBAC allows to read a view of an APIExport, and which objects of it. A shard pushes the RBAC
 * objects that kcp replicates.
 */
import type { ExecutionContext } from 'ava';
import { processorMs } from '../../support/fastest.js';
import { test } from '../../support/test.js';
import { KubeError, type KubeClient } from '../../support/kube-client.js';
import type { PushedObject } from '../../../src/frames/frame.js';
import { aClusterCachedResource } from '../../support/objects.js';
import { RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import {
  aBinding,
  access,
  aLogicalCluster,
  anExport,
  aRole,
  content,
  longBindings,
  providerObject,
  providerView as view,
  rbac,
  type Rule,
  type Subject,
} from '../../support/web/a-provider.js';

const ownApi = 'apis/machines.svm.io/v1/instances';
const wild = `${view}/clusters/*/${ownApi}`;

type Pushed = Readonly<{ roles: readonly PushedObject[]; bindings: readonly PushedObject[] }>;

const alice: Subject = { kind: 'User', name: 'alice' };
const nothing: Pushed = { roles: [], bindings: [] };
const readers: Pushed = { roles: [aRole('reads', [access, content])], bindings: [aBinding('alice-reads', 'reads', [alice])] };

/**
 * A shard with the export and its RBAC objects, and instances of one identity in two logical
 * clusters on two shards.
 */
async function anInstallation(t: ExecutionContext, { roles, bindings }: Pushed = readers, viewCallers = 'rbac') {
  const server = await aServer(t, { flags: { 'view-callers': viewCallers } });
  const instance = (name: string, cluster: string) =>
    providerObject({ apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name }, spec: {} }, cluster);
  const pushers: RawPusher[] = [];
  for (const shard of ['amber', 'birch']) {
    const pusher = await RawPusher.open(server, { name: shard });
    t.teardown(() => pusher.socket.close('shutdown', 'bye'));
    pushers.push(pusher);
    const declared = providerObject(aClusterCachedResource('hash', { name: 'of-hash' }) as Parameters<typeof providerObject>[0]);
    await pusher.syncWhole(sliceOf('clustercachedresources', { shard, group: 'cache.kcp.io' }), [declared], 'v1alpha1');
    await pusher.syncWhole(
      sliceOf('instances', { shard, group: 'machines.svm.io', identity: 'hash' }),
      ['provider', 'others'].map((cluster) => instance(`${shard}-${cluster}`, cluster)),
      'v1',
    );
  }
  const [amber, birch] = pushers as [RawPusher, RawPusher];
  await amber.syncWhole(sliceOf('apiexports'), [anExport('hash')]);
  await amber.syncWhole(sliceOf('logicalclusters', { group: 'core.kcp.io' }), [aLogicalCluster()], 'v1alpha1');
  await amber.syncWhole(sliceOf('clusterroles', { group: rbac }), roles, 'v1');
  await amber.syncWhole(sliceOf('clusterrolebindings', { group: rbac }), bindings, 'v1');
  return { server, amber, birch };
}

function userOf(server: TestServer, user: string, groups: readonly string[] = [], http2 = false): KubeClient {
  return server.client({ as: server.authority.issue({ user, groups }), http2 });
}

async function statusOf(client: KubeClient, path: string): Promise<number> {
  return (await client.raw('GET', path)).status;
}

for (const http2 of [false, true])
  test(`an allowed caller sees the objects in the logical cluster of the export, on its shard, over ${http2 ? 'HTTP/2' : 'HTTP/1.1'}`, async (t) => {
    const { server, amber } = await anInstallation(t);
    const client = userOf(server, 'alice', [], http2);
    for (const path of [wild, `${view}/own/clusters/*/${ownApi}`, `${view}/clusters/provider/${ownApi}`]) {
      const { items } = await client.list(path);
      t.deepEqual(items.map(({ metadata }) => metadata.name), ['amber-provider'], path); // prettier-ignore
    }
    t.is((await client.get(`${view}/clusters/provider/${ownApi}/amber-provider`)).metadata.name, 'amber-provider');
    t.is(await statusOf(client, `${view}/clusters/provider/${ownApi}/birch-provider`), 404);
    t.is(await statusOf(client, `${view}/clusters/*/apis/machines.svm.io/v1`), 200);
    for (const cluster of ['others', 'none', 'root:others'])
      for (const rest of [ownApi, `${ownApi}/amber-others`, 'apis'])
        t.is(await statusOf(client, `${view}/clusters/${cluster}/${rest}`), 403);
    const masters = await server.client().list(wild);
    t.is(masters.items.length, 4, 'masters see all');

    const stop = new AbortController();
    t.teardown(() => stop.abort());
    const seen: (string | undefined)[] = [];
    void (async () => {
      for await (const { object } of client.watch(wild, { signal: stop.signal })) seen.push(object.metadata.name);
    })().catch(() => {});
    await until(() => seen.length === 1);
    const slice = sliceOf('instances', { group: 'machines.svm.io', identity: 'hash' });
    for (const [name, cluster] of [
      ['new-elsewhere', 'others'],
      ['new', 'provider'],
    ] as const)
      amber.put(
        slice,
        [providerObject({ apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name }, spec: {} }, cluster)],
        'v1',
      );
    await until(() => seen.length > 1);
    t.deepEqual(seen, ['amber-provider', 'new']);

    for (const path of [
      '/services/cache/status',
      '/metrics',
      `/services/cache/shards/*/clusters/*/${ownApi}:hash`,
      '/services/syncer/one/clusters/provider/apis',
    ])
      t.is(await statusOf(client, path), 403, path);
    t.is(
      (await client.raw('POST', `${view}/clusters/provider/${ownApi}`, { body: {} })).status,
      403,
      'alice may not, and the view is read-only',
    );
  });

const bound = (role: string, subject: Subject, cluster?: string): Pushed['bindings'] => [aBinding('b', role, [subject], cluster)];
const group: Subject = { kind: 'Group', name: 'devs' };
const everything: Rule = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };

/** The statuses that alice, a member of `devs`, gets for a get, a list and a watch. */
const cases: readonly (readonly [what: string, pushed: Pushed, expected: readonly [number, number, number]])[] = [
  ['nothing', nothing, [403, 403, 403]],
  ['a role for the group', { roles: [aRole('r', [access, content])], bindings: bound('r', group) }, [200, 200, 200]],
  ['a role for all who are known', { roles: [aRole('r', [access, content])], bindings: bound('r', { kind: 'Group', name: 'system:authenticated' }) }, [200, 200, 200]],
  ['a role for another user', { roles: [aRole('r', [access, content])], bindings: bound('r', { kind: 'User', name: 'Alice' }) }, [403, 403, 403]],
  ['a role for a group of the user’s name', { roles: [aRole('r', [access, content])], bindings: bound('r', { kind: 'Group', name: 'alice' }) }, [403, 403, 403]],
  ['a role for a service account of the name', { roles: [aRole('r', [access, content])], bindings: bound('r', { kind: 'ServiceAccount', name: 'alice' }) }, [403, 403, 403]],
  ['content without access', { roles: [aRole('r', [content])], bindings: bound('r', alice) }, [403, 403, 403]],
  ['access without content', { roles: [aRole('r', [access])], bindings: bound('r', alice) }, [403, 403, 403]],
  ['two roles together', { roles: [aRole('r', [access]), aRole('s', [content])], bindings: [aBinding('b', 'r', [alice]), aBinding('c', 's', [group])] }, [200, 200, 200]],
  ['some verbs', { roles: [aRole('r', [access, { ...content, verbs: ['list'] }])], bindings: bound('r', alice) }, [403, 200, 403]],
  ['everything', { roles: [aRole('r', [everything, { verbs: ['*'], nonResourceURLs: ['*'] }])], bindings: bound('r', alice) }, [200, 200, 200]],
  ['everything of resources', { roles: [aRole('r', [everything])], bindings: bound('r', alice) }, [403, 403, 403]],
  ['the subresource of all', { roles: [aRole('r', [access, { ...content, resources: ['*/content'] }])], bindings: bound('r', alice) }, [200, 200, 200]],
  ['the export, and not its content', { roles: [aRole('r', [access, { ...content, resources: ['apiexports'] }])], bindings: bound('r', alice) }, [403, 403, 403]],
  ['another export', { roles: [aRole('r', [access, { ...content, resourceNames: ['others'] }])], bindings: bound('r', alice) }, [403, 403, 403]],
  ['another group of APIs', { roles: [aRole('r', [access, { ...content, apiGroups: [''] }])], bindings: bound('r', alice) }, [403, 403, 403]],
  ['names that are no list', { roles: [providerObject({ apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: 'r' }, rules: [access, { ...content, resourceNames: 'others' }] })], bindings: bound('r', alice) }, [403, 403, 403]],
  ['a path below', { roles: [aRole('r', [{ ...access, nonResourceURLs: ['/a*', '/*/'] }, content])], bindings: bound('r', alice) }, [403, 403, 403]],
  ['stars, and what is no path', { roles: [aRole('r', [{ ...access, nonResourceURLs: [`${'*'.repeat(50_000)}x*`] }, content])], bindings: bound('r', alice) }, [403, 403, 403]],
  ['every path', { roles: [aRole('r', [{ ...access, nonResourceURLs: ['/*'] }, content])], bindings: bound('r', alice) }, [200, 200, 200]],
  ['no role of that name', { roles: [aRole('r', [access, content])], bindings: bound('s', alice) }, [403, 403, 403]],
  ['a role elsewhere', { roles: [aRole('r', [access, content], 'others')], bindings: bound('r', alice) }, [403, 403, 403]],
  ['a binding elsewhere', { roles: [aRole('r', [access, content])], bindings: bound('r', alice, 'others') }, [403, 403, 403]],
  ['rules that are none', { roles: [providerObject({ apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: 'r' }, rules: { 0: access } }, 'provider')], bindings: bound('r', alice) }, [403, 403, 403]],
  ['a rule of other types', { roles: [providerObject({ apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: 'r' }, rules: [null, 'x', { ...access, verbs: 'access' }, { ...content, resourceNames: 'widgets', verbs: { 0: '*' } }] }, 'provider')], bindings: bound('r', alice) }, [403, 403, 403]],
]; // prettier-ignore

test('RBAC allows the same callers as in Kubernetes', async (t) => {
  const { server, amber } = await anInstallation(t);
  const client = userOf(server, 'alice', ['devs']);
  const watched = async (): Promise<number> => {
    for await (const { object } of client.watch(wild)) if (object.metadata.name === 'amber-provider') return 200;
    return 0;
  };
  for (const [what, { roles, bindings }, expected] of cases) {
    await amber.sync(sliceOf('clusterroles', { group: rbac }), roles, 'v1');
    await amber.sync(sliceOf('clusterrolebindings', { group: rbac }), bindings, 'v1');
    const got = await statusOf(client, `${view}/clusters/provider/${ownApi}/amber-provider`);
    const watching = await watched().catch((error: unknown) => (error instanceof KubeError ? error.status : 0));
    t.deepEqual([got, await statusOf(client, wild), watching], expected, what);
  }
});

test('no other caller is allowed, whatever the roles say, and none learns which exports exist', async (t) => {
  const all: readonly Subject[] = ['system:authenticated', 'system:unauthenticated', 'strata'].map((name) => ({ kind: 'Group', name }));
  const users: readonly Subject[] = ['system:anonymous', 'amber', 'system:serviceaccount:default:one'].map((name) => ({
    kind: 'User',
    name,
  }));
  const roles = [aRole('r', [access, content])];
  const { server } = await anInstallation(t, { roles, bindings: [aBinding('b', 'r', [...all, ...users])] });
  const speaker = (uri: string) => server.authority.issue({ user: 'amber', groups: ['strata'], uris: [uri] });
  const speakers = ['shard/amber', 'cache/c', 'reader/r', 'syncer/one'].map((each) => speaker(`strata://${each}`));
  for (const as of [null, ...speakers]) t.is(await statusOf(server.client({ as }), wild), 403);
  for (const [user, groups] of [['system:serviceaccount:default:one'], ['system:anonymous'], ['eve', ['system:unauthenticated']]] as const)
    t.is(await statusOf(userOf(server, user, groups), wild), 403, user);
  t.is(await statusOf(userOf(server, 'bob'), wild), 200);

  const { server: other } = await anInstallation(t);
  const mallory = userOf(other, 'mallory');
  const answers = await Promise.all(
    [wild, wild.replace('/widgets/', '/none/'), wild.replace('/provider/', '/nowhere/'), wild.replace('/widgets/', '/widgets/hash/')].map(
      (path) => mallory.raw('GET', path),
    ),
  );
  t.deepEqual(answers.map(({ status }) => status), [403, 403, 403, 403]); // prettier-ignore
  t.is(new Set(answers.map(({ text }) => text)).size, 1);
});

test('by default only masters may read views', async (t) => {
  const { server } = await anInstallation(t, readers, 'masters');
  t.is(await statusOf(userOf(server, 'alice'), wild), 403);
});

test('RBAC objects of another shard allow nobody; if that shard has the export too, nobody is allowed', async (t) => {
  const { server, birch } = await anInstallation(t, nothing);
  const client = userOf(server, 'alice');
  const at = { shard: 'birch', group: rbac };
  await birch.syncWhole(sliceOf('clusterroles', at), [...readers.roles], 'v1');
  await birch.syncWhole(sliceOf('clusterrolebindings', at), [...readers.bindings], 'v1');
  t.is(await statusOf(client, wild), 403);
  await birch.syncWhole(sliceOf('apiexports', { shard: 'birch' }), [anExport('hash')]);
  t.is(await statusOf(client, wild), 403);
  t.is(await statusOf(server.client(), wild), 409);
});

test('a revoked permission ends at once, and while RBAC objects are not current nobody is allowed', async (t) => {
  const { server, amber } = await anInstallation(t);
  const client = userOf(server, 'alice');
  const slice = sliceOf('clusterrolebindings', { group: rbac });
  t.is(await statusOf(client, wild), 200);
  await amber.acknowledged(amber.delete(slice, ['alice-reads'], 'provider'));
  t.is(await statusOf(client, wild), 403);
  await amber.acknowledged(amber.put(slice, [...readers.bindings], 'v1'));
  t.is(await statusOf(client, wild), 200);

  const behind = { slice, connected: true, synced: true, lagMs: 60_000, whole: true };
  amber.socket.send({ kind: 'status', freshness: [behind], withdrawn: [] });
  await until(async () => (await statusOf(client, wild)) === 503);
  amber.socket.send({ kind: 'status', freshness: [{ ...behind, lagMs: 0, connected: false }], withdrawn: [] });
  await until(async () => (await client.raw('GET', wild)).text.includes('clusterrolebindings'));
  amber.socket.send({ kind: 'status', freshness: [{ ...behind, lagMs: 0 }], withdrawn: [] });
  await until(async () => (await statusOf(client, wild)) === 200);
  for (const other of [sliceOf('apiexports'), sliceOf('logicalclusters', { group: 'core.kcp.io' })]) {
    amber.socket.send({ kind: 'status', freshness: [{ ...behind, slice: other }], withdrawn: [] });
    await until(async () =>
      (await client.raw('GET', wild)).text.includes(`${other.resource.resource}.${other.resource.group} of the shard`),
    );
    amber.socket.send({ kind: 'status', freshness: [{ ...behind, slice: other, lagMs: 0 }], withdrawn: [] });
    await until(async () => (await statusOf(client, wild)) === 200);
  }
  amber.socket.close('shutdown', 'bye');
  await until(async () => (await statusOf(client, wild)) === 503);
  const { status, text, headers } = await client.raw('GET', wild);
  t.is(status, 503);
  t.regex(text, /clusterroles\.rbac\.authorization\.k8s\.io of the shard amber are not current/);
  t.truthy(headers['retry-after']);
  t.is(await statusOf(server.client(), wild), 200, 'masters still read');
});

test('a logical cluster that requires groups allows only their members, and one that is not served allows nobody', async (t) => {
  const { server, amber } = await anInstallation(t);
  const client = userOf(server, 'alice', ['devs', 'east']);
  const slice = sliceOf('logicalclusters', { group: 'core.kcp.io' });
  for (const [of, expected] of [
    [{ required: 'admins' }, 403],
    [{ required: 'admins;devs,west' }, 403],
    [{ required: 'admins;devs,east' }, 200],
    [{ phase: 'Unavailable' }, 403],
    [{ phase: 'Inactive' }, 403],
    [{ phase: 'Deleting' }, 200],
    [{ phase: '' }, 403],
  ] as const) {
    await amber.acknowledged(amber.put(slice, [aLogicalCluster(of)], 'v1alpha1'));
    t.is(await statusOf(client, wild), expected, JSON.stringify(of));
  }
  await amber.acknowledged(amber.delete(slice, ['cluster'], 'provider'));
  t.is(await statusOf(client, wild), 403);
});

test('if there are more bindings than the cache reads, it allows nobody, in bounded time', async (t) => {
  const { server } = await anInstallation(t, { ...readers, bindings: [...longBindings(), ...readers.bindings] });
  const client = userOf(server, 'alice');
  const began = processorMs();
  t.is(await statusOf(client, wild), 403);
  t.true(processorMs() - began < 2_000);
});
