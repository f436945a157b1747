/**
 * Where the front door sends a request, which requests it refuses first, and what it does when
 * others are down. Real clients, real backends.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { clusterSlice, pushedCluster, pushedWorkspace, workspaceSlice } from '../../support/path-pusher.js';
import { pathEntryVersion } from '../../../src/domain/path-entry.js';
import { RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aRawHttp2Backend, moveBirch } from '../../support/proxy/raw-backend.js';
import { asked, connected } from '../../support/proxy/raw-requests.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { until, type TestServer } from '../../support/test-server.js';
import { anInstallation, aShard } from '../../support/proxy/a-front-door.js';
import { silentPort } from '../../support/proxy/echo-backend.js';
import { echoed, sharedInstallation } from './shared-installation.js';

const shared = sharedInstallation();

test.serial('an unreachable backend is 503, and a client may retry; a backend that breaks off the request is 502', async (t) => {
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
  t.like(await echoed(door, '/clusters/root/echo'), { target: '/clusters/root/echo' }, 'the next request opens a new connection');
});

test.serial('it serves from its disk when everything else is down, even after a start', async (t) => {
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

test.serial('a change of an entry or of a Shard redirects the next request', async (t) => {
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

test.serial('a mount at the root of its host is requested as / when nothing follows its path', async (t) => {
  const { door, birch, pushers } = await anInstallation(t);
  await pushers.amber.acknowledged(
    pushers.amber.put(workspaceSlice('root'), [pushedWorkspace('org1 mnt', { url: birch.url })], pathEntryVersion),
  );
  await until(async () => (await door.client().raw('GET', '/clusters/root:org:mnt')).status === 200);
  t.is((await echoed(door, '/clusters/root:org:mnt?a=1')).target, '/?a=1');
});

test.serial('only the shard that has root decides where shards are', async (t) => {
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

test.serial('a caller with a token may send as much as one with a certificate, and others at its address do not slow it', async (t) => {
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

test.serial('a request without a host is served, and one with an invalid host is 400', async (t) => {
  const { door } = await shared();
  t.regex(await asked(door, 'GET /clusters/root/echo HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /);
  t.regex(await asked(door, 'GET /clusters/root/echo HTTP/1.1\r\nHost: a b/@\r\nConnection: close\r\n\r\n'), /^HTTP\/1\.1 400 /);
});

test.serial('a request below a mounted Workspace goes to its URL, with the rest of the path', async (t) => {
  const { door, birch, pushers } = await anInstallation(t);
  const url = `${birch.url}/mounted/`;
  await pushers.amber.acknowledged(pushers.amber.put(workspaceSlice('root'), [pushedWorkspace('org1 mnt', { url })], pathEntryVersion));
  await until(async () => (await door.client().raw('GET', '/clusters/root:org:mnt:child/api/echo')).status === 200);
  t.is((await echoed(door, '/clusters/root:org:mnt:child/api/echo?a=1')).target, '/mounted/api/echo?a=1');
});

test.serial('an HTTP/1.1 request with parts that Node ignores is refused as Go refuses it', async (t) => {
  const { door, amber } = await shared();
  const before = amber.asked;
  const get = 'GET /clusters/root:org/echo HTTP/1.1\r\n';
  t.regex(await asked(door, `${get}\r\n`), /^HTTP\/1.1 400 /, 'no Host');
  t.regex(await asked(door, `${get}Host: a\r\nHost: b\r\n\r\n`), /^HTTP\/1.1 400 /);
  t.regex(await asked(door, `${get}Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`), /^HTTP\/1.1 400 /);
  t.regex(await asked(door, `${get}Host: a\r\nExpect: 200-maybe\r\n\r\n`), /^HTTP\/1.1 417 /);
  t.is(amber.asked, before);
});

test.serial('everybody may read health, only readers may read metrics, and the front door answers both itself', async (t) => {
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

test.serial('a client that sends two lengths, or a length and chunks, is refused before anything reaches a backend', async (t) => {
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

test.serial('a shard that claims root does not decide where other shards are, and gets none of their requests', async (t) => {
  const { door, amber, birch, pushers } = await anInstallation(t);
  const both = [aShard('root', birch.url), aShard('birch', birch.url)];
  await pushers.birch.syncWhole(sliceOf('shards', { group: 'core.kcp.io', shard: 'birch' }), both, 'v1alpha1');
  const claim = pushedCluster('root', { path: 'root', parentless: true });
  await pushers.birch.acknowledged(pushers.birch.put(clusterSlice('birch'), [claim], pathEntryVersion));
  // This change was sent after the claim, so once it shows, the claim has arrived.
  await pushers.amber.acknowledged(
    pushers.amber.put(workspaceSlice('root'), [pushedWorkspace('root later', { cluster: 'org1' })], pathEntryVersion),
  );
  await until(async () => (await door.client().raw('GET', '/clusters/root:later/echo')).status === 200);
  await sleep(500);
  const before = amber.asked;
  for (const path of ['root', 'root:org', 'org1']) t.is((await door.client().raw('GET', `/clusters/${path}/echo`)).status, 200, path);
  t.deepEqual([amber.asked, birch.asked], [before + 3, 0]);
});

test.serial('an answer that nobody reads takes at most 64 KiB', async (t) => {
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
  t.is((await door.client().raw('GET', '/clusters/root/big?bytes=600000')).text.length, 600_000, 'other streams continue');
});

test.serial('headers that the front door makes too long are refused, and end no connection to a shard', async (t) => {
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
