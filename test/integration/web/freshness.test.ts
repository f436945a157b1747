/** The freshness of one type, requested over the wire. */
import { test } from '../../support/test.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import type { ShardName } from '../../../src/domain/shard.js';
import type { Slice } from '../../../src/domain/slice.js';
import type { SliceStatus, StatusReport } from '../../../src/domain/status.js';
import { shardFreshness, type ShardFreshness, type TypeFreshnessReport } from '../../../src/domain/type-freshness.js';
import type { KubeStatus } from '../../support/kube-client.js';
import { aClusterCachedResource, shardName } from '../../support/objects.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { aWholeChild } from '../../support/whole-child.js';

const children = `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}}`;
const exports = sliceOf('apiexports');
const ofExports = 'group=apis.kcp.io&resource=apiexports';
/** More shards than an answer lists. */
const manyShards: readonly ShardName[] = Array.from({ length: 130 }, (_, i) => shardName(`shard-${String(i).padStart(3, '0')}`));

async function ask(server: TestServer, query: string): Promise<TypeFreshnessReport> {
  const { status, text } = await server.client().raw('GET', `/services/cache/freshness?${query}`);
  if (status !== 200) throw new Error(`${status} ${text}`);
  return JSON.parse(text) as TypeFreshnessReport;
}

async function statusOf(server: TestServer): Promise<StatusReport> {
  return JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
}

/** Without ages, which differ because the two requests are not simultaneous. */
function ageless({ connection, changedAgoMs, ...others }: ShardFreshness): unknown {
  return { ...others, connection: connection.kind, hasChanged: changedAgoMs !== null };
}

test('for every type, freshness agrees with the status report on its slices', async (t) => {
  const server = await aServer(t, { config: children });
  const amber = await RawPusher.open(server);
  await amber.syncWhole(exports, [pushedExport('one')]);
  amber.begin(sliceOf('apiresourceschemas'));
  const types = kcpTypes.slice(0, 8);
  const slices = manyShards
    .slice(0, 5)
    .flatMap((shard) => types.map(({ group, resource, identity }): Slice => ({ shard, resource: { group, resource, identity } })));
  const odd: readonly object[] = [{}, { whole: false }, { connected: false }, { lagMs: 70 }];
  await aWholeChild(t, server, slices, (slice) => odd[slices.indexOf(slice) % odd.length] ?? {});
  await server.client().create('/services/cache/shards/plain/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports', anExport);

  const status = await statusOf(server);

  const known = new Map(
    status.shards.flatMap((shard) => shard.slices.map((slice) => [`${slice.group} ${slice.resource}`, slice] as const)),
  );
  t.true(known.size >= 8);
  for (const { group, resource } of known.values()) {
    const answer = await ask(server, `group=${group}&resource=${resource}`);
    const isAsked = (slice: SliceStatus): boolean => slice.group === group && slice.resource === resource;
    const expected = status.shards.map((shard) => shardFreshness(shard, shard.slices.filter(isAsked)));
    t.deepEqual(answer.shards.map(ageless), expected.map(ageless), resource);
    t.deepEqual({ ...answer.cache, resourceVersion: '' }, { ...status.cache, resourceVersion: '' });
    t.deepEqual(answer.tree, { complete: status.tree?.complete ?? false });
    for (const shard of status.shards) {
      const { shards } = await ask(server, `group=${group}&resource=${resource}&shard=${shard.shard}`);
      t.deepEqual(shards.map(ageless), [shardFreshness(shard, shard.slices.filter(isAsked))].map(ageless));
    }
  }
});

test('the newest change of a type, deletes included, is reported as the resourceVersion that a watch of it reaches', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  await amber.syncWhole(exports, [pushedExport('one')]);
  await amber.syncWhole(sliceOf('apiresourceschemas'), []);
  const put = await ask(server, ofExports);
  const { items } = await server.client().list('/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports');
  t.is(put.newestChange, items[0]?.metadata.resourceVersion ?? '');
  const { newestChange: ofOthers } = await ask(server, 'group=apis.kcp.io&resource=workspacetypes');
  t.true(BigInt(ofOthers) < BigInt(put.newestChange));

  await amber.acknowledged(amber.delete(exports, ['one']));

  const deleted = await ask(server, ofExports);
  t.true(BigInt(deleted.newestChange) > BigInt(put.newestChange));
  t.is(deleted.newestChange, deleted.cache.resourceVersion);
});

const anExport = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'plain' } };

test('of a type on more shards than an answer lists, those that are not whole are listed, and `whole` covers all shards', async (t) => {
  const server = await aServer(t, { config: children });
  const slices = manyShards.map((shard): Slice => ({ shard, resource: exports.resource }));
  const bad = new Set([shardName('shard-007'), shardName('shard-128')]);
  const child = await aWholeChild(t, server, slices, ({ shard }) => ({ whole: !bad.has(shard) }));

  const before = await ask(server, ofExports);
  child.numbered((sequence) => ({
    kind: 'report',
    sequence,
    freshness: slices
      .filter(({ shard }) => bad.has(shard))
      .map((slice) => ({ slice, connected: true, synced: true, lagMs: 0, whole: true })),
    heartbeat: 0,
    isAll: true,
    isComplete: true,
  }));
  let after = await ask(server, ofExports);
  await until(async () => (after = await ask(server, ofExports)).whole);

  t.deepEqual([before.whole, before.shards.length, before.shardsLeftOut], [false, 100, 30]);
  t.deepEqual(
    before.shards.filter(({ whole }) => !whole).map(({ shard }) => shard),
    [...bad],
  );
  t.deepEqual(
    before.shards.map(({ shard }) => shard),
    before.shards.map(({ shard }) => shard).toSorted(),
  );
  t.deepEqual([after.shards.length, after.shardsLeftOut], [100, 30]);
  t.like(await ask(server, `${ofExports}&shard=shard-129`), {
    whole: true,
    shards: [{ shard: 'shard-129', slices: 1, whole: true }],
    shardsLeftOut: 0,
  });
});

test('one shard is requested by its name: the others do not matter, but the cache must know its whole tree', async (t) => {
  const server = await aServer(t, { config: children });
  await (await RawPusher.open(server)).syncWhole(exports, [pushedExport('one')]);
  const birch = await RawPusher.open(server, { name: 'birch' });
  await birch.acknowledged(birch.begin(sliceOf('apiexports', { shard: 'birch' })));

  t.like(await ask(server, ofExports), { whole: false });
  t.like(await ask(server, `${ofExports}&shard=amber`), { whole: true, shards: [{ shard: 'amber', slices: 1 }] });
  t.like(await ask(server, `${ofExports}&shard=birch`), { whole: false, shards: [{ shard: 'birch', whole: false }] });
  t.like(await ask(server, `${ofExports}&shard=nobody`), { whole: false, shards: [], shardsLeftOut: 0 });

  const child = await aWholeChild(t, server, []);
  child.socket.terminate();
  let amber = await ask(server, `${ofExports}&shard=amber`);
  while (amber.whole) amber = await ask(server, `${ofExports}&shard=amber`);
  t.like(amber, { tree: { complete: false }, shards: [{ whole: true }] });
});

test('a type of which nothing is known is whole nowhere, and a removed shard does not count', async (t) => {
  const server = await aServer(t);
  t.like(await ask(server, 'resource=unheard'), { whole: false, shards: [] });
  await (await RawPusher.open(server)).syncWhole(exports, []);

  t.like(await ask(server, 'group=apis.kcp.io&resource=unheard'), {
    whole: false,
    shards: [{ shard: 'amber', slices: 0, whole: false, lagMs: null, sourceConnected: null }],
  });
  t.is((await server.client().raw('DELETE', '/services/cache/shards/amber')).status, 200);
  t.like(await ask(server, ofExports), { whole: false, shards: [] });
});

test('an identity narrows the request, and without one the worst type of that name counts', async (t) => {
  const server = await aServer(t, { config: children });
  const amber = await RawPusher.open(server);
  const declared = ['good', 'bad'].map((identity) => aClusterCachedResource(identity));
  await amber.sync(
    sliceOf('clustercachedresources', { group: 'cache.kcp.io' }),
    declared.map((object, i) =>
      pushedObject({ ...object, metadata: { ...(object['metadata'] as object), name: `of-${i}`, uid: `u-${i}` } }),
    ),
    'v1alpha1',
  );
  const [good, bad] = ['good', 'bad'].map((identity) => sliceOf('instances', { group: 'machines.svm.io', identity })) as [Slice, Slice];
  await amber.sync(good, []);
  await amber.sync(bad, []);
  const freshness = [
    { slice: good, connected: true, synced: true, lagMs: 3, whole: true },
    { slice: bad, connected: false, synced: true, lagMs: 70, whole: false },
  ];
  amber.socket.send({ kind: 'status', freshness, withdrawn: [] });
  await amber.sync(good, []);
  const ofInstances = 'group=machines.svm.io&resource=instances';

  t.like(await ask(server, `${ofInstances}&identity=good`), { whole: true, shards: [{ slices: 1, whole: true, lagMs: 3 }] });
  t.like(await ask(server, ofInstances), { whole: false, shards: [{ slices: 2, whole: false, lagMs: 70, sourceConnected: false }] });
  t.like(await ask(server, `${ofInstances}&identity=other`), { whole: false, shards: [{ slices: 0 }] });
});

test('a request that is not fully understood is refused, with the reason', async (t) => {
  const server = await aServer(t);
  for (const [query, why] of [
    ['', 'a resource is required'],
    ['group=apis.kcp.io', 'a resource is required'],
    ['resource=apiexports.apis.kcp.io', /^invalid resource: "apiexports.apis.kcp.io" must not contain dots/],
    ['resource=API', /^invalid resource: "API" a lowercase RFC 1123 label/],
    ['resource=apiexports&group=a_b', /^invalid group: "a_b" a lowercase RFC 1123 subdomain/],
    ['resource=apiexports&identity=a%2Fb', 'invalid identity: "a/b" does not match the regex'],
    ['resource=apiexports&shard=*', 'invalid shard: "*" does not match the regex'],
    ['resource=apiexports&shard=a&shard=b', 'the parameter "shard" is given more than once'],
    ['resource=apiexports&cluster=acme', 'unknown parameter "cluster": the parameters are group, resource, identity, shard'],
  ] as const) {
    const { status, text } = await server.client().raw('GET', `/services/cache/freshness?${query}`);
    const { reason, message = '' } = JSON.parse(text) as KubeStatus;
    t.deepEqual([status, reason], [400, 'BadRequest'], query);
    if (typeof why === 'string') t.is(message, why);
    else t.regex(message, why);
  }
  t.deepEqual((await ask(server, 'resource=configmaps&group=core&identity=&shard=')).shards, []);
});

test('whoever may read the status may request freshness, and nobody else', async (t) => {
  const server = await aServer(t);
  const shard = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const nobody = server.authority.issue({ user: 'nobody', groups: [] });
  const path = `/services/cache/freshness?${ofExports}`;

  t.is((await server.client({ as: shard }).raw('GET', path)).status, 200);
  for (const asked of [path, '/services/cache/freshness?what=ever'])
    t.is((await server.client({ as: nobody }).raw('GET', asked)).status, 403, asked);
  t.is((await server.client({ as: shard }).raw('DELETE', path)).status, 403);
});
