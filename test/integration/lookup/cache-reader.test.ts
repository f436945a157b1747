import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { CacheReader, defaultLookupBounds } from '../../../src/lookup/cache-reader.js';
import type { HttpAnswer } from '../../../src/lookup/read-answer.js';
import type { CachedObject } from '../../../src/client.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aClusterCachedResource } from '../../support/objects.js';
import { freePorts } from '../../support/free-ports.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { aServer } from '../../support/test-server.js';
import { aReader, aRef, exportAt, faultOf } from '../../support/lookup/a-reader.js';

const exports = sliceOf('apiexports');
const birchExports = sliceOf('apiexports', { shard: 'birch' });

function namesOf(objects: readonly CachedObject[]): readonly string[] {
  return objects.map(({ shard, text }) => `${shard}/${(JSON.parse(text) as { metadata: { name: string } }).metadata.name}`);
}

async function all(objects: AsyncIterable<CachedObject>): Promise<readonly CachedObject[]> {
  const read: CachedObject[] = [];
  for await (const object of objects) read.push(object);
  return read;
}

test('an object is found by logical cluster and by canonical path, on any shard, with the freshness of that shard', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  await amber.syncWhole(exports, [exportAt('root:org')]);
  const birch = await RawPusher.open(server, { name: 'birch' });
  birch.begin(birchExports);
  await birch.acknowledged(birch.put(birchExports, [exportAt('root:other', 'two', 'beta')]));
  const reader = aReader(t, server);

  const byCluster = await reader.get(aRef());
  const byPath = await reader.get(aRef({ cluster: 'root:org' }));
  const unsynced = await reader.get(aRef({ cluster: 'root:other', name: 'two' }));

  t.like(byCluster, { kind: 'found', shard: 'amber', freshness: { shard: 'amber', connected: true, whole: true } });
  t.like(byPath, { kind: 'found', shard: 'amber' });
  t.like(unsynced, { kind: 'found', shard: 'birch', freshness: { shard: 'birch', connected: true, whole: false } });
});

test('a found object has the exact text of the cache, with every digit', async (t) => {
  const server = await aServer(t);
  const body = new TextEncoder().encode(
    '{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"one","uid":"u"},' +
      '"spec":{"big":9007199254740993,"one":1.0}}',
  );
  await (await RawPusher.open(server)).syncWhole(exports, [{ ...pushedExport('one'), body }]);
  const reader = aReader(t, server);

  const found = await reader.get(aRef());
  const listed = await reader.list(aRef());

  t.true(found.kind === 'found' && found.text.includes('"spec":{"big":9007199254740993,"one":1.0}'));
  const [only] = listed.kind === 'listed' ? await all(listed.objects) : [];
  t.true(only?.text.includes('"spec":{"big":9007199254740993,"one":1.0}'));
});

test('an absent object comes with whether its absence is proved', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  await amber.syncWhole(exports, [exportAt('root:org')]);
  const reader = aReader(t, server, { bounds: { reportAgeMaxMs: 0 } });

  const certain = await reader.get(aRef({ name: 'none' }));
  const nowhere = await reader.get(aRef({ cluster: 'root:nowhere' }));
  const birch = await RawPusher.open(server, { name: 'birch' });
  await birch.acknowledged(birch.begin(birchExports));
  const uncertain = await reader.get(aRef({ name: 'none' }));

  t.like(certain, { kind: 'absent', missing: 'object', message: 'apiexports.apis.kcp.io "none" not found', whole: true });
  t.deepEqual(certain.kind === 'absent' && certain.shards.map(({ shard, whole }) => [shard, whole]), [['amber', true]]);
  t.like(nowhere, {
    kind: 'absent',
    missing: 'path',
    message: 'no logical cluster has the canonical path "root:nowhere"',
    whole: true,
  });
  t.like(uncertain, { kind: 'absent', whole: false });
  t.deepEqual(uncertain.kind === 'absent' && uncertain.shards.map(({ shard, whole }) => [shard, whole]), [
    ['amber', true],
    ['birch', false],
  ]);
});

test('a type that is not served in the requested version is missing, and its absence is not proved', async (t) => {
  const server = await aServer(t);
  await (await RawPusher.open(server)).syncWhole(exports, [pushedExport('one')]);
  const reader = aReader(t, server);

  const missing = { kind: 'absent', missing: 'type', whole: false } as const;
  t.like(await reader.get(aRef({ version: 'v9' })), missing);
  t.like(await reader.list(aRef({ version: 'v9' })), missing);
});

test('a cache that knows no shard does not prove an absence', async (t) => {
  const server = await aServer(t);

  t.like(await aReader(t, server).get(aRef()), { kind: 'absent', whole: false, shards: [] });
});

test('a path to several clusters, or an object on several shards, is ambiguous, not absent, unless the shard is named', async (t) => {
  const server = await aServer(t);
  await (await RawPusher.open(server)).syncWhole(exports, [exportAt('root:org'), pushedExport('both', { cluster: 'acme' })]);
  const birch = await RawPusher.open(server, { name: 'birch' });
  await birch.syncWhole(birchExports, [exportAt('root:org', 'one', 'beta'), pushedExport('both', { cluster: 'acme' })]);
  const reader = aReader(t, server);

  t.deepEqual(await reader.get(aRef({ cluster: 'root:org' })), {
    kind: 'ambiguous',
    message: 'the canonical path "root:org" leads to several logical clusters: acme, beta',
  });
  t.deepEqual(await reader.list(aRef({ cluster: 'root:org' })), {
    kind: 'ambiguous',
    message: 'the canonical path "root:org" leads to several logical clusters: acme, beta',
  });
  t.like(await reader.get(aRef({ name: 'both' })), { kind: 'ambiguous' });
  t.like(await reader.get(aRef({ name: 'both', shard: 'birch' })), { kind: 'found', shard: 'birch' });
});

test('a type that a ClusterCachedResource declares is read by its identity, or by the identity of the cluster', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  const [declarations, instances] = [
    sliceOf('clustercachedresources', { group: 'cache.kcp.io' }),
    sliceOf('instances', { group: 'machines.svm.io', identity: 'abc' }),
  ];
  const declaration = aClusterCachedResource('abc');
  const metadata = { ...(declaration['metadata'] as object), uid: 'u' };
  await amber.syncWhole(declarations, [pushedObject({ ...declaration, metadata })], 'v1alpha1');
  await amber.syncWhole(
    instances,
    [pushedObject({ apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name: 'one', uid: 'u' } })],
    'v1',
  );
  const ref = aRef({ group: 'machines.svm.io', version: 'v1', resource: 'instances' });
  const reader = aReader(t, server);

  t.like(await reader.get({ ...ref, identity: 'abc' }), { kind: 'found', shard: 'amber', freshness: { whole: true } });
  t.like(await reader.get(ref), { kind: 'found', shard: 'amber', freshness: { whole: true } });
  t.like(await reader.get({ ...ref, name: 'none' }), { kind: 'absent', whole: true });
  t.like(await reader.get({ ...ref, resource: 'unheard' }), { kind: 'absent', whole: false });
});

test('a list is read page by page, without objects written in the meantime', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  await amber.syncWhole(
    exports,
    ['a', 'b', 'c', 'd', 'e'].map((name) => pushedExport(name)),
  );
  const reader = aReader(t, server, { bounds: { pageObjectsMax: 2 } });

  const listed = await reader.list(aRef());
  await amber.acknowledged(amber.delete(exports, ['e']));
  const first = listed.kind === 'listed' ? namesOf(await all(listed.objects)) : [];
  const second = await reader.list(aRef());

  t.like(listed, { kind: 'listed', whole: true });
  t.deepEqual(first, ['amber/a', 'amber/b', 'amber/c', 'amber/d', 'amber/e']);
  t.deepEqual(second.kind === 'listed' && namesOf(await all(second.objects)), first.slice(0, 4));
});

test('a page larger than an answer may be is requested in smaller pages, down to a single object', async (t) => {
  const server = await aServer(t);
  const large = 'x'.repeat(20_000);
  await (
    await RawPusher.open(server)
  ).syncWhole(
    exports,
    ['a', 'b', 'c', 'd', 'e'].map((name) => pushedExport(name, { spec: { large } })),
  );
  const enough = aReader(t, server, { bounds: { answerBytesMax: 50_000 } });
  const tooLittle = aReader(t, server, { bounds: { answerBytesMax: 15_000 } });

  const listed = await enough.list(aRef());

  t.is(listed.kind === 'listed' && (await all(listed.objects)).length, 5);
  t.is(await faultOf(t, tooLittle.list(aRef())), 'too-long 0');
});

test('an empty list is not an absence; a list at an unknown path is one', async (t) => {
  const server = await aServer(t);
  const reader = aReader(t, server);

  const empty = await reader.list(aRef());

  t.deepEqual(empty.kind === 'listed' && (await all(empty.objects)), []);
  t.like(await reader.list(aRef({ cluster: 'root:nowhere' })), { kind: 'absent', whole: false });
});

test('a cache that is down, silent or refusing is a fault, never an absence', async (t) => {
  const server = await aServer(t, { flags: { 'shutdown-grace': '1s' } });
  const proxy = await TcpProxy.start(server.port);
  t.teardown(() => proxy.close());
  proxy.blackhole();
  const silent = aReader(t, server, { cache: `https://127.0.0.1:${proxy.port}`, bounds: { timeoutMs: 300 } });
  const reader = aReader(t, server);
  const nobody = server.authority.issue({ user: 'nobody', groups: [] });
  const refused = aReader(t, server, { as: nobody });

  t.is(await faultOf(t, silent.get(aRef())), 'overdue 0');
  t.is(await faultOf(t, refused.get(aRef())), 'refused 403 Forbidden');
  await server.stop();
  t.is(await faultOf(t, reader.get(aRef())), 'unreachable 0');
});

test('a reader reconnects by itself after the cache has restarted', async (t) => {
  const flags = { 'secure-port': String((await freePorts(1))[0]) };
  const server = await aServer(t, { flags });
  await (await RawPusher.open(server)).syncWhole(exports, [pushedExport('one')]);
  const reader = aReader(t, server);
  t.like(await reader.get(aRef()), { kind: 'found' });

  const again = await server.restart({ flags });
  t.teardown(() => again.close());

  t.like(await reader.get(aRef()), { kind: 'found' });
});

const object = { kind: 'APIExport', metadata: { name: 'one', annotations: { 'kcp.io/shard': 'amber' } } };
const notFound = { kind: 'Status', reason: 'NotFound', message: 'not found' };

type Scripted = Readonly<{ status: number; body: unknown }>;

/**
 * A reader of a cache whose answers the test scripts; `asked` has its requests: `look-up`, `report`
 * or `report SHARD`, and `object`.
 */
function scripted(answers: (what: string) => Scripted) {
  const asked: string[] = [];
  const clock = new ManualClock();
  const ask = async (target: string): Promise<HttpAnswer> => {
    const { pathname, searchParams } = new URL(target, 'https://cache');
    const shard = searchParams.get('shard');
    const kinds: Readonly<Record<string, string>> = {
      '/services/cache/freshness': `report${shard === null ? '' : ` ${shard}`}`,
      '/services/cache/look-up': 'look-up',
    };
    const what = kinds[pathname] ?? 'object';
    asked.push(what);
    const { status, body } = answers(what);
    return { status, text: JSON.stringify(body), retryAfterMs: undefined };
  };
  const reader = new CacheReader({ clock, connection: { ask, close: () => {} } }, defaultLookupBounds);
  return { reader, clock, asked };
}

function aReport(shards: readonly string[], shardsLeftOut = 0): object {
  const fresh = { connection: { kind: 'connected' }, slices: 1, whole: true, changedAgoMs: 5, lagMs: 2, sourceConnected: true };
  return { whole: true, shards: shards.map((shard) => ({ shard, ...fresh })), shardsLeftOut };
}

function lookedUp({ status, body }: Scripted, freshness: unknown, reportedAgoMs: unknown = 0): Scripted {
  return { status: 200, body: { freshness, reportedAgoMs, code: status, body } };
}

const anObject: Scripted = { status: 200, body: object };
const none: Scripted = { status: 404, body: { ...notFound, details: { name: 'one' } } };
const several: Scripted = { status: 409, body: { kind: 'Status', reason: 'Conflict', message: 'amber, birch' } };

test('a look-up is one request, whatever its answer', async (t) => {
  const ages = scripted(() => lookedUp(none, aReport(['amber', 'birch'], 9), 70));
  const found = scripted(() => lookedUp(anObject, aReport(['amber'])));
  const ambiguous = scripted(() => lookedUp(several, aReport(['amber'])));

  t.like(await ages.reader.get(aRef()), {
    kind: 'absent',
    missing: 'object',
    message: 'not found',
    whole: true,
    shards: [{ shard: 'amber', reportedAgoMs: 70 }, { shard: 'birch' }],
    shardsLeftOut: 9,
  });
  t.like(await found.reader.get(aRef()), {
    kind: 'found',
    shard: 'amber',
    freshness: { shard: 'amber', whole: true, lagMs: 2, reportedAgoMs: 0 },
  });
  t.deepEqual(await ambiguous.reader.get(aRef()), { kind: 'ambiguous', message: 'amber, birch' });
  t.deepEqual([...ages.asked, ...found.asked, ...ambiguous.asked], ['look-up', 'look-up', 'look-up']);
});

test('an object is found though its freshness cannot be read, and an absence is then not proved', async (t) => {
  for (const [freshness, agoMs] of [
    [null, null],
    ['hello', 0],
    [{ shards: 'many' }, 0],
    [{ whole: true, shards: [7] }, 0],
    [aReport(['amber']), 'soon'],
  ]) {
    const found = scripted(() => lookedUp(anObject, freshness, agoMs));
    const absent = scripted(() => lookedUp(none, freshness, agoMs));

    t.like(await found.reader.get(aRef()), { kind: 'found', shard: 'amber', freshness: undefined });
    t.like(await absent.reader.get(aRef()), { kind: 'absent', whole: false, shards: [] });
  }
});

test('a malformed look-up answer, or one with a status that no GET returns, is a fault', async (t) => {
  for (const [answer, fault] of [
    [{ status: 200, body: object }, 'unreadable 0'],
    [{ status: 200, body: 'hello' }, 'unreadable 0'],
    [{ status: 200, body: { code: 404, freshness: null } }, 'unreadable 0'],
    [lookedUp({ status: 200, body: { kind: 'APIExport' } }, aReport(['amber'])), 'unreadable 0'],
    [lookedUp({ status: 403, body: { kind: 'Status', reason: 'Forbidden' } }, aReport(['amber'])), 'refused 403 Forbidden'],
    [{ status: 503, body: { kind: 'Status', reason: 'ServiceUnavailable' } }, 'refused 503 ServiceUnavailable'],
  ] as const) {
    const { reader, asked } = scripted(() => answer);
    t.is((await faultOf(t, reader.get(aRef()))).trim(), fault);
    t.deepEqual(asked, ['look-up']);
  }
});

test('an older cache without look-up can still be read: freshness is unknown, and absence is not proved', async (t) => {
  for (const unknown of [
    { status: 404, body: notFound },
    { status: 400, body: { kind: 'Status', reason: 'BadRequest', message: 'a shard name is required' } },
  ]) {
    const found = scripted((what) => (what === 'look-up' ? unknown : anObject));
    const absent = scripted((what) => (what === 'look-up' ? unknown : none));

    t.like(await found.reader.get(aRef()), { kind: 'found', shard: 'amber', freshness: undefined });
    t.like(await absent.reader.get(aRef()), { kind: 'absent', whole: false, shards: [] });
    t.deepEqual(found.asked, ['look-up', 'object']);
  }
});

test('the freshness of a type is requested at most once per interval, for each type and each named shard', async (t) => {
  const { reader, clock, asked } = scripted(() => ({ status: 200, body: aReport(['amber']) }));

  await reader.freshness(aRef());
  clock.advance(700);
  t.like(await reader.freshness(aRef()), { whole: true, shards: [{ reportedAgoMs: 700 }] });
  await reader.freshness({ ...aRef(), shard: 'amber' });
  await reader.freshness(aRef({ resource: 'apibindings' }));
  clock.advance(400);
  await reader.freshness(aRef());

  t.deepEqual(asked, ['report', 'report amber', 'report', 'report']);
});

test('a reference that names nothing is not sent', async (t) => {
  const { reader, asked } = scripted(() => anObject);

  await t.throwsAsync(reader.get(aRef({ name: '..' })), { message: /the name/ });
  await t.throwsAsync(reader.list(aRef({ cluster: '*' })), { message: /neither/ });

  t.deepEqual(asked, []);
});

test('the freshness of a type can be requested alone, on all shards or on one', async (t: ExecutionContext) => {
  const server = await aServer(t);
  await (await RawPusher.open(server)).syncWhole(exports, []);
  const reader = aReader(t, server);

  t.like(await reader.freshness(aRef()), { whole: true, shards: [{ shard: 'amber', connected: true, whole: true, changedAgoMs: null }] });
  t.like(await reader.freshness({ ...aRef(), shard: 'birch' }), { whole: false, shards: [] });
});
