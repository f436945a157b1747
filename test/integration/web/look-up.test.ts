/**
 * One object and its freshness in one answer, compared with a GET of the object and the freshness
 * of its type.
 */
import { test } from '../../support/test.js';
import type { ShardFreshness, TypeFreshnessReport } from '../../../src/domain/type-freshness.js';
import type { KubeStatus } from '../../support/kube-client.js';
import { aClusterCachedResource, shardName } from '../../support/objects.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { rounds } from '../../support/sizes.js';
import { aServer, type TestServer } from '../../support/test-server.js';
import { aWholeChild } from '../../support/whole-child.js';
import { exportAt } from '../../support/lookup/a-reader.js';

type Asked = Readonly<Record<string, string>>;
type Answered = Readonly<{ freshness: TypeFreshnessReport; reportedAgoMs: number; code: number; body: unknown }>;

const exports = sliceOf('apiexports');
const birchExports = sliceOf('apiexports', { shard: 'birch' });
const one: Asked = { group: 'apis.kcp.io', version: 'v1alpha2', resource: 'apiexports', cluster: 'acme', name: 'one' };

function pathOf(asked: Asked): string {
  return `/services/cache/look-up?${new URLSearchParams(asked).toString()}`;
}

function objectPath({ group = '', version, resource, identity, cluster, namespace, name = '', shard = '*' }: Asked): string {
  const api = group === '' ? `api/${version}` : `apis/${group}/${version}`;
  const type = identity === undefined ? resource : `${resource}:${identity}`;
  const inNamespace = namespace === undefined ? '' : `namespaces/${namespace}/`;
  return `/services/cache/shards/${shard}/clusters/${cluster}/${api}/${inNamespace}${type}/${encodeURIComponent(name)}`;
}

async function textOf(server: TestServer, path: string, status = 200): Promise<string> {
  const answer = await server.client().raw('GET', path);
  if (answer.status !== status) throw new Error(`${path}: ${answer.status} ${answer.text}`);
  return answer.text;
}

async function ask(server: TestServer, asked: Asked): Promise<Answered> {
  return JSON.parse(await textOf(server, pathOf(asked))) as Answered;
}

/** Without ages, which differ because the two requests are not simultaneous. */
function ageless({ connection, changedAgoMs, ...others }: ShardFreshness): unknown {
  return { ...others, connection: connection.kind, hasChanged: changedAgoMs !== null };
}

test('the answer is that of GET, byte for byte, with the freshness of the type on the object’s shard, or on all', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  const big = new TextEncoder().encode(
    '{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"big","uid":"u"},"spec":{"big":9007199254740993,"é":1.0}}',
  );
  await amber.syncWhole(exports, [
    exportAt('root:org'),
    exportAt('root:both', 'two', 'gamma'),
    { ...pushedExport('big'), body: big },
    pushedExport('both'),
  ]);
  const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' };
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'system:a b#ü', namespace: 'team', uid: 'u' },
  };
  await amber.syncWhole(sliceOf('roles', { group: rbac.group }), [pushedObject({ ...role, rules: [] })], 'v1');
  const declaration = aClusterCachedResource('abc');
  await amber.syncWhole(
    sliceOf('clustercachedresources', { group: 'cache.kcp.io' }),
    [pushedObject({ ...declaration, metadata: { ...(declaration['metadata'] as object), uid: 'u' } })],
    'v1alpha1',
  );
  const instance = { apiVersion: 'machines.svm.io/v1', kind: 'Instance', metadata: { name: 'one', uid: 'u' } };
  await amber.syncWhole(sliceOf('instances', { group: 'machines.svm.io', identity: 'abc' }), [pushedObject(instance)], 'v1');
  const birch = await RawPusher.open(server, { name: 'birch' });
  await birch.syncWhole(birchExports, [pushedExport('both'), exportAt('root:both', 'two', 'beta')]);
  const anInstance = { ...one, group: 'machines.svm.io', version: 'v1', resource: 'instances' };
  const ofCore = { version: 'v1', resource: 'configmaps', cluster: 'acme', namespace: 'team', name: 'one' };

  const found: readonly Asked[] = [
    one,
    { ...one, cluster: 'root:org' },
    { ...one, name: 'big' },
    { ...one, name: 'both', shard: 'birch' },
    { ...one, ...rbac, resource: 'roles', namespace: 'team', name: 'system:a b#ü' },
    { ...anInstance, identity: 'abc' },
    anInstance,
  ];
  const others: readonly (readonly [Asked, number])[] = [
    [{ ...one, name: 'none' }, 404],
    [{ ...one, cluster: 'nowhere' }, 404],
    [{ ...one, cluster: 'root:nowhere' }, 404],
    [{ ...one, shard: 'birch' }, 404],
    [{ ...one, shard: 'nobody' }, 404],
    [{ ...one, version: 'v9' }, 404],
    [{ ...one, resource: 'unheard' }, 404],
    [{ ...one, namespace: 'team' }, 404],
    [{ ...anInstance, identity: 'other' }, 404],
    [{ ...one, group: '', version: 'v1', resource: 'configmaps', namespace: 'team' }, 404],
    [ofCore, 404],
    [{ ...one, name: 'both' }, 409],
    [{ ...one, cluster: 'root:both', name: 'two' }, 409],
  ];
  for (const [asked, code] of [...found.map((each) => [each, 200] as const), ...others]) {
    const why = JSON.stringify(asked);
    const startedAt = performance.now();
    const text = await textOf(server, pathOf(asked));
    const tookMs = performance.now() - startedAt;
    const got = await textOf(server, objectPath(asked), code);
    t.true(text.endsWith(`,"code":${code},"body":${got}}`), `${why}: ${text} ${got}`);
    const { freshness, reportedAgoMs, body } = JSON.parse(text) as Answered;
    const shard = code === 200 ? (body as { metadata: { annotations: Asked } }).metadata.annotations['kcp.io/shard'] : asked['shard'];
    const names = ['group', 'resource', 'identity'].flatMap((name) => (asked[name] === undefined ? [] : [[name, asked[name]]]));
    const query = new URLSearchParams([...names, ...(shard === undefined ? [] : [['shard', shard]])] as [string, string][]);
    const report = JSON.parse(await textOf(server, `/services/cache/freshness?${query.toString()}`)) as TypeFreshnessReport;
    t.deepEqual(freshness.shards.map(ageless), report.shards.map(ageless), why);
    const isOfType = code === 404 && (body as KubeStatus).details !== undefined && (body as KubeStatus).details?.['name'] === undefined;
    t.is(freshness.whole, report.whole && !isOfType, why);
    t.true(reportedAgoMs >= 0 && reportedAgoMs <= Math.ceil(tookMs), `${why}: ${reportedAgoMs} of ${tookMs} ms`);
  }
  t.false((await ask(server, { ...one, version: 'v9' })).freshness.whole, 'an unserved version proves nothing');
});

test('callers that accept an older report share one and learn its age; all others get a new report', async (t) => {
  const server = await aServer(t);
  const amber = await RawPusher.open(server);
  await amber.syncWhole(exports, []);
  const lately = { ...one, reportAgeMaxMs: '900000' };
  t.like(await ask(server, one), { code: 404, freshness: { whole: true } });
  const madeAt = performance.now();
  const birch = await RawPusher.open(server, { name: 'birch' });
  await birch.acknowledged(birch.begin(birchExports));

  const passedMs = performance.now() - madeAt;
  const older = await ask(server, lately);
  t.true(older.freshness.whole);
  t.true(older.reportedAgoMs >= Math.floor(passedMs), `${older.reportedAgoMs} of ${passedMs} ms`);
  t.like(await ask(server, { ...one, reportAgeMaxMs: '0' }), { freshness: { whole: false } });
  t.false((await ask(server, lately)).freshness.whole, 'the shared report is replaced by the newest');
  await birch.acknowledged(birch.put(birchExports, [pushedExport('one')]));
  t.like(await ask(server, lately), { code: 200, freshness: { shards: [{ shard: 'birch', whole: false }] } });
});

test('a look-up that is not fully understood is refused, with the reason', async (t) => {
  const server = await aServer(t);
  const without = (name: string): Asked => Object.fromEntries(Object.entries(one).filter(([each]) => each !== name));
  const malformed: readonly (readonly [Asked | string, RegExp])[] = [
    ...['version', 'resource', 'cluster', 'name'].map((name) => [without(name), new RegExp(`^a ${name} is required$`)] as const),
    ...['version', 'resource', 'cluster', 'name', 'identity', 'namespace', 'shard', 'reportAgeMaxMs'].map(
      (name) => [{ ...one, [name]: '' }, new RegExp(`^the parameter "${name}" is empty$`)] as const,
    ),
    [{ ...one, cluster: '*' }, /^invalid cluster: "\*" does not match the regex$/],
    [{ ...one, cluster: 'root:org/x' }, /^invalid cluster/],
    [{ ...one, shard: '*' }, /^invalid shard: "\*" does not match the regex$/],
    [{ ...one, identity: 'a/b' }, /^invalid identity/],
    [{ ...one, group: 'a_b' }, /^invalid group/],
    [{ ...one, resource: 'a/b' }, /^invalid resource/],
    [{ ...one, resource: 'apiexports:abc' }, /^invalid resource/],
    [{ ...one, resource: 'watch' }, /^a look-up must get one object$/],
    [{ ...one, version: '..' }, /^invalid version: ".." may not be/],
    [{ ...one, namespace: 'a/b' }, /^invalid namespace: "a\/b" may not contain/],
    [{ ...one, name: '.' }, /^invalid name/],
    [{ ...one, name: 'a%2Fb' }, /^invalid name/],
    [{ ...one, reportAgeMaxMs: '-1' }, /^invalid reportAgeMaxMs: "-1" is not a number of milliseconds with at most 6 digits$/],
    [{ ...one, reportAgeMaxMs: '1s' }, /^invalid reportAgeMaxMs/],
    [{ ...one, resourceVersion: '7' }, /^unknown parameter "resourceVersion": the parameters are group, version,/],
    [`${pathOf(one)}&name=one`, /^the parameter "name" is given more than once$/],
  ];
  for (const [asked, why] of malformed) {
    const { status, text } = await server.client().raw('GET', typeof asked === 'string' ? asked : pathOf(asked));
    const { reason, message = '' } = JSON.parse(text) as KubeStatus;
    t.deepEqual([status, reason], [400, 'BadRequest'], JSON.stringify(asked));
    t.regex(message, why);
  }
});

test('whoever may GET the object may look it up, and nobody else; the answer is JSON with the whole object', async (t) => {
  const server = await aServer(t);
  await (await RawPusher.open(server)).syncWhole(exports, [pushedExport('one')]);
  const speaker = (uri: string) => server.authority.issue({ user: uri.replaceAll('/', '-'), groups: ['strata'], uris: [uri] });
  const callers = ['shard/amber', 'shard/birch', 'cache/c', 'reader/r', 'syncer/one'].map((uri) => speaker(`strata://${uri}`));
  const statuses: (readonly [number, number])[] = [];
  for (const as of [...callers, server.master, server.authority.issue({ user: 'nobody', groups: [] }), null]) {
    const client = server.client({ as });
    const [looked, got] = [await client.raw('GET', pathOf(one)), await client.raw('GET', objectPath(one))];
    t.is(looked.status, got.status);
    t.is((await client.raw('GET', '/services/cache/look-up?what=ever')).status, got.status === 200 ? 400 : got.status);
    statuses.push([looked.status, got.status]);
  }
  t.deepEqual(new Set(statuses.map(([status]) => status)), new Set([200, 403]));

  const client = server.client();
  const asJson = (accept: string) => client.raw('GET', pathOf(one), { headers: { accept } });
  t.is((await asJson('*/*')).status, 200);
  for (const accept of ['application/yaml', 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1', 'text/html'])
    t.is((await asJson(accept)).status, 406, accept);
  t.is((await client.raw('POST', pathOf(one))).status, 400);
  t.is((await client.raw('HEAD', pathOf(one))).text, '');
});

/**
 * More shards than a report reads in one turn of the event loop, so that a sync can happen between
 * a report and a read.
 */
const manyShards = 999;

test('no look-up proves the absence of what the shard already had, while its pusher leaves and syncs again', async (t) => {
  const server = await aServer(t, { config: `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}}` });
  const slices = Array.from({ length: manyShards }, (_, i) => ({ ...exports, shard: shardName(`shard-${i}`) }));
  await aWholeChild(t, server, slices);
  await (await RawPusher.open(server, { term: 1_000 })).syncWhole(exports, []);
  const isOver = new AbortController();
  t.teardown(() => isOver.abort());
  const wrong: string[] = [];
  let name = 'none';
  let [asked, proved, found] = [0, 0, 0];
  const looking = Array.from({ length: 6 }, async () => {
    while (!isOver.signal.aborted) {
      const looked = name;
      const { code, freshness } = await ask(server, { ...one, name: looked });
      asked += 1;
      if (code === 200) found += 1;
      if (code !== 404 || !freshness.whole) continue;
      proved += 1;
      if (looked !== 'none') wrong.push(looked);
    }
  });
  for (let round = 1; round <= rounds(60); round += 1) {
    const before = asked;
    while (asked < before + 6) await new Promise((resolve) => setImmediate(resolve));
    const pusher = await RawPusher.open(server, { term: 1_000 * (round + 1) });
    // From here on the shard has the object. Its new pusher has sent nothing yet.
    name = `of-${round}`;
    const asking = asked;
    while (asked < asking + 6) await new Promise((resolve) => setImmediate(resolve));
    await pusher.syncWhole(exports, [pushedExport(name)]);
    const syncedAt = found;
    while (found < syncedAt + 6) await new Promise((resolve) => setImmediate(resolve));
    name = 'none';
    pusher.socket.terminate();
  }
  isOver.abort();
  await Promise.all(looking);
  t.log(`${asked} asked, ${found} found, ${proved} proved absent`);
  t.deepEqual(wrong, []);
  t.true(found > 0);
});
