/**
 * Names that are kept on cached copies (domain/kept-names.ts), through a real server: its pushers,
 * plain writers like kcp, its links and its status.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { formatStatusTable } from '../../../src/commands/status-table.js';
import { parseStatusReport } from '../../../src/domain/status.js';
import type { PushedObject } from '../../../src/frames/frame.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { KubeError, type KubeObject } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { pushedExport, RawPusher } from '../../support/raw-pusher.js';
import { aServer, hurried, until, type TestServer } from '../../support/test-server.js';
import { aTree, eventsOf } from '../../support/test-tree.js';

const flags = {
  'kept-annotations': 'apiexports.apis.kcp.io=x.io/cordon,apiexports.apis.kcp.io=x.io/owner,apiexports.apis.kcp.io=constructor',
  'kept-labels': 'apiexports.apis.kcp.io=x.io/zone',
};
const exports = aSlice();
const one = aPath({ name: 'one' });
const cordon = { metadata: { annotations: { 'x.io/cordon': 'why' } } };
const uncordon = { metadata: { annotations: { 'x.io/cordon': null } } };
/**
 * Indented, unlike the JSON that the cache writes: a patch must keep the bytes that the pusher
 * sent.
 */
const sent = (n: number): PushedObject => {
  const object = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'one', uid: 'uid-of-one' }, spec: { n } };
  return { ...pushedExport('one'), body: Buffer.from(JSON.stringify(object, undefined, 2)) };
};

async function statusOf(server: TestServer): Promise<StatusReport> {
  return parseStatusReport((await server.client().raw('GET', '/services/cache/status')).text);
}

/** The kept annotation, the kept label and the value of the shard, as in `why a 1`. */
function textOf({ metadata: { annotations, labels }, spec }: KubeObject): string {
  return [annotations?.['x.io/cordon'], labels?.['x.io/zone'], (spec as { n?: number }).n].join(' ');
}

async function shows(server: TestServer): Promise<string> {
  const { status, text } = await server.client().raw('GET', one);
  return status === 200 ? textOf(JSON.parse(text) as KubeObject) : String(status);
}

async function comesToShow(t: ExecutionContext, server: TestServer, wanted: string): Promise<void> {
  let last = '';
  await until(async () => (last = await shows(server)) === wanted).catch(() => t.fail(`${last} instead of ${wanted}`));
}

test('an operator’s setting on a pushed copy survives pushes and a restart without an event, until a patch or the object’s deletion', async (t) => {
  const server = await aServer(t, { flags });
  const pusher = await RawPusher.open(server);
  await pusher.syncWhole(exports, [sent(1)]);
  const client = server.client();

  await client.mergePatch(one, cordon);
  await client.mergePatch(one, { metadata: { labels: { 'x.io/zone': 'a' } } });

  t.is(await shows(server), 'why a 1');
  const { resourceVersion } = (await client.get(one)).metadata;
  const seen = await eventsOf(t, server);
  await pusher.sync(exports, [sent(1)]);
  t.is((await client.get(one)).metadata.resourceVersion, resourceVersion, 'a full sync finds nothing to change');
  t.true((await statusOf(server)).shards[0]?.slices[0]?.whole);
  await pusher.acknowledged(pusher.put(exports, [sent(2)]));
  t.is(await shows(server), 'why a 2');
  await until(() => seen().length > 0);
  t.deepEqual(seen(), ['MODIFIED one']);
  await client.mergePatch(one, uncordon);
  t.is(await shows(server), ' a 2');
  await client.mergePatch(one, { metadata: { labels: null } });
  t.is(await shows(server), '  2');
  await pusher.acknowledged(pusher.put(exports, [sent(3)]));
  t.is(await shows(server), '  3');

  await client.mergePatch(one, cordon);
  await pusher.acknowledged(pusher.delete(exports, ['one']));
  await pusher.acknowledged(pusher.put(exports, [sent(4)]));
  t.is(await shows(server), '  4');
  await client.mergePatch(one, cordon);
  const again = await server.restart({ flags });
  t.teardown(() => again.close());
  t.is(await shows(again), 'why  4');
  const back = await RawPusher.open(again, { term: 2_000 });
  await back.sync(exports, [sent(5)]);
  t.is(await shows(again), 'why  5');
});

test('beside a pusher only kept names may be written, and only by callers who may write', async (t) => {
  const server = await aServer(t, { flags });
  const pusher = await RawPusher.open(server);
  await pusher.sync(exports, [sent(1)]);
  const client = server.client();

  for (const patch of [
    { metadata: { annotations: { 'x.io/other': 'a' } } },
    { metadata: { annotations: { 'x.io/cordon': 'a' } }, spec: { n: 2 } },
    { metadata: { labels: { other: 'a' } } },
  ]) {
    const error = await t.throwsAsync(client.mergePatch(one, patch), { instanceOf: KubeError });
    t.is(error?.status, 409);
    t.regex(error?.message ?? '', /has a pusher/);
  }
  const reader = server.authority.issue({ user: 'reader', groups: ['strata'], uris: ['strata://reader/r'] });
  await t.throwsAsync(server.client({ as: reader }).mergePatch(one, cordon), { message: / 403 / });

  const dry = await client.mergePatch(`${one}?dryRun=All`, cordon);
  t.is(textOf(dry), 'why  1');
  t.is(await shows(server), '  1');
  const copy = await client.get(one);
  await client.replace(one, {
    ...copy,
    metadata: { ...copy.metadata, annotations: { ...copy.metadata.annotations, 'x.io/cordon': 'put' } },
  });
  t.is(await shows(server), 'put  1');
});

test('under a listed name the cache tells the shard’s own value from the operator’s: each is removed as it was set', async (t) => {
  const server = await aServer(t, { flags });
  const pusher = await RawPusher.open(server);
  const own = (annotations: Record<string, string>) =>
    pushedExport('one', { metadata: { name: 'one', uid: 'uid-of-one', annotations }, spec: { n: 1 } });
  await pusher.sync(exports, [own({ 'x.io/cordon': 'shard' })]);
  const client = server.client();
  await client.mergePatch(one, { metadata: { annotations: { 'x.io/owner': 'me', 'strata/kept': 'x.io/cordon' } } });
  const { annotations } = (await client.get(one)).metadata;
  t.deepEqual([annotations?.['x.io/cordon'], annotations?.['x.io/owner'], annotations?.['strata/kept']], ['shard', 'me', 'x.io/owner']);

  await pusher.acknowledged(pusher.put(exports, [own({})]));

  const later = (await client.get(one)).metadata.annotations;
  t.deepEqual([later?.['x.io/cordon'], later?.['x.io/owner']], [undefined, 'me']);
  await client.mergePatch(one, { metadata: { annotations: { 'x.io/cordon': 'operator', 'x.io/owner': null } } });
  await pusher.acknowledged(pusher.put(exports, [own({ 'x.io/cordon': 'shard' })]));
  t.is((await client.get(one)).metadata.annotations?.['x.io/cordon'], 'shard');
  await pusher.acknowledged(pusher.put(exports, [own({})]));
  t.deepEqual((await client.get(one)).metadata.annotations, { 'kcp.io/cluster': 'acme', 'kcp.io/shard': 'amber' });
});

test('beside listed names that the shard itself sets, an operator’s patch brings one event, and the next push of the same object none', async (t) => {
  const server = await aServer(t, { flags });
  const pusher = await RawPusher.open(server);
  const annotations = { a: 'b', 'x.io/cordon': 'shard', z: 'y' };
  const labels = { p: 'q', 'x.io/zone': 'shard' };
  const own = pushedExport('one', { metadata: { name: 'one', uid: 'uid-of-one', annotations, labels }, spec: { n: 1 } });
  await pusher.sync(exports, [own]);
  const client = server.client();

  for (const owner of ['me', 'you', null]) {
    const { metadata } = await client.mergePatch(one, { metadata: { annotations: { 'x.io/owner': owner } } });
    await pusher.sync(exports, [own]);
    await pusher.acknowledged(pusher.put(exports, [own]));
    t.deepEqual((await client.get(one)).metadata, metadata);
  }
});

test('a list of kept names that a shard or a patch sends changes nothing, also of an object without annotations and a type without listed names', async (t) => {
  const server = await aServer(t, { flags });
  const pusher = await RawPusher.open(server);
  const client = server.client();
  const list = { 'strata/kept': 'x.io/cordon' };
  for (const annotations of [undefined, { a: 'b' }]) {
    const pushed = (more: object) => pushedExport('one', { metadata: { name: 'one', uid: 'uid-of-one', ...more } });
    await pusher.sync(exports, [pushed({ ...(annotations && { annotations }) })]);
    const { metadata } = await client.get(one);
    await pusher.acknowledged(pusher.put(exports, [pushed({ annotations: { ...list, ...annotations } })]));
    t.deepEqual((await client.get(one)).metadata, metadata);
  }

  const slices = aPath({ shard: 'beside', resource: 'apiexportendpointslices', version: 'v1alpha1' });
  const kind = { apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIExportEndpointSlice' };
  for (const [path, of] of [
    [aPath({ shard: 'beside' }), {}],
    [slices, kind],
  ] as const) {
    const { metadata } = await client.create(path, anApiExport({}, of));
    await client.mergePatch(`${path}/one`, { metadata: { annotations: list } });
    t.deepEqual((await client.get(`${path}/one`)).metadata, metadata);
  }
});

test('values that the shard itself marks as kept, as after a restore from a cached copy, remain the shard’s own', async (t) => {
  const server = await aServer(t, { flags });
  const pusher = await RawPusher.open(server);
  const marking = { 'x.io/cordon': 'shard', 'strata/kept': 'x.io/cordon' };
  const own = (annotations: Record<string, string>) =>
    pushedExport('one', { metadata: { name: 'one', uid: 'uid-of-one', annotations }, spec: { n: 1 } });
  await pusher.sync(exports, [own(marking)]);
  const client = server.client();
  t.deepEqual(await annotationsAt(one), { 'x.io/cordon': 'shard', 'kcp.io/cluster': 'acme', 'kcp.io/shard': 'amber' });
  await client.mergePatch(one, { metadata: { annotations: { 'x.io/owner': 'me' } } });

  await pusher.acknowledged(pusher.put(exports, [own({ 'strata/kept': 'x.io/other' })]));

  const marked = { 'x.io/owner': 'me', 'strata/kept': 'x.io/owner' };
  t.deepEqual(await annotationsAt(one), { ...marked, 'kcp.io/cluster': 'acme', 'kcp.io/shard': 'amber' });
  const beside = aPath({ shard: 'beside' });
  await client.create(beside, anApiExport({}, { metadata: { name: 'two', annotations: marking } }));
  const { 'x.io/cordon': set, 'strata/kept': mark } = (await annotationsAt(`${beside}/two`)) ?? {};
  t.deepEqual([set, mark], ['shard', undefined]);

  async function annotationsAt(path: string): Promise<KubeObject['metadata']['annotations']> {
    return (await client.get(path)).metadata.annotations;
  }
});

test('a PUT that lacks only kept names changes nothing, as kcp repeats it; one that changes the object keeps the names', async (t) => {
  const server = await aServer(t, { flags });
  const client = server.client();
  const created = await client.create(aPath(), anApiExport({}, { spec: { n: 1 } }));
  await client.mergePatch(one, cordon);
  const { metadata } = await client.get(one);
  const seen = await eventsOf(t, server);
  const local = (n: number, { resourceVersion }: KubeObject['metadata']): unknown => ({
    ...created,
    metadata: { ...created.metadata, resourceVersion },
    spec: { n },
  });

  const answer = await client.replace(one, local(1, metadata));
  t.is(textOf(answer), 'why  1');
  t.is(answer.metadata.resourceVersion, metadata.resourceVersion);

  const changed = await client.replace(one, local(2, metadata));
  t.is(textOf(changed), 'why  2');
  t.is((await client.replace(one, local(2, changed.metadata))).metadata.resourceVersion, changed.metadata.resourceVersion);
  await until(() => seen().length > 0);
  t.deepEqual(seen(), ['MODIFIED one']);
  // What the shard itself sets and drops; kcp replicates it only with another change.
  const withOwn = { ...(local(3, (await client.get(one)).metadata) as KubeObject) };
  const set = await client.replace(one, {
    ...withOwn,
    metadata: { ...withOwn.metadata, annotations: { ...created.metadata.annotations, 'x.io/owner': 'shard' } },
  });
  t.is(set.metadata.annotations?.['x.io/owner'], 'shard');
  const dropped = await client.replace(one, local(3, set.metadata));
  t.deepEqual([dropped.metadata.annotations?.['x.io/owner'], textOf(dropped)], [undefined, 'why  3']);
  await client.raw('PATCH', one, {
    body: [{ op: 'remove', path: '/metadata/annotations/x.io~1cordon' }],
    headers: { 'content-type': 'application/json-patch+json' },
  });
  t.is(await shows(server), '  3');
});

test('kept names of a copy take at most 4 KiB: a patch beyond that is 400 and changes nothing, unless it only removes', async (t) => {
  const server = await aServer(t, { flags });
  const pusher = await RawPusher.open(server);
  await pusher.syncWhole(exports, [sent(1)]);
  const client = server.client();
  const patched = async (annotations: Readonly<Record<string, string | null>>): Promise<number> =>
    (await client.raw('PATCH', one, { body: { metadata: { annotations } }, headers: { 'content-type': 'application/merge-patch+json' } }))
      .status;

  const name = 'x.io/cordon'.length;
  t.is(await patched({ 'x.io/cordon': 'y'.repeat(4_096 - name) }), 200);
  t.is(await patched({ 'x.io/owner': 'me' }), 400);
  t.is(await patched({ 'x.io/cordon': 'y'.repeat(4_097 - name) }), 400);
  t.is((await client.get(one)).metadata.annotations?.['x.io/cordon']?.length, 4_096 - name);
  t.is(await patched({ 'x.io/cordon': null, 'x.io/owner': 'me' }), 200);
  t.is(await shows(server), '  1');
});

test('kept names cross links up and down from the cache that writes the shard; elsewhere a write is refused with the place to write', async (t) => {
  const clock = hurried(20);
  const tree = await aTree(t);
  const compared = { ...flags, 'link-digest-interval': '10s' };
  const root = await tree.cache('root', { flags: compared, clock });
  const east = await tree.cache('east', { parent: root, flags: compared, clock });
  const west = await tree.cache('west', { parent: root, clock });
  const atEast = await RawPusher.open(east);
  await atEast.syncWhole(exports, [sent(1)]);
  for (const cache of [root, west]) await comesToShow(t, cache, '  1');

  await east.client().mergePatch(one, cordon);
  for (const cache of [root, west]) await comesToShow(t, cache, 'why  1');
  await atEast.acknowledged(atEast.put(exports, [sent(2)]));
  for (const cache of [root, west]) await comesToShow(t, cache, 'why  2');
  const error = await t.throwsAsync(root.client().mergePatch(one, uncordon), { instanceOf: KubeError });
  t.is(error?.status, 409);
  t.regex(error?.message ?? '', /is written at the child east/);
  await until(async () => ((await statusOf(root)).tree?.children[0]?.receiving.compared ?? 0) > 1);
  for (const { receiving } of (await statusOf(root)).tree?.children ?? []) t.is(receiving.differed, 0);
  t.is((await statusOf(east)).tree?.parent?.sending?.resynced, 0);

  // The shard's pusher moves to the root: kept names set there remain, and reach the former cache.
  const atRoot = await RawPusher.open(root, { term: 2_000 });
  await atRoot.syncWhole(exports, [sent(3)]);
  for (const cache of [root, east, west]) await comesToShow(t, cache, 'why  3');
  await root.client().mergePatch(one, uncordon);
  for (const cache of [root, east, west]) await comesToShow(t, cache, '  3');
  await root.client().mergePatch(one, { metadata: { labels: { 'x.io/zone': 'b' } } });
  for (const cache of [root, east, west]) await comesToShow(t, cache, ' b 3');
  await t.throwsAsync(west.client().mergePatch(one, cordon), { message: /409 .*a cache above or beside this one/ });
});

test('an object as large as a cache accepts from a shard reaches every tier, with what the cache adds to it', async (t) => {
  const tree = await aTree(t);
  const bytesMax = 32 * 1024;
  const small = { ...flags, 'body-bytes-max': String(bytesMax) };
  const root = await tree.cache('root', { flags: small });
  const east = await tree.cache('east', { parent: root, flags: small });
  const city = await tree.cache('city', { parent: east, flags: small });
  const large = (n: number, bytes = bytesMax): PushedObject => {
    const object = (text: string) => pushedExport('one', { spec: { n, text } });
    return object('x'.repeat(bytes - (object('').body?.length ?? 0)));
  };
  const pusher = await RawPusher.open(city);
  await pusher.syncWhole(exports, [large(1)]);
  for (const cache of [root, east]) await comesToShow(t, cache, '  1');

  const why = '\u0001'.repeat(4_000);
  await city.client().mergePatch(one, { metadata: { annotations: { 'x.io/cordon': why } } });
  for (const cache of [root, east]) await comesToShow(t, cache, `${why}  1`);
  await pusher.acknowledged(pusher.put(exports, [large(2)]));
  for (const cache of [root, east]) await comesToShow(t, cache, `${why}  2`);
  await pusher.acknowledged(pusher.put(exports, [large(3, bytesMax + 1)]));
  t.is(await shows(city), `${why}  2`);
  await city.client().mergePatch(one, uncordon);
  for (const cache of [root, east]) await comesToShow(t, cache, '  2');
});

test('kept names are set and removed on an object whose own annotations are as large as may be', async (t) => {
  const server = await aServer(t, { flags });
  const pusher = await RawPusher.open(server);
  const metadata = { name: 'one', uid: 'uid-of-one', annotations: { a: 'x'.repeat(262_143) } };
  await pusher.sync(exports, [pushedExport('one', { metadata })]);
  const client = server.client();

  await client.mergePatch(one, cordon);
  await client.mergePatch(one, { metadata: { annotations: { 'x.io/owner': 'me' } } });
  await client.mergePatch(one, uncordon);

  const { annotations } = (await client.get(one)).metadata;
  t.deepEqual([annotations?.['x.io/cordon'], annotations?.['x.io/owner'], annotations?.['a']?.length], [undefined, 'me', 262_143]);
  await t.throwsAsync(client.mergePatch(one, { metadata: { annotations: { 'x.io/cordon': 'y'.repeat(40_000) } } }), { message: / 422 / });
});

test('the status shows for each slice how many objects have which kept name, also after a restart', async (t) => {
  const server = await aServer(t, { flags });
  const pusher = await RawPusher.open(server);
  await pusher.sync(exports, [sent(1), pushedExport('two'), pushedExport('three')]);
  t.deepEqual((await statusOf(server)).kept, []);
  const client = server.client();
  await client.mergePatch(one, { metadata: { annotations: { 'x.io/cordon': 'why', 'x.io/owner': 'me' }, labels: { 'x.io/zone': 'a' } } });
  await client.mergePatch(aPath({ name: 'two' }), cordon);
  const type = { group: 'apis.kcp.io', resource: 'apiexports', identity: '' };
  const kept = [
    { shard: 'amber', ...type, name: 'label x.io/zone', objects: 1 },
    { shard: 'amber', ...type, name: 'x.io/cordon', objects: 2 },
    { shard: 'amber', ...type, name: 'x.io/owner', objects: 1 },
  ];

  const report = await statusOf(server);

  t.deepEqual(report.kept as unknown, kept);
  const table = formatStatusTable(report, { isTerminal: false });
  t.regex(
    table,
    /^SHARD +TYPE +KEPT +OBJECTS\namber +apiexports.apis.kcp.io +label x.io\/zone +1\namber +apiexports.apis.kcp.io +x.io\/cordon +2\n/m,
  );
  const again = await server.restart({ flags });
  t.teardown(() => again.close());
  t.deepEqual((await statusOf(again)).kept as unknown, kept);
  const back = await RawPusher.open(again, { term: 2_000 });
  await back.sync(exports, [sent(1)]);
  t.deepEqual(
    (await statusOf(again)).kept as unknown,
    kept.map((status) => ({ ...status, objects: 1 })),
  );
  await back.sync(exports, []);
  t.deepEqual((await statusOf(again)).kept, []);
});

test('a malformed list of kept names fails the start with its flag', async (t) => {
  const bad = { 'kept-annotations': 'shards.core.kcp.io', 'kept-labels': 'shards.core.kcp.io=kcp.io/shard' };
  const error = await t.throwsAsync(aServer(t, { flags: bad }));
  t.regex(error?.message ?? '', /--kept-annotations=shards.core.kcp.io: must be up to 64 of TYPE=NAME/);
  t.regex(error?.message ?? '', /--kept-labels=shards.core.kcp.io=kcp.io\/shard: must be/);
});
