/**
 * What a child may do to its parent, whatever it sends. Real websockets, and certificates at both
 * ends.
 */
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { ExecutionContext } from 'ava';
import type { StatusReport } from '../../../src/domain/status.js';
import type { Frame, PushedObject } from '../../../src/frames/frame.js';
import { shardName } from '../../support/objects.js';
import { claim, openChild } from '../../support/raw-child.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { aTree } from '../../support/test-tree.js';

const exports = sliceOf('apiexports');
const schemas = sliceOf('apiresourceschemas');
const amber = shardName('amber');

function accepting(rules: string, others = ''): string {
  return `children: {east: {accept: ${rules}}${others}}\n`;
}

async function objectsOf(server: TestServer, resource = 'apiexports', version = 'v1alpha2'): Promise<readonly string[]> {
  const { items } = await server.client().list(`/services/cache/shards/*/clusters/*/apis/apis.kcp.io/${version}/${resource}`);
  return items.map(({ metadata }) => `${metadata.annotations?.['kcp.io/shard']} ${metadata.name}`).toSorted();
}

async function statusOf(server: TestServer): Promise<StatusReport> {
  return JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
}

async function viaOf(server: TestServer, shard = amber): Promise<string | null | undefined> {
  return (await statusOf(server)).shards.find((each) => each.shard === shard)?.via;
}

function anExport(
  name: string,
  { cluster, path, labels }: Readonly<{ cluster?: string; path?: string; labels?: Readonly<Record<string, string>> }> = {},
): PushedObject {
  const annotations = path === undefined ? {} : { 'kcp.io/path': path };
  return pushedExport(name, {
    ...(cluster === undefined ? {} : { cluster }),
    metadata: { name, uid: `uid-of-${name}`, labels, annotations },
  });
}

function aSchema(name: string, metadata: Readonly<Record<string, unknown>> = { name, uid: `uid-of-${name}` }): PushedObject {
  return pushedObject({ apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIResourceSchema', metadata });
}

function kindsOf(frames: readonly Frame[]): readonly string[] {
  return frames.map(({ kind }) => kind).filter((kind) => kind === 'refuse' || kind === 'resync');
}

/** A parent with one child, which has claimed amber. */
async function aParent(t: ExecutionContext, rules: string) {
  const server = await aServer(t, { config: accepting(rules) });
  const child = await openChild(server);
  claim(child, amber);
  return { server, child };
}

test('a rule with a path still requires its other conditions: cluster and label count as well', async (t) => {
  const rules = `[{shards: [amber], clusters: [acme], labels: {tier: gold}}, {shards: [amber], clusters: [acme], pathPrefix: 'root:tenant-a'}]`;
  const { server, child } = await aParent(t, rules);

  await child.acknowledged(
    child.put(exports, [
      anExport('gold', { labels: { tier: 'gold' } }),
      anExport('inside', { path: 'root:tenant-a:team' }),
      anExport('elsewhere', { cluster: 'beta', path: 'root:tenant-a' }),
      anExport('beside', { path: 'root:tenant-ab' }),
      anExport('nowhere', { cluster: 'beta' }),
    ]),
  );

  t.deepEqual(await objectsOf(server), ['amber gold', 'amber inside']);
});

test('a child does not get a shard that its accept policy does not name', async (t) => {
  const server = await aServer(t, { config: accepting(`[{labels: {tier: gold}}]`) });
  const pusher = await RawPusher.open(server, { term: 1_000 });
  await pusher.sync(exports, [pushedExport('one'), pushedExport('two')]);

  const child = await openChild(server);
  claim(child, amber);
  child.begin(exports);
  await child.acknowledged(child.end(exports, 0));

  t.is(await viaOf(server), 'local');
  t.deepEqual(await objectsOf(server), ['amber one', 'amber two']);
});

const inTenant = `[{shards: [amber], pathPrefix: 'root:tenant-a'}]`;

test('an object without a path has the path that its child sent for the same logical cluster, in this frame or an earlier one', async (t) => {
  const { server, child } = await aParent(t, inTenant);
  const before = child.put(exports, [anExport('early'), anExport('pathed', { path: 'root:tenant-a:team' }), anExport('behind')]);
  const later = child.put(exports, [anExport('next'), anExport('far', { cluster: 'beta' })]);
  await child.acknowledged(later);

  t.deepEqual(await objectsOf(server), ['amber behind', 'amber next', 'amber pathed']);
  await child.acknowledged(child.put(exports, [anExport('durable'), anExport('far', { cluster: 'beta' })]));
  t.deepEqual(await objectsOf(server), ['amber behind', 'amber durable', 'amber next', 'amber pathed']);
  t.is(before, 3);
});

test('the path of an object that the policy refuses applies to no other object', async (t) => {
  const rules = `[{shards: [amber], pathPrefix: 'root:tenant-a', labels: {tier: gold}}, {shards: [amber], pathPrefix: 'root:tenant-a', clusters: [acme]}]`;
  const { server, child } = await aParent(t, rules);

  await child.acknowledged(
    child.put(exports, [
      anExport('pathed', { cluster: 'beta', path: 'root:tenant-a' }),
      anExport('one', { cluster: 'beta', labels: { tier: 'gold' } }),
      anExport('outside', { path: 'root:tenant-b' }),
      anExport('two'),
    ]),
  );

  t.deepEqual(await objectsOf(server), []);
});

test('once a path moves out of the accept policy, no further object of that logical cluster is accepted', async (t) => {
  const rules = `[{shards: [amber], pathPrefix: 'root:tenant-a'}, {shards: [amber], labels: {names: path}}]`;
  const { server, child } = await aParent(t, rules);
  await child.acknowledged(child.put(exports, [anExport('pathed', { path: 'root:tenant-a', labels: { names: 'path' } }), anExport('one')]));

  await child.acknowledged(child.put(exports, [anExport('pathed', { path: 'root:tenant-b', labels: { names: 'path' } }), anExport('two')]));

  t.deepEqual(await objectsOf(server), ['amber one', 'amber pathed']);
});

test('once the path of a logical cluster arrives, the parent requests a resync of the slice whose objects came before it', async (t) => {
  const { child } = await aParent(t, inTenant);
  child.begin(schemas);
  child.put(schemas, [aSchema('early')], 'v1alpha1');
  const others = await child.acknowledged(child.end(schemas, 1));
  t.deepEqual(kindsOf(others), ['refuse']);

  const received = await child.acknowledged(child.put(exports, [anExport('pathed', { path: 'root:tenant-a' })]));

  t.deepEqual(kindsOf(received), ['resync']);
});

for (const [reporter, received] of [
  ['apiexports', 'apiresourceschemas'],
  ['apiresourceschemas', 'apiexports'],
] as const)
  test(`a parent gets all objects of a tenant from a real child, even if only ${reporter} name the paths of ${received}`, async (t) => {
    const tree = await aTree(t);
    const root = await tree.cache('root', { config: accepting(inTenant) });
    const east = await tree.cache('east', { parent: root, config: `parent: {forward: [{types: ['*']}]}\n` });
    const pusher = await RawPusher.open(east);
    const tells = { annotations: { 'kcp.io/path': 'root:tenant-a:team' } };
    const objects = (resource: string): readonly PushedObject[] => {
      const metadata = (name: string) => ({ name, uid: `uid-of-${name}`, ...(resource === reporter ? tells : {}) });
      return resource === 'apiexports' ? [pushedExport('e', { metadata: metadata('e') })] : [aSchema('v.s', metadata('v.s'))];
    };

    await pusher.sync(exports, objects('apiexports'));
    await pusher.sync(schemas, objects('apiresourceschemas'), 'v1alpha1');

    await until(async () => (await objectsOf(root)).length + (await objectsOf(root, 'apiresourceschemas', 'v1alpha1')).length === 2);
    t.deepEqual(await objectsOf(root), ['amber e']);
    t.deepEqual(await objectsOf(root, 'apiresourceschemas', 'v1alpha1'), ['amber v.s']);
  });

test('a child cannot remove objects of a type that the accept policy does not name, neither by an end nor by deletes', async (t) => {
  const server = await aServer(t, { config: accepting(`[{shards: [amber], types: [apiexports.apis.kcp.io]}]`) });
  const pusher = await RawPusher.open(server, { term: 1_000 });
  await pusher.sync(schemas, [aSchema('v.one'), aSchema('v.two')], 'v1alpha1');
  const child = await openChild(server);
  claim(child, amber);
  await until(async () => (await viaOf(server)) === 'child/east');

  child.delete(schemas, ['v.one']);
  child.begin(schemas);
  await child.acknowledged(child.end(schemas, 0));

  t.is(await viaOf(server), 'child/east');
  t.deepEqual(await objectsOf(server, 'apiresourceschemas', 'v1alpha1'), ['amber v.one', 'amber v.two']);
});

test('when a cache’s own accept policy drops a type, the cache removes the objects it covered, even while the child is away', async (t) => {
  const poll = 'link: {policyPoll: 100ms}\n';
  const onlyExports = accepting('[{shards: [amber], types: [apiexports.apis.kcp.io]}]');
  const onlySchemas = accepting('[{shards: [amber], types: [apiresourceschemas.apis.kcp.io]}]');
  let config = accepting('[{shards: [amber]}]') + poll;
  const server = await aServer(t, { config: () => config });
  const child = await openChild(server);
  claim(child, amber);
  child.begin(schemas);
  child.put(schemas, [aSchema('v.one')], 'v1alpha1');
  await child.acknowledged(child.end(schemas, 1, 'a link filter'));
  child.begin(exports);
  child.put(exports, [anExport('one')]);
  await child.acknowledged(child.end(exports, 1, 'a link filter'));

  config = onlyExports + poll;
  await until(async () => (await objectsOf(server, 'apiresourceschemas', 'v1alpha1')).length === 0);
  t.deepEqual(await objectsOf(server), ['amber one']);
  child.socket.terminate();
  await until(async () => (await statusOf(server)).tree?.children[0]?.connection.kind === 'away');
  config = onlySchemas + poll;
  await until(async () => (await statusOf(server)).tree?.children[0]?.policies.own.up.includes('apiresourceschemas') === true);
  t.deepEqual(await objectsOf(server), ['amber one']);
  const again = await openChild(server);

  await until(async () => (await objectsOf(server)).length === 0);
  t.is(await viaOf(server), 'child/east');
  // The child has not read everything it was sent, so it would never see the end of its connection.
  again.socket.terminate();
});

test('when a cache’s own accept policy is narrowed, the cache removes what it now refuses, even if the child resyncs nothing', async (t) => {
  const poll = 'link: {policyPoll: 100ms}\n';
  let config = accepting('[{shards: [amber]}]') + poll;
  const server = await aServer(t, { config: () => config });
  const child = await openChild(server);
  claim(child, amber);
  const syncAll = (...objects: readonly PushedObject[]): Promise<unknown> => {
    child.begin(exports);
    child.put(exports, objects);
    return child.acknowledged(child.end(exports, objects.length, 'a link filter'));
  };
  const [gold, tin] = [anExport('gold', { labels: { tier: 'gold' } }), anExport('tin', { path: 'root:tenant-b', labels: { tier: 'tin' } })];
  const [reporter, received] = [anExport('pathed', { cluster: 'beta', path: 'root:tenant-a' }), anExport('plain', { cluster: 'beta' })];
  await syncAll(gold, tin, reporter, received);

  config = accepting(`[{shards: [amber], labels: {tier: gold}}, {shards: [amber], pathPrefix: 'root:tenant-a'}]`) + poll;
  await until(async () => !(await objectsOf(server)).includes('amber tin'));
  t.deepEqual(await objectsOf(server), ['amber gold', 'amber pathed', 'amber plain']);
  await syncAll(gold, reporter, received);
  child.socket.terminate();
  await until(async () => (await statusOf(server)).tree?.children[0]?.connection.kind === 'away');
  config = accepting(`[{shards: [amber], pathPrefix: 'root:tenant-a'}]`) + poll;
  await until(async () => (await statusOf(server)).tree?.children[0]?.policies.own.up.includes('gold') === false);
  t.is((await objectsOf(server)).length, 3);

  t.is((await openChild(server).then((again) => again.expect('resync'))).slice.resource.resource, 'apiexports');
  await until(async () => (await objectsOf(server)).length === 2);
  t.deepEqual(await objectsOf(server), ['amber pathed', 'amber plain']);
});

test('a child claims at most as many shards as its limit, even if it removes some; refused claims are logged, counted and reported', async (t) => {
  const server = await aServer(t, { config: accepting(`[{shards: ['*']}]`), flags: { 'link-shards-per-child-max': '3' } });
  const child = await openChild(server);
  const names = (shards: StatusReport['shards']): readonly string[] => shards.map(({ shard }) => shard).toSorted();

  for (let i = 0; i < 20; i++) {
    claim(child, shardName(`made-up-${i}`));
    claim(child, shardName(`made-up-${i}`), 3_000, true);
  }
  claim(child, shardName('made-up-0'), 4_000);
  child.begin(exports);
  await child.acknowledged(child.end(exports, 0));

  const { shards, tree } = await statusOf(server);
  t.deepEqual(names(shards), ['made-up-0', 'made-up-1', 'made-up-2']);
  t.is(tree?.children[0]?.receiving.claimsIgnored, 34);
  t.regex((await server.client().raw('GET', '/metrics')).text, /^strata_link_claims_ignored_total 34$/m);
});

largeTest('a child that claims a hundred thousand shards leaves room for the shards of others', async (t) => {
  const server = await aServer(t, { config: accepting(`[{shards: ['*']}]`, `, west: {accept: [{shards: [birch]}]}`) });
  const child = await openChild(server);
  for (let i = 0; i < 100_000; i += 1) {
    claim(child, shardName(`made-up-${i}`));
    if (i % 1_000 > 0) continue;
    child.begin(exports);
    await child.acknowledged(child.end(exports, 0));
  }

  const birch = sliceOf('apiexports', { shard: 'birch' });
  const west = await openChild(server, 'west');
  claim(west, birch.shard);
  await until(async () => (await viaOf(server, birch.shard)) === 'child/west');
  west.begin(birch);
  west.put(birch, [pushedExport('one')]);
  await west.acknowledged(west.end(birch, 1));

  t.deepEqual(await objectsOf(server), ['birch one']);
  t.is((await statusOf(server)).shards.length, 1_001);
});

test('a child whose accept policy covers every shard does not get a shard that another child’s policy names', async (t) => {
  const server = await aServer(t, { config: accepting(`[{shards: ['*']}]`, ', west: {accept: [{shards: [birch]}]}') });
  const child = await openChild(server);

  claim(child, shardName('birch'));
  claim(child, amber);
  await until(async () => (await viaOf(server)) === 'child/east');
  // Reads what it was sent, because otherwise the child would never see the end of its connection.
  child.begin(exports);
  await child.acknowledged(child.end(exports, 0));

  t.is(await viaOf(server), 'child/east');
  t.is(await viaOf(server, shardName('birch')), undefined);
});
