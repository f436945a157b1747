import { test } from '../../support/test.js';
import { LocalThenCache, openPathResolver, type CacheReader, type LocalGetter, type ObjectRef } from '../../../src/client.js';
import { syncPaths } from '../../support/path-pusher.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until } from '../../support/test-server.js';
import { aReader, aRef, exportAt, faultOf } from '../../support/lookup/a-reader.js';

const exports = sliceOf('apiexports');

type Named = Readonly<{ name: string }>;

const parse = (text: string): Named => ({ name: (JSON.parse(text) as { metadata: Named }).metadata.name });

/** The objects of the own shard's informer, by cluster or path and name. */
function localOf(...known: readonly string[]): LocalGetter<Named> {
  return ({ cluster, name }) => (known.includes(`${cluster}/${name}`) ? { name: `local ${name}` } : undefined);
}

/** A cache that must not be asked. */
const unasked: Pick<CacheReader, 'get'> = { get: () => Promise.reject(new Error('the cache was asked')) };

test('an object that is there locally is used, and the cache is not asked', async (t) => {
  const lookUp = new LocalThenCache({ local: localOf('acme/one'), cache: unasked, parse });

  t.deepEqual(await lookUp.get(aRef()), { kind: 'found', from: 'local', object: { name: 'local one' } });
  await t.throwsAsync(lookUp.get(aRef({ name: 'two' })), { message: 'the cache was asked' });
});

test('an object that is not there locally comes from the cache, by cluster or by path, with its shard and freshness', async (t) => {
  const server = await aServer(t);
  await (await RawPusher.open(server)).syncWhole(exports, [exportAt('root:org')]);
  const lookUp = new LocalThenCache({ local: localOf('acme/two'), cache: aReader(t, server), parse });

  const byCluster = await lookUp.get(aRef());
  const byPath = await lookUp.get(aRef({ cluster: 'root:org' }));

  for (const found of [byCluster, byPath])
    t.like(found, {
      kind: 'found',
      from: 'cache',
      object: { name: 'one' },
      shard: 'amber',
      freshness: { shard: 'amber', connected: true, whole: true, lagMs: 0 },
    });
});

test('an object that neither has is absent, and the cache says whether its part of the absence is proved', async (t) => {
  const server = await aServer(t);
  await (await RawPusher.open(server)).syncWhole(exports, [pushedExport('one')]);
  const lookUp = new LocalThenCache({ local: localOf(), cache: aReader(t, server), parse });

  t.like(await lookUp.get(aRef({ name: 'none' })), {
    kind: 'absent',
    asked: ['local', 'cache'],
    whole: true,
    shards: [{ shard: 'amber', connected: true, whole: true }],
  });
});

test('after a pusher has left, the cache still answers for its shard, and reports it as not connected', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server);
  await pusher.syncWhole(exports, [pushedExport('one')]);
  const lookUp = new LocalThenCache({ local: localOf(), cache: aReader(t, server, { bounds: { reportAgeMaxMs: 0 } }), parse });

  pusher.socket.terminate();
  let found = await lookUp.get(aRef());
  while (found.kind === 'found' && found.from === 'cache' && found.freshness?.connected !== false) found = await lookUp.get(aRef());

  t.like(found, { kind: 'found', from: 'cache', freshness: { connected: false, whole: true } });
});

test('an ambiguous path is reported as ambiguous', async (t) => {
  const server = await aServer(t);
  await (await RawPusher.open(server)).syncWhole(exports, [exportAt('root:org', 'one', 'acme'), exportAt('root:org', 'one', 'beta')]);
  const lookUp = new LocalThenCache({ local: localOf(), cache: aReader(t, server), parse });

  t.deepEqual(await lookUp.get(aRef({ cluster: 'root:org' })), {
    kind: 'ambiguous',
    message: 'the canonical path "root:org" leads to several logical clusters: acme, beta',
  });
});

test('while the cache is down local objects are still found, and others are a fault', async (t) => {
  const server = await aServer(t);
  const lookUp = new LocalThenCache({ local: localOf('acme/one'), cache: aReader(t, server), parse });
  await server.stop();

  t.like(await lookUp.get(aRef()), { kind: 'found', from: 'local' });
  t.is(await faultOf(t, lookUp.get(aRef({ name: 'two' }))), 'unreachable 0');
});

test('an error of the local getter does not fall through to the cache, unless it is NotFound', async (t) => {
  const failing =
    (message: string): LocalGetter<Named> =>
    () =>
      Promise.reject(new Error(message));
  const isNotFound = (error: unknown): boolean => error instanceof Error && error.message === 'NotFound';
  const cache: Pick<CacheReader, 'get'> = {
    get: () => Promise.resolve({ kind: 'found', shard: 'amber', text: '{"metadata":{"name":"one"}}', freshness: undefined }),
  };

  const broken = new LocalThenCache({ local: failing('broken'), cache, parse, isNotFound });
  const strict = new LocalThenCache({ local: failing('NotFound'), cache, parse });
  const empty = new LocalThenCache({ local: failing('NotFound'), cache, parse, isNotFound });

  await t.throwsAsync(broken.get(aRef()), { message: 'broken' });
  await t.throwsAsync(strict.get(aRef()), { message: 'NotFound' });
  t.like(await empty.get(aRef()), { kind: 'found', from: 'cache' });
});

test('a reference that names nothing, and an aborted call, are refused before anything is looked up', async (t) => {
  const asked: ObjectRef[] = [];
  const lookUp = new LocalThenCache<Named>({ local: (ref) => void asked.push(ref), cache: unasked, parse });

  await t.throwsAsync(lookUp.get(aRef({ name: '' })), { message: /the name/ });
  await t.throwsAsync(lookUp.get(aRef(), AbortSignal.abort(new Error('enough'))), { message: 'enough' });

  t.deepEqual(asked, []);
});

test('a path of any kind is resolved first, and the informer and the cache are asked by the logical cluster it leads to', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server, { name: 'root' });
  await syncPaths(pusher, 'root', {
    clusters: {
      root: { path: 'root', parentless: true },
      acme: { path: 'root:org' },
      v1u4alow0iv9: { path: 'user:alice', parentless: true },
    },
    workspaces: { 'root org': { cluster: 'acme' }, 'root mnt': { url: 'https://mounts.example.com/a' } },
  });
  await pusher.syncWhole(sliceOf('apiexports', { shard: 'root' }), [pushedExport('one'), pushedExport('one', { cluster: 'v1u4alow0iv9' })]);
  const asked: string[] = [];
  const local: LocalGetter<Named> = ({ cluster }) => void asked.push(cluster);
  const { certificate, key } = server.master;
  const paths = openPathResolver({ cache: server.url, identity: { ca: server.certificate, certificate, key } });
  t.teardown(() => paths.close());
  const lookUp = new LocalThenCache({ local, cache: aReader(t, server), paths, parse });

  for (const cluster of ['acme', 'root:org', 'user:alice'])
    t.like(await lookUp.get(aRef({ cluster })), { kind: 'found', from: 'cache', shard: 'root' }, cluster);
  t.deepEqual(asked, ['acme', 'acme', 'v1u4alow0iv9']);
  t.like(await lookUp.get(aRef({ cluster: 'root:org', name: 'none' })), { kind: 'absent', whole: true });
  t.deepEqual(await lookUp.get(aRef({ cluster: 'root:nope' })), { kind: 'unresolved', path: { kind: 'unknown' } });
  t.like(await lookUp.get(aRef({ cluster: 'root:mnt' })), {
    kind: 'unresolved',
    path: { kind: 'mount', url: 'https://mounts.example.com/a' },
  });
  t.is(asked.length, 4, 'an unresolved path is looked up nowhere');

  pusher.socket.terminate();
  await until(async () => {
    const answer = await lookUp.get(aRef({ cluster: 'root:nope' }));
    return answer.kind === 'unresolved' && answer.path.kind === 'uncertain' && answer.path.shards.includes('root');
  });
});

test('an absence is not proved when the path may lead elsewhere by now', async (t) => {
  const cache = {
    get: async () => ({ kind: 'absent', missing: 'object', message: '', whole: true, shards: [], shardsLeftOut: 0 }) as const,
  };
  const paths = (current: boolean) => ({
    resolve: async () =>
      ({
        kind: 'cluster',
        shard: 'amber',
        cluster: 'acme',
        path: 'root:org',
        unavailable: false,
        freshness: [{ shard: 'amber', current, lagMs: 0 }],
      }) as const,
  });
  for (const current of [true, false])
    t.like(await new LocalThenCache({ local: localOf(), cache, paths: paths(current), parse }).get(aRef({ cluster: 'root:org' })), {
      kind: 'absent',
      whole: current,
    });
});

test('a failure to resolve a path is a fault of the cache, not an absence', async (t) => {
  const paths = openPathResolver({ cache: 'https://127.0.0.1:1', identity: { ca: undefined, certificate: '', key: '' } });
  t.teardown(() => paths.close());
  const lookUp = new LocalThenCache({ local: localOf('acme/one'), cache: unasked, paths, parse });
  t.regex(await faultOf(t, lookUp.get(aRef({ cluster: 'root:org' }))), /^(unreachable|unreadable)/);
  t.like(await lookUp.get(aRef()), { kind: 'found', from: 'local' });
});
