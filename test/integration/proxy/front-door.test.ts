/** The front door over the wire: real clients, real backends, HTTP/1.1 and HTTP/2 on both sides. */
import { setMaxListeners } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { KubeClient } from '../../support/kube-client.js';
import { asked, brokenOff, chunked } from '../../support/proxy/raw-requests.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { TestAuthority } from '../../support/test-authority.js';
import { until, type TestServer } from '../../support/test-server.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import type { Echoed } from '../../support/proxy/echo-backend.js';
import { echoed, sharedInstallation } from './shared-installation.js';

const shared = sharedInstallation();

type SessionCounts = Readonly<{ type: 'server' | 'client'; streamCount: number; framesReceived: number }>;

for (const http2 of [false, true]) {
  const over = http2 ? 'HTTP/2' : 'HTTP/1.1';

  test.serial(`over ${over}, a request reaches the shard of its path with the caller's identity, and otherwise unchanged`, async (t) => {
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

  test.serial(`over ${over}, impersonation headers reach the server that authorizes them, unchanged`, async (t) => {
    const { door } = await shared();
    const headers = { 'impersonate-user': 'bob', 'impersonate-group': 'team', 'impersonate-uid': '7', 'impersonate-extra-a': 'b' };

    for (const target of ['/clusters/root:org/echo', '/clusters/root:org:team/echo', '/services/echo/x'])
      for (const method of ['GET', 'DELETE', 'POST'])
        t.like((await echoed(door, target, { http2, headers, method })).headers, { ...headers, 'x-remote-user': 'cache-client' });
    t.is((await door.client({ http2 }).raw('GET', '/metrics', { headers })).status, 403, 'the front door allows no impersonation');
    if (http2) return;
    const [crowded, named] = ['a:\r\n'.repeat(2_500), 'Connection: close, Impersonate-User\r\n'];
    for (const before of [crowded, named]) {
      const text = await asked(
        door,
        `GET /clusters/root:org/echo HTTP/1.1\r\nHost: x\r\n${before}Impersonate-User: bob\r\nConnection: close\r\n\r\n`,
      );
      // Over HTTP/2 the backend, which is Node, refuses so many headers.
      t.regex(text, before === crowded ? /"impersonate-user":"bob"|^HTTP\/1.1 502 / : /"impersonate-user":"bob"/);
    }
  });

  test.serial(`over ${over}, a path that leads nowhere is answered as kcp’s proxy answers it`, async (t) => {
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
    t.deepEqual([amber.asked, birch.asked], asked, 'no such request reached a backend');
  });

  test.serial(`over ${over}, a watch is passed on line by line, and ended at the backend when its client leaves`, async (t) => {
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

  test.serial(`over ${over}, an answer that the backend breaks off is not whole at the client`, async (t) => {
    const { door } = await shared();
    await t.throwsAsync(door.client({ http2 }).raw('GET', '/clusters/root/half'));
  });

  test.serial(`over ${over}, an answer is whole with the last announced byte, whatever frames arrive together`, async (t) => {
    const { door } = await shared();
    for (let i = 0; i < 40; i += 1) {
      const { text } = await door.client({ http2 }).raw('GET', '/clusters/team1/whole', { timeoutMs: 5_000 });
      t.is(text, '0123456789');
    }
  });

  test.serial(`over ${over}, large answers and bodies pass completely`, async (t) => {
    const { door } = await shared();
    const { text } = await door.client({ http2 }).raw('GET', '/clusters/root/big?bytes=5000000');
    t.is(text.length, 5_000_000);
    const body = 'y'.repeat(3_000_000);
    t.is((await echoed(door, '/clusters/root/echo', { http2, method: 'PUT', body })).body.length, body.length);
  });
}

test.serial('without a certificate the backend gets the token; a certificate of an unknown CA reaches no backend', async (t) => {
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
  t.is((await door.client({ as: stranger }).raw('GET', '/clusters/root:nope/echo')).status, 403, 'the front door resolves the path first');
  t.is(amber.asked, before);
});

test.serial('the token of a service account names the logical cluster for a path without one', async (t) => {
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

test.serial('a backend that speaks only HTTP/1.1 is asked over HTTP/1.1', async (t) => {
  const { door } = await shared(1);
  t.like(await echoed(door, '/clusters/root:org:team/echo', { method: 'POST', body: { a: 1 } }), {
    http: '1.1',
    target: '/clusters/team1/echo',
    body: '{"a":1}',
  });
  t.is((await echoed(door, '/clusters/root:org:team/echo', { headers: { host: 'door.example.com' } })).headers['host'], 'door.example.com');
  await t.throwsAsync(door.client().raw('GET', '/clusters/root:org:team/half'));
});

test.serial('an answer that cannot be passed on ends its request and no other, whatever the backend sends', async (t) => {
  const { door } = await shared(1);
  for (const http2 of [false, true])
    for (const status of ['099', '101', '102', '199', '200', '204', '299', '599', '600', '999', '1000', 'abc']) {
      const answer = await door.client({ http2 }).raw('GET', `/clusters/root:org:team/odd?status=${status}`, { timeoutMs: 10_000 });
      t.is(answer.status, /^[2-5]..$/.test(status) ? Number(status) : 502, status);
      t.like(await echoed(door, '/clusters/root/echo', { http2 }), { target: '/clusters/root/echo' }, status);
    }
});

test.serial('a header with any name passes, and breaks nothing', async (t) => {
  const { door } = await shared();
  for (const http2 of [false, true])
    for (const name of ['constructor', 'toString', 'valueof']) {
      const { headers } = await echoed(door, '/clusters/root/echo', { http2, headers: { [name]: 'x' } });
      t.is(headers[name.toLowerCase()], 'x');
    }
});

for (const speaks of [1, 2] as const) {
  test.serial(`a body belongs to one request, whatever its method, at a backend that speaks HTTP/${speaks}`, async (t) => {
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

  test.serial(`a body arrives whole, whatever frames arrive together, at a backend that speaks HTTP/${speaks}`, async (t) => {
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

  test.serial(`an upload that its client breaks off is never whole at a backend that speaks HTTP/${speaks}`, async (t) => {
    const { door, birch } = await shared(speaks);
    for (const [i, http2] of [false, true].entries()) {
      const before = birch.asked;
      const arrived = () => until(() => birch.asked > before);
      await brokenOff(door, { target: '/clusters/root:org:team/upload', http2, arrived });
      await until(() => birch.uploads.length === i + 1);
    }
    t.deepEqual(birch.uploads.splice(0), ['broken off', 'broken off']);
  });

  test.serial(`any request target reaches a backend that speaks HTTP/${speaks} unchanged`, async (t) => {
    const { door } = await shared(speaks);
    for (const rest of ["?a='b'", '?a=%20|{}', '/x%5c..%5cy/echo', '/%2f../echo'.replace('..', 'z')])
      t.is((await echoed(door, `/clusters/root:org:team/echo${rest}`)).target, `/clusters/team1/echo${rest}`);
  });
}

test.serial('an upload that its client breaks off after the answer is never whole', async (t) => {
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
  'a request that was answered whole is not reset at its backend as well, because servers end connections with many resets',
  async (t) => {
    const { door, amber } = await anInstallation(t);
    const requests = 160;
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

test.serial('a watch by the old /watch/ path may last as long as one by its query', async (t) => {
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

test.serial('many watches leave room for other requests', async (t) => {
  const { door, amber } = await anInstallation(t);
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  t.teardown(() => stop.abort());
  const watch = async (client: KubeClient): Promise<void> => {
    for await (const { type } of client.watch('/clusters/root/watch', { signal: stop.signal })) t.is(type, 'ADDED');
  };
  // On a busy machine some watches find no room in time, and are retried.
  const watchOn = async (client: KubeClient): Promise<void> => {
    while (!stop.signal.aborted) await watch(client).catch(() => setImmediate());
  };
  for (let i = 0; i < 25; i += 1) {
    const client = door.client({ http2: true });
    for (let j = 0; j < 10; j += 1) void watchOn(client);
  }
  await until(() => amber.open.get('watch')?.size === 250);
  t.like(await echoed(door, '/clusters/root/echo'), { target: '/clusters/root/echo' });
  t.true(amber.connections <= 10, `${amber.connections} connections`);
});
