/** The front door through the wire: real clients, real backends, HTTP/1.1 and HTTP/2 on both sides. */
import { setMaxListeners } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { KubeClient } from '../../support/kube-client.js';
import { clusterSlice, pushedCluster, pushedWorkspace, workspaceSlice } from '../../support/path-pusher.js';
import { pathEntryVersion } from '../../../src/domain/path-entry.js';
import { RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aRawHttp2Backend, moveBirch } from './raw-backend.js';
import { asked, brokenOff, chunked, connected } from './raw-requests.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { TestAuthority } from '../../support/test-authority.js';
import { until, type TestServer } from '../../support/test-server.js';
import { anInstallation, aShard, type Installation } from '../../support/proxy/a-front-door.js';
import { silentPort, type Echoed } from '../../support/proxy/echo-backend.js';

const closers: (() => unknown)[] = [];
const opened = new Map<1 | 2, Promise<Installation>>();

/** For tests that change nothing of it. */
function shared(birchSpeaks: 1 | 2 = 2): Promise<Installation> {
  const installation = opened.get(birchSpeaks) ?? anInstallation({ teardown: (close) => closers.unshift(close) }, { birchSpeaks });
  opened.set(birchSpeaks, installation);
  return installation;
}

test.after.always('what tests share ends', async () => {
  for (const close of closers) await close();
});

/** Of a session, as Node counts them. */
type SessionCounts = Readonly<{ type: 'server' | 'client'; streamCount: number; framesReceived: number }>;

async function echoed(
  door: TestServer,
  target: string,
  options: Parameters<TestServer['client']>[0] & { headers?: Record<string, string>; body?: unknown; method?: string } = {},
) {
  const { headers = {}, body, method = 'GET', ...client } = options;
  const { status, text } = await door.client(client).raw(method, target, { headers, ...(body !== undefined && { body }) });
  if (status !== 200) throw new Error(`${target}: ${status} ${text}`);
  return JSON.parse(text) as Echoed;
}

for (const http2 of [false, true]) {
  const over = http2 ? 'HTTP/2' : 'HTTP/1.1';

  test.serial(`over ${over}, a request reaches the shard that has its path, with who asks and everything else as it came`, async (t) => {
    const { door } = await shared();
    const user = door.authority.issue({ user: 'alice', groups: ['team', 'system:masters'] });

    const onAmber = await echoed(door, '/clusters/root:org/api/v1/a%2Fb/echo?q=1&q=%20a', {
      http2,
      as: user,
      headers: { 'X-Remote-User': 'root', 'x-custom': 'kept' },
    });
    t.like(onAmber, { http: '2.0', method: 'GET', target: '/clusters/org1/api/v1/a%2Fb/echo?q=1&q=%20a', client: 'front-proxy' });
    t.is(onAmber.headers['x-remote-user'], 'alice');
    t.is(onAmber.headers['x-remote-group'], 'system:authenticated, team');
    t.is(onAmber.headers['x-custom'], 'kept');
    t.is(onAmber.headers['x-forwarded-for'], '127.0.0.1');
    t.is(onAmber.headers['host'], `127.0.0.1:${door.port}`);
    t.regex(String(onAmber.headers['x-remote-extra-authentication.kubernetes.io%2fcredential-id']), /^X509SHA256=[0-9a-f]{64}$/);

    const onBirch = await echoed(door, '/clusters/root:org:team/echo', { http2, as: user, method: 'POST', body: { a: 1 } });
    t.like(onBirch, { method: 'POST', target: '/clusters/team1/echo', body: '{"a":1}' });
    const mapped = await echoed(door, '/services/echo/x/clusters/root:org/echo', { http2, as: user });
    t.is(mapped.target, '/base/services/echo/x/clusters/root:org/echo');
    const { status, headers } = await door.client({ http2, as: user }).raw('GET', '/clusters/root/gone');
    t.is(status, 410);
    t.is(headers['x-from'], 'backend');
  });

  test.serial(`over ${over}, in whose name a request asks reaches the server that decides about that, as it came`, async (t) => {
    const { door } = await shared();
    const headers = { 'impersonate-user': 'bob', 'impersonate-group': 'team', 'impersonate-uid': '7', 'impersonate-extra-a': 'b' };

    for (const target of ['/clusters/root:org/echo', '/clusters/root:org:team/echo', '/services/echo/x'])
      for (const method of ['GET', 'DELETE', 'POST'])
        t.like((await echoed(door, target, { http2, headers, method })).headers, { ...headers, 'x-remote-user': 'cache-client' });
    t.is((await door.client({ http2 }).raw('GET', '/metrics', { headers })).status, 403, 'nobody decides about what is answered here');
    if (http2) return;
    const [crowded, named] = ['a:\r\n'.repeat(2_500), 'Connection: close, Impersonate-User\r\n'];
    for (const before of [crowded, named]) {
      const text = await asked(
        door,
        `GET /clusters/root:org/echo HTTP/1.1\r\nHost: x\r\n${before}Impersonate-User: bob\r\nConnection: close\r\n\r\n`,
      );
      // Node, which plays the backend, takes no such crowd over HTTP/2.
      t.regex(text, before === crowded ? /"impersonate-user":"bob"|^HTTP\/1.1 502 / : /"impersonate-user":"bob"/);
    }
  });

  test.serial(`over ${over}, what leads nowhere is answered as kcp’s proxy answers it`, async (t) => {
    const { door, amber, birch } = await shared();
    const asked = [amber.asked, birch.asked];
    const ask = async (target: string, as: Parameters<TestServer['client']>[0] = {}) => {
      const { status, headers, text } = await door.client({ http2, ...as }).raw('GET', target);
      return { status, headers, text };
    };
    const unknown = await ask('/clusters/root:nope/api/v1/pods?watch=1', { as: null });
    t.is(unknown.status, 403);
    t.is(
      unknown.text,
      '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"forbidden: User \\"\\" cannot get path \\"/clusters/root:nope/api/v1/pods\\": workspace access not permitted","reason":"Forbidden","details":{},"code":403}\n',
    );
    t.is(unknown.headers['x-content-type-options'], 'nosniff');
    for (const target of [
      '/clusters/*/api',
      '/clusters/Root/api',
      '/clusters/system:admin/api',
      '/clusters/root:/api',
      '/services/echo/clusters/root:nope/x',
    ])
      t.is((await ask(target)).status, 403, target);
    t.deepEqual(await ask('/clusters/root:org:off/api').then(({ status, text }) => [status, text]), [503, 'Not available.\n']);
    const redirected = await ask('/clusters/root//api?a=1');
    t.deepEqual([redirected.status, redirected.headers['location']], [307, '/clusters/root/api?a=1']);
    for (const target of ['/clusters/root//api', '/clusters/root/apis/a/.', '/clusters/root/apis/a/..', '/services/echo//x'])
      for (const method of ['DELETE', 'POST', 'PUT', 'PATCH', 'OPTIONS'])
        t.is((await door.client({ http2 }).raw(method, target)).status, 400, `${method} ${target}`);
    for (const target of [
      '/',
      '/api',
      '/clusters',
      '/services/none',
      '/healthz',
      '/services/cache/status',
      '/services/cache/shards/*/clusters/*/apis',
    ])
      t.deepEqual(await ask(target).then(({ status, text }) => [status, text]), [404, '404 page not found\n'], target);
    for (const target of ['/clusters/root/%2e%2e/x', '/services/echo/a%2Fclusters%2Froot/clusters/root:nope/x'])
      t.is((await ask(target)).status, 400, target);
    t.deepEqual([amber.asked, birch.asked], asked, 'no backend heard of any of it');
  });

  test.serial(`over ${over}, a watch is passed on line by line, and given up at the backend when its client goes`, async (t) => {
    const { door, birch } = await shared();
    const stop = new AbortController();
    const names: (string | undefined)[] = [];
    const reading = (async () => {
      for await (const { object } of door.client({ http2 }).watch('/clusters/root:org:team/watch', { signal: stop.signal }))
        names.push(object.metadata.name);
    })();
    await until(() => names.join() === 'begun');
    birch.write('one');
    await until(() => names.join() === 'begun,one');
    stop.abort();
    await reading;
    await until(() => birch.open.get('watch')?.size === 0);
    t.pass();
  });

  test.serial(`over ${over}, an answer of which the backend sends half is no whole answer`, async (t) => {
    const { door } = await shared();
    await t.throwsAsync(door.client({ http2 }).raw('GET', '/clusters/root/half'));
  });

  test.serial(`over ${over}, an answer is whole with the last byte that was announced, however its frames come together`, async (t) => {
    const { door } = await shared();
    for (let i = 0; i < 40; i += 1) {
      const { text } = await door.client({ http2 }).raw('GET', '/clusters/team1/whole', { timeoutMs: 5_000 });
      t.is(text, '0123456789');
    }
  });

  test.serial(`over ${over}, large answers and bodies pass whole`, async (t) => {
    const { door } = await shared();
    const { text } = await door.client({ http2 }).raw('GET', '/clusters/root/big?bytes=5000000');
    t.is(text.length, 5_000_000);
    const body = 'y'.repeat(3_000_000);
    t.is((await echoed(door, '/clusters/root/echo', { http2, method: 'PUT', body })).body.length, body.length);
  });
}

test.serial('without a certificate the backend asks for a token; with one that nobody vouches for nothing is asked at all', async (t) => {
  const { door, amber } = await shared();
  const anonymous = await echoed(door, '/clusters/root/echo', {
    as: null,
    headers: { authorization: 'Bearer token', 'x-remote-user': 'root', 'X-Remote-Group': 'system:masters' },
  });
  t.is(anonymous.headers['authorization'], 'Bearer token');
  t.false(Object.keys(anonymous.headers).some((name) => name.startsWith('x-remote-')));
  const folder = await mkdtemp(join(tmpdir(), 'strata-stranger-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const stranger = new TestAuthority(folder).issue({ user: 'alice', groups: ['system:kcp:admin'] });
  const before = amber.asked;
  t.is((await door.client({ as: stranger }).raw('GET', '/clusters/root/echo')).status, 401);
  t.is((await door.client({ as: stranger }).raw('GET', '/clusters/root:nope/echo')).status, 403, 'where it leads is looked up first');
  t.is(amber.asked, before);
});

test.serial('the token of a service account says in which logical cluster a path without one is', async (t) => {
  const { door } = await shared();
  const token = (claims: unknown): string => `Bearer e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;
  const ask = async (target: string, authorization: string, more: Record<string, string> = {}) =>
    door.client({ as: null }).raw('GET', target, { headers: { authorization, ...more } });
  const bound = token({ 'kubernetes.io': { clusterName: 'team1' } });
  for (const authorization of [bound, token({ 'kubernetes.io/serviceaccount/clusterName': 'team1' })]) {
    const { status, text } = await ask('/api/v1/echo?a=1', authorization);
    t.is(status, 200);
    t.like(JSON.parse(text), { target: '/clusters/team1/api/v1/echo?a=1', headers: { authorization } });
  }
  t.is((await ask('/readyz', bound)).text, 'ok');
  t.is((await ask('/api', bound, { 'X-Kubernetes-Sharded-Request': 'x' })).status, 404);
  t.is((await ask('/clusters/root:nope/api', bound)).status, 403);
  t.is((await ask('/api', token({ 'kubernetes.io': { clusterName: 'nope' } }))).status, 403);
  const others = [
    token({ 'kubernetes.io': { clusterName: '../root' } }),
    token({ 'kubernetes.io': 7 }),
    token('x'),
    'Bearer opaque',
    'Bearer a.b.c',
    'Basic eA==',
  ];
  for (const authorization of others) t.is((await ask('/api', authorization)).status, 404, authorization);
});

test.serial('a backend that speaks HTTP/1.1 alone is asked in that', async (t) => {
  const { door } = await shared(1);
  t.like(await echoed(door, '/clusters/root:org:team/echo', { method: 'POST', body: { a: 1 } }), {
    http: '1.1',
    target: '/clusters/team1/echo',
    body: '{"a":1}',
  });
  t.is((await echoed(door, '/clusters/root:org:team/echo', { headers: { host: 'door.example.com' } })).headers['host'], 'door.example.com');
  await t.throwsAsync(door.client().raw('GET', '/clusters/root:org:team/half'));
});

test.serial('an answer that cannot be passed on ends its request and nothing else, whatever a backend makes up', async (t) => {
  const { door } = await shared(1);
  for (const http2 of [false, true])
    for (const status of ['099', '101', '102', '199', '200', '204', '299', '599', '600', '999', '1000', 'abc']) {
      const answer = await door.client({ http2 }).raw('GET', `/clusters/root:org:team/odd?status=${status}`, { timeoutMs: 10_000 });
      t.is(answer.status, /^[2-5]..$/.test(status) ? Number(status) : 502, status);
      t.like(await echoed(door, '/clusters/root/echo', { http2 }), { target: '/clusters/root/echo' }, status);
    }
});

test.serial('a header of any name passes, and ends nothing', async (t) => {
  const { door } = await shared();
  for (const http2 of [false, true])
    for (const name of ['constructor', 'toString', 'valueof']) {
      const { headers } = await echoed(door, '/clusters/root/echo', { http2, headers: { [name]: 'x' } });
      t.is(headers[name.toLowerCase()], 'x');
    }
});

for (const speaks of [1, 2] as const) {
  test.serial(`a body is the body of one request, whatever its method, at a backend that speaks HTTP/${speaks}`, async (t) => {
    const { door, birch } = await shared(speaks);
    const smuggled = 'GET /clusters/team1/secrets/echo HTTP/1.1\r\nHost: x\r\nX-Remote-User: admin\r\n\r\n';
    for (const http2 of [false, true])
      for (const method of ['GET', 'DELETE', 'OPTIONS', 'POST', 'PUT', 'PATCH']) {
        const before = birch.asked;
        const { body } = await chunked(door, { method, target: '/clusters/root:org:team/echo', body: smuggled, http2 });
        t.is(body, smuggled, method);
        t.is(birch.asked, before + 1, method);
      }
  });

  test.serial(`a body is whole however its frames come together, at a backend that speaks HTTP/${speaks}`, async (t) => {
    const { door } = await shared(speaks);
    const { port, master } = door;
    const client = await RawHttp2.open({ port, as: master });
    t.teardown(() => client.destroy());
    const body = Buffer.from('{"kind":"Namespace"}');
    const ways: Readonly<Record<string, (id: number) => Promise<void>>> = {
      'one frame, which ends': async (id) => client.data(id, body, true),
      'a frame, and an empty one that ends, as Go writes it': async (id) => {
        client.data(id, body);
        client.data(id, Buffer.alloc(0), true);
      },
      'an empty frame that ends, a turn later': async (id) => {
        client.data(id, body);
        await setImmediate();
        client.data(id, Buffer.alloc(0), true);
      },
    };
    for (const [way, write] of Object.entries(ways))
      for (let i = 0; i < 30; i += 1) {
        client.socket.cork();
        const stream = client.request('POST', '/clusters/root:org:team/echo', { ends: false });
        const written = write(stream.id);
        client.socket.uncork();
        await written;
        await client.answered(stream);
        t.is(stream.status, 200, `${way}, the ${i}th time: ${stream.text}`);
        t.is((JSON.parse(stream.text) as Echoed).body, body.toString());
      }
  });

  test.serial(`an upload that its client gives up is never whole at a backend that speaks HTTP/${speaks}`, async (t) => {
    const { door, birch } = await shared(speaks);
    for (const [i, http2] of [false, true].entries()) {
      const before = birch.asked;
      const arrived = () => until(() => birch.asked > before);
      await brokenOff(door, { target: '/clusters/root:org:team/upload', http2, arrived });
      await until(() => birch.uploads.length === i + 1);
    }
    t.deepEqual(birch.uploads.splice(0), ['broken off', 'broken off']);
  });

  test.serial(`what a target holds reaches a backend that speaks HTTP/${speaks} as it came`, async (t) => {
    const { door } = await shared(speaks);
    for (const rest of ["?a='b'", '?a=%20|{}', '/x%5c..%5cy/echo', '/%2f../echo'.replace('..', 'z')])
      t.is((await echoed(door, `/clusters/root:org:team/echo${rest}`)).target, `/clusters/team1/echo${rest}`);
  });
}

test.serial('an upload that is given up once it is answered is never whole', async (t) => {
  const { door, birch } = await anInstallation(t, { birchSpeaks: 1 });
  const client = await RawHttp2.open({ port: door.port, as: door.master });
  t.teardown(() => client.destroy());
  const stream = client.request('POST', '/clusters/root:org:team/upload?early', { ends: false });
  client.data(stream.id, Buffer.from('kind: half of it\n'));
  await client.until(() => stream.text === 'early', 'the answer');
  client.reset(stream.id);
  await until(() => birch.uploads.length === 1);
  t.deepEqual(birch.uploads, ['broken off']);
});

test.serial(
  'a request that was answered whole is not reset at its backend as well: servers end a connection with many resets',
  async (t) => {
    const { door, amber } = await anInstallation(t);
    const requests = 800;
    const received = new Promise<number>((resolve) => {
      const observer = new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
          const { name, detail = {} } = entry as typeof entry & Readonly<{ detail?: Partial<SessionCounts> }>;
          const { type, streamCount = 0, framesReceived = 0 } = detail;
          if (name === 'Http2Session' && type === 'server' && streamCount >= requests) resolve(framesReceived);
        }
      });
      observer.observe({ entryTypes: ['http2'] });
      t.teardown(() => observer.disconnect());
    });
    const client = door.client();
    const lane = async (): Promise<void> => {
      for (let i = 0; i < requests / 16; i += 1) await client.raw('GET', '/clusters/root/echo');
    };
    await Promise.all(Array.from({ length: 16 }, lane));
    amber.disconnect();
    const frames = await received;
    t.log(`${frames} frames for ${requests} requests`);
    t.true(frames < requests * 1.1, String(frames));
  },
);

test.serial('a watch by its old path lasts as one by its query does', async (t) => {
  const { door, amber } = await anInstallation(t, { flags: { 'request-timeout': '1s', 'headers-timeout': '500ms' } });
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const client = door.client({ http2: true });
  let isOver = false;
  const watching = client.raw('GET', '/clusters/root/api/v1/watch/configmaps/watch', { timeoutMs: 60_000 }).catch(() => undefined);
  void watching.then(() => (isOver = true));
  await until(() => amber.open.get('watch')?.size === 1);
  await sleep(3_000);
  t.false(isOver);
  amber.disconnect();
  await watching;
});

test.serial('many watches leave room for requests', async (t) => {
  const { door, amber } = await anInstallation(t);
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  t.teardown(() => stop.abort());
  const watch = async (client: KubeClient): Promise<void> => {
    for await (const { type } of client.watch('/clusters/root/watch', { signal: stop.signal })) t.is(type, 'ADDED');
  };
  for (let i = 0; i < 25; i += 1) {
    const client = door.client({ http2: true });
    for (let j = 0; j < 10; j += 1) void watch(client).catch(() => {});
  }
  await until(() => amber.open.get('watch')?.size === 250);
  t.like(await echoed(door, '/clusters/root/echo'), { target: '/clusters/root/echo' });
  t.true(amber.connections <= 10, `${amber.connections} connections`);
});

test.serial('a backend that cannot be reached is 503, and a client may try again; one that ends the request is 502', async (t) => {
  const silent = await silentPort(t);
  const { door, amber } = await anInstallation(t, { birchUrl: `https://127.0.0.1:${silent}` });
  const startedMs = performance.now();
  const unreached = await door.client().raw('GET', '/clusters/root:org:team/echo');
  t.deepEqual([unreached.status, unreached.headers['retry-after']], [503, '1']);
  t.true(performance.now() - startedMs < 20_000);

  const asked = door.client().raw('GET', '/clusters/root/never');
  await until(() => amber.open.get('never')?.size === 1);
  amber.disconnect();
  const broken = await asked;
  t.deepEqual([broken.status, broken.headers['retry-after']], [502, undefined]);
  t.like(await echoed(door, '/clusters/root/echo'), { target: '/clusters/root/echo' }, 'the next request finds a new connection');
});

test.serial('it serves from disk when everything else is down, and starts so', async (t) => {
  const { door, cache, pushers, restartDoor } = await anInstallation(t);
  for (const { socket } of Object.values(pushers)) socket.terminate();
  await cache.stop();
  t.like(await echoed(door, '/clusters/root:org:team/echo'), { target: '/clusters/team1/echo' });
  const uncertain = await door.client().raw('GET', '/clusters/root:new/api');
  t.deepEqual([uncertain.status, uncertain.headers['retry-after']], [503, '1']);

  const again = await restartDoor();
  t.is((await again.client({ as: null }).raw('GET', '/readyz')).status, 200);
  t.like(await echoed(again, '/clusters/root:org:team/echo'), { target: '/clusters/team1/echo' });
});

test.serial('a change of an entry or of a Shard changes where the next request goes', async (t) => {
  const { door, pushers, birch } = await anInstallation(t);
  await pushers.amber.acknowledged(
    pushers.amber.put(workspaceSlice('root'), [pushedWorkspace('root new', { cluster: 'team1' })], pathEntryVersion),
  );
  await until(async () => (await door.client().raw('GET', '/clusters/root:new/echo')).status === 200);
  await pushers.amber.acknowledged(
    pushers.amber.put(sliceOf('shards', { group: 'core.kcp.io', shard: 'root' }), [aShard('root', birch.url)], 'v1alpha1'),
  );
  const before = birch.asked;
  await until(async () => {
    await echoed(door, '/clusters/root/echo');
    return birch.asked > before;
  });
  await pushers.amber.acknowledged(pushers.amber.delete(workspaceSlice('root'), ['new'], 'root'));
  await until(async () => (await door.client().raw('GET', '/clusters/root:new/echo')).status === 403);
  t.pass();
});

test.serial('a mount at the root of its host is asked there, though nothing follows it', async (t) => {
  const { door, birch, pushers } = await anInstallation(t);
  await pushers.amber.acknowledged(
    pushers.amber.put(workspaceSlice('root'), [pushedWorkspace('org1 mnt', { url: birch.url })], pathEntryVersion),
  );
  await until(async () => (await door.client().raw('GET', '/clusters/root:org:mnt')).status === 200);
  t.is((await echoed(door, '/clusters/root:org:mnt?a=1')).target, '/?a=1');
});

test.serial('only the shard that has root says where shards are', async (t) => {
  const { door, cache, birch, amber } = await anInstallation(t);
  const abel = await RawPusher.open(cache, { name: 'abel' });
  t.teardown(() => abel.socket.terminate());
  await abel.syncWhole(
    sliceOf('shards', { shard: 'abel', group: 'core.kcp.io' }),
    [aShard('root', birch.url), aShard('birch', amber.url)],
    'v1alpha1',
  );
  await until(async () => (await door.client().raw('GET', '/clusters/nowhere')).status === 503);
  const before = birch.asked;
  for (let i = 0; i < 10; i += 1) await echoed(door, '/clusters/root/echo');
  t.is(birch.asked, before);
});

test.serial('a caller with a token may send as much as one with a certificate, and others of its address cost it nothing', async (t) => {
  const { door, amber } = await shared();
  for (const http2 of [false, true]) {
    const authorization = `Bearer ${'x'.repeat(9_000)}`;
    t.is(
      (await echoed(door, '/clusters/root/echo', { as: null, http2, headers: { authorization } })).headers['authorization'],
      authorization,
    );
  }
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const watching = (async () => {
    for await (const _ of door.client({ as: null }).watch('/clusters/root/watch', { signal: stop.signal }));
    return 'ended';
  })();
  await until(() => amber.open.get('watch')?.size === 1);
  for (let i = 0; i < 120; i += 1) t.is((await door.client({ as: null }).raw('GET', '/readyz')).status, 200);
  t.is(amber.open.get('watch')?.size, 1);
  stop.abort();
  await watching;
});

test.serial('a request without a host, or with one that is none, reaches no wrong place', async (t) => {
  const { door } = await shared();
  t.regex(await asked(door, 'GET /clusters/root/echo HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /);
  t.regex(await asked(door, 'GET /clusters/root/echo HTTP/1.1\r\nHost: a b/@\r\nConnection: close\r\n\r\n'), /^HTTP\/1\.1 400 /);
});

test.serial('a mounted Workspace is asked at its URL, whatever follows it in the path', async (t) => {
  const { door, birch, pushers } = await anInstallation(t);
  const url = `${birch.url}/mounted/`;
  await pushers.amber.acknowledged(pushers.amber.put(workspaceSlice('root'), [pushedWorkspace('org1 mnt', { url })], pathEntryVersion));
  await until(async () => (await door.client().raw('GET', '/clusters/root:org:mnt:child/api/echo')).status === 200);
  t.is((await echoed(door, '/clusters/root:org:mnt:child/api/echo?a=1')).target, '/mounted/api/echo?a=1');
});

test.serial('a request of HTTP/1.1 of which Node passes something over is refused as Go refuses it', async (t) => {
  const { door, amber } = await shared();
  const before = amber.asked;
  const get = 'GET /clusters/root:org/echo HTTP/1.1\r\n';
  t.regex(await asked(door, `${get}\r\n`), /^HTTP\/1.1 400 /, 'no Host');
  t.regex(await asked(door, `${get}Host: a\r\nHost: b\r\n\r\n`), /^HTTP\/1.1 400 /);
  t.regex(await asked(door, `${get}Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`), /^HTTP\/1.1 400 /);
  t.regex(await asked(door, `${get}Host: a\r\nExpect: 200-maybe\r\n\r\n`), /^HTTP\/1.1 417 /);
  t.is(amber.asked, before);
});

test.serial('health is for everybody, metrics for who may read, and both are answered here', async (t) => {
  const { door } = await shared();
  const nobody = door.authority.issue({ user: 'nobody', groups: [] });
  const status = async (target: string, as: Parameters<TestServer['client']>[0] = {}) => (await door.client(as).raw('GET', target)).status;
  for (const target of ['/readyz', '/livez', '/readyz?verbose', '/readyz/informer-sync'])
    t.is(await status(target, { as: null }), 200, target);
  t.is(await status('/metrics', { as: null }), 401);
  t.is(await status('/metrics', { as: nobody }), 403);
  t.is(await status('/metrics'), 200);
});

test.serial('a websocket is opened at the backend and passed on both ways; every other upgrade is 502', async (t) => {
  const { door } = await shared();
  const upgraded = async (protocol: string): Promise<string> => {
    const socket = connected(door);
    let received = '';
    socket.on('data', (chunk: Buffer) => (received += String(chunk)));
    socket.write(
      `GET /clusters/root:org/exec HTTP/1.1\r\nHost: door\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\nX-Remote-User: root\r\n\r\n`,
    );
    await until(() => received.includes('\r\n\r\n'));
    socket.write('hello');
    await until(() => received.endsWith('hello') || !received.startsWith('HTTP/1.1 101'));
    socket.destroy();
    return received;
  };
  const opened = await upgraded('websocket');
  t.regex(opened, /^HTTP\/1\.1 101 [^]*x-user: cache-client[^]*\r\n\r\nhello$/i);
  t.regex(await upgraded('SPDY/3.1'), /^HTTP\/1\.1 502 /);
});

test.serial('a client that speaks of two lengths, or of a length and of chunks, is refused before anything is sent', async (t) => {
  const { door, amber } = await shared();
  const before = amber.asked;
  for (const headers of ['Content-Length: 3\r\nTransfer-Encoding: chunked', 'Content-Length: 3\r\nContent-Length: 4']) {
    const socket = connected(door);
    let isOver = false;
    let received = '';
    socket.on('data', (chunk: Buffer) => (received += String(chunk)));
    socket.once('close', () => (isOver = true));
    socket.write(`POST /clusters/root/echo HTTP/1.1\r\nHost: door\r\n${headers}\r\n\r\n0\r\n\r\nabc`);
    await until(() => isOver);
    t.notRegex(received, / 200 /);
  }
  t.is(amber.asked, before);
});

test.serial('a shard that claims root says nothing about where others are, and gets none of their requests', async (t) => {
  const { door, amber, birch, pushers } = await anInstallation(t);
  const both = [aShard('root', birch.url), aShard('birch', birch.url)];
  await pushers.birch.syncWhole(sliceOf('shards', { group: 'core.kcp.io', shard: 'birch' }), both, 'v1alpha1');
  const claim = pushedCluster('root', { path: 'root', parentless: true });
  await pushers.birch.acknowledged(pushers.birch.put(clusterSlice('birch'), [claim], pathEntryVersion));
  // What comes after the claim has come, so has the claim.
  await pushers.amber.acknowledged(
    pushers.amber.put(workspaceSlice('root'), [pushedWorkspace('root later', { cluster: 'org1' })], pathEntryVersion),
  );
  await until(async () => (await door.client().raw('GET', '/clusters/root:later/echo')).status === 200);
  await sleep(500);
  const before = amber.asked;
  for (const path of ['root', 'root:org', 'org1']) t.is((await door.client().raw('GET', `/clusters/${path}/echo`)).status, 200, path);
  t.deepEqual([amber.asked, birch.asked], [before + 3, 0]);
});

test.serial('an answer that nobody reads holds little', async (t) => {
  const { door } = await shared();
  const held = (): Promise<number> => door.metric('strata_buffered_bytes');
  const before = await held();
  const client = await RawHttp2.open({ port: door.port, as: door.master, windowBytes: 0 });
  t.teardown(() => client.destroy());
  const unread = Array.from({ length: 10 }, () => client.request('GET', '/clusters/root/big?bytes=600000'));
  await until(async () => (await held()) > before);
  await sleep(1_000);
  t.true(unread.every(({ status }) => status === 200));
  const each = ((await held()) - before) / unread.length;
  t.log(`${each} bytes each`);
  t.true(each > 16 * 1024 && each <= 64 * 1024, `${each} bytes each`);
  t.is((await door.client().raw('GET', '/clusters/root/big?bytes=600000')).text.length, 600_000, 'others of the connection read on');
});

test.serial('headers that are too long with what the front door adds are refused, and no connection to a shard ends of them', async (t) => {
  const installation = await anInstallation(t);
  const { door } = installation;
  const sockets = new Set<unknown>();
  const port = await aRawHttp2Backend(t, door.authority, (stream) => {
    sockets.add(stream.socket);
    stream.headers(418, undefined, true);
  });
  await moveBirch(installation, port);
  const client = door.client({ http2: true });
  const ask = async (query: string, bytes: number): Promise<number | 'reset'> => {
    const asked = client.raw('GET', `/clusters/team1/x${query}`, { headers: { 'x-long': 'a'.repeat(bytes) } });
    return asked.then(
      ({ status }) => status,
      () => 'reset',
    );
  };

  for (const query of ['', '?watch=1']) {
    t.is(await ask(query, 60_000), 418);
    const before = sockets.size;
    const statuses: (number | 'reset')[] = [];
    for (let bytes = 64_500; bytes <= 65_400; bytes += 50) statuses.push(await ask(query, bytes));
    t.deepEqual([...new Set(statuses)], [418, 431, 'reset'], statuses.join());
    t.is(await ask(query, 1), 418);
    const asked = await client.raw('X'.repeat(64_900), `/clusters/team1/x${query}`).catch(() => undefined);
    t.not(asked?.status, 503);
    t.is(await ask(query, 1), 418);
    t.is(sockets.size, before);
  }
});
