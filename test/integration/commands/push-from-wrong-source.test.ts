/**
 * `strata push` whose kubeconfig leads to a Strata cache or a front proxy instead of a shard must
 * end at once and push nothing.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { push } from '../../../src/commands/push.js';
import { CacheError } from '../../../src/domain/errors.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { exportsOf } from '../../support/test-tree.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { called } from '../../support/commands/called.js';

const exports = 'apiexports.apis.kcp.io';

type Kubeconfig = Readonly<{ server: string; cas: readonly string[]; user: Readonly<Record<string, string>> }>;
type Running = Readonly<{ ended: Promise<unknown>; stop: () => void; printed: () => string }>;

async function kubeconfigOf(t: ExecutionContext, { server, cas, user }: Kubeconfig): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-push-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'kubeconfig');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'x', cluster: { server, 'certificate-authority-data': inBase64(cas.join('')) } }],
    users: [{ name: 'x', user }],
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    'current-context': 'x',
  };
  await writeFile(file, JSON.stringify(config));
  return file;
}

/** A kubeconfig like that of `strata kubeconfig`, but with another path of the cache. */
function kubeconfigFor(t: ExecutionContext, cache: TestServer, path = '/services/cache/shards/*/clusters/*'): Promise<string> {
  const { certificate, key } = cache.master;
  const user = { 'client-certificate-data': inBase64(certificate), 'client-key-data': inBase64(key) };
  return kubeconfigOf(t, { server: `${cache.url}${path}`, cas: [cache.certificate], user });
}

function inBase64(pem: string): string {
  return Buffer.from(pem).toString('base64');
}

/** Runs an agent of amber against the cache until the test ends. */
async function pushing(t: ExecutionContext, cache: TestServer, kubeconfig: string): Promise<Running> {
  const { certificateFile, keyFile } = cache.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const stopped = deferred<string>();
  let printed = '';
  const ended = called(push, {
    flags: {
      kubeconfig,
      'shard-name': 'amber',
      cache: cache.url,
      'cache-ca-file': cache.certificateFile,
      'cert-file': certificateFile,
      'key-file': keyFile,
      'log-level': 'error',
    },
    surroundings: { untilStopped: () => stopped.promise, logStream: new PassThrough().resume(), print: (text) => void (printed += text) },
  });
  const stop = (): void => stopped.resolve('SIGTERM');
  t.teardown(stop);
  return { ended, stop, printed: () => printed };
}

/**
 * The message of the error that ended the agent. An agent that still runs after 15 s is stopped;
 * the result is then ''.
 */
async function whyEnded({ ended, stop }: Running): Promise<string> {
  const late = setTimeout(stop, 15_000);
  try {
    await ended;
    return '';
  } catch (error) {
    if (!(error instanceof CacheError)) throw error;
    return error.message;
  } finally {
    clearTimeout(late);
  }
}

/** A cache to which birch has pushed an APIExport. */
async function aCacheOfBirch(t: ExecutionContext, flags: Readonly<Record<string, string>> = {}): Promise<TestServer> {
  const cache = await aServer(t, { flags });
  const birch = await RawPusher.open(cache, { name: 'birch' });
  t.teardown(() => birch.socket.terminate());
  await birch.syncWhole(sliceOf('apiexports', { shard: 'birch' }), [pushedExport('one')]);
  return cache;
}

async function shardsOf(cache: TestServer): Promise<readonly string[]> {
  const { text } = await cache.client({ http2: false }).raw('GET', '/services/cache/status');
  return (JSON.parse(text) as { shards: readonly { shard: string }[] }).shards.map(({ shard }) => shard);
}

for (const http2 of ['true', 'false'])
  for (const path of ['/services/cache/shards/*/clusters/*', '/services/cache/shards/birch/clusters/acme', '/clusters/acme', ''])
    test(`a cache is refused as a source, and the error says what to do instead: https://…${path}, HTTP/2 ${http2}`, async (t) => {
      const cache = await aCacheOfBirch(t, { http2 });
      const kubeconfig = await kubeconfigFor(t, cache, path);

      const why = await whyEnded(await pushing(t, cache, kubeconfig));

      t.true(why.startsWith(`${kubeconfig}: `), why);
      t.true(why.includes(`is a Strata cache`), why);
      t.true(why.includes(`strata serve --parent-urls=${cache.url}`), why);
      t.deepEqual(await shardsOf(cache), ['birch']);
    });

test('a view of a cache is refused as a source', async (t) => {
  const cache = await aCacheOfBirch(t);
  const kubeconfig = await kubeconfigFor(t, cache, '/services/apiexport/acme/one/clusters/*');

  t.regex(await whyEnded(await pushing(t, cache, kubeconfig)), /is a Strata cache/);
  t.deepEqual(await shardsOf(cache), ['birch']);
});

test('a cache that does not know the caller is refused as a source: every answer of a cache says that it is one', async (t) => {
  const cache = await aCacheOfBirch(t);
  const kubeconfig = await kubeconfigOf(t, { server: cache.url, cas: [cache.certificate], user: { token: 'unknown' } });

  t.regex(await whyEnded(await pushing(t, cache, kubeconfig)), /is a Strata cache/);
});

test('another cache is refused as a source as well', async (t) => {
  const source = await aCacheOfBirch(t);
  const cache = await aServer(t);

  t.regex(await whyEnded(await pushing(t, cache, await kubeconfigFor(t, source))), /is a Strata cache/);
  t.deepEqual(await shardsOf(cache), []);
});

test('a cache behind a front door is refused as a source', async (t) => {
  const { door, cache } = await anInstallation(t, { mapsCache: true });
  const user = { 'client-certificate-data': inBase64(door.master.certificate), 'client-key-data': inBase64(door.master.key) };
  const server = `${door.url}/services/cache/shards/*/clusters/*`;
  const kubeconfig = await kubeconfigOf(t, { server, cas: [door.certificate], user });

  t.regex(await whyEnded(await pushing(t, cache, kubeconfig)), /is a Strata cache/);
});

test('a source that only its version shows to be a cache is refused, because an intermediary may remove headers', async (t) => {
  const cache = await aServer(t);
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  const { text } = await cache.client().raw('GET', '/version');
  shard.instead = ({ pathname }, answer) => {
    if (pathname.endsWith('/version')) answer.end(text);
    return pathname.endsWith('/version');
  };

  t.regex(await whyEnded(await pushing(t, cache, shard.kubeconfig)), /is a Strata cache/);
  t.deepEqual(await shardsOf(cache), []);
});

for (const [what, version] of [
  ['that of kcp', '{"gitVersion":"v1.33.3+kcp-v0.28.1"}'],
  ['no version', '{"gitVersion":7}'],
  ['no JSON', 'strata'],
  ['longer than any', JSON.stringify({ gitVersion: '+strata-'.repeat(10_000) })],
] as const)
  test(`a source whose answer about its version is ${what} is accepted`, async (t) => {
    const cache = await aServer(t);
    const shard = await ShardStandIn.start();
    t.teardown(() => shard.close());
    shard.instead = ({ pathname }, answer) => {
      if (pathname.endsWith('/version')) answer.end(version);
      return pathname.endsWith('/version');
    };
    const agent = await pushing(t, cache, shard.kubeconfig);

    await until(() => /^(\d+) of \1 types synced/m.test(agent.printed()));
    agent.stop();

    t.is(await whyEnded(agent), '');
  });

test('a source that becomes a cache while the agent runs ends the agent, which pushes nothing of it', async (t) => {
  const cache = await aCacheOfBirch(t);
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  shard.store.put(exports, 'root', { metadata: { name: 'own' } });
  const way = await TcpProxy.start(Number(new URL(shard.url).port));
  t.teardown(() => way.close());
  const server = `https://127.0.0.1:${way.port}/clusters/*`;
  const kubeconfig = await kubeconfigOf(t, {
    server,
    cas: [shard.certificate.cert, cache.certificate],
    user: { token: ShardStandIn.token },
  });
  const agent = await pushing(t, cache, kubeconfig);
  await until(() => /^(\d+) of \1 types synced/m.test(agent.printed()));

  way.redirect(cache.port);
  way.cut();

  t.regex(await whyEnded(agent), /is a Strata cache/);
  t.deepEqual(await exportsOf(cache), ['one', 'own']);
});

/** What kcp answers, at a shard and at its front proxy, to a caller outside system:masters. */
const forbidden = JSON.stringify({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  message: 'forbidden: User "kcp-admin" cannot get path "/version": access denied',
  reason: 'Forbidden',
  code: 403,
});

/** A shard that answers every request with 403 and this body. */
async function aForbiddingShard(t: ExecutionContext, body: string): Promise<{ shard: ShardStandIn; asked: () => number }> {
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  let asked = 0;
  shard.instead = (_, answer) => {
    asked += 1;
    answer.writeHead(403, { 'content-type': 'application/json' }).end(body);
    return true;
  };
  return { shard, asked: () => asked };
}

test('a source that forbids reading all logical clusters at once is refused, with the source to use instead', async (t) => {
  const cache = await aServer(t);
  const { shard, asked } = await aForbiddingShard(t, forbidden);

  const why = await whyEnded(await pushing(t, cache, shard.kubeconfig));

  t.true(why.startsWith(`${shard.kubeconfig}: ${shard.url}`), why);
  t.true(why.includes('cannot get path "/version": access denied'), why);
  t.true(why.includes('--context shard-base'), why);
  t.is(asked(), 1);
  t.deepEqual(await shardsOf(cache), []);
});

test('a 403 from an intermediary between the agent and its source does not end the agent', async (t) => {
  const cache = await aServer(t);
  const { shard, asked } = await aForbiddingShard(t, '<h1>403 Forbidden</h1>');
  const agent = await pushing(t, cache, shard.kubeconfig);

  await until(() => asked() > 5);
  agent.stop();

  t.is(await whyEnded(agent), '');
});

test('every answer of a cache says that it came from a cache', async (t) => {
  const cache = await aServer(t);
  const paths = [
    '/version',
    '/readyz',
    '/metrics',
    '/services/cache/status',
    '/nowhere',
    '/services/cache/shards/*/clusters/*/api/v1/nothing',
  ];
  for (const as of [cache.master, null])
    for (const path of paths) {
      const { status, headers } = await cache.client({ as }).raw('GET', path);
      t.is(headers['x-strata-server'], 'cache', `${path}: ${status}`);
    }
  const list = await cache.client().raw('GET', '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports');
  t.is(list.headers['x-strata-server'], 'cache');
});
