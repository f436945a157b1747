/**
 * How watches begin and end on the wire, and how the server stops. Bookmarks, timeouts, and the
 * bounds of requests and watches.
 */
import { test } from '../../support/test.js';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeStatus } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { aServer, hurried, until, type TestServer } from '../../support/test-server.js';

function tlsOf({ port, master }: TestServer): { host: string; port: number; cert: string; key: string; rejectUnauthorized: false } {
  return { host: '127.0.0.1', port, cert: master.certificate, key: master.key, rejectUnauthorized: false };
}

async function aSession(server: TestServer): Promise<ClientHttp2Session> {
  const session = connectHttp2(server.url, tlsOf(server));
  session.on('error', () => {});
  await once(session, 'connect');
  return session;
}

async function anHttp1(server: TestServer, text: string): Promise<{ socket: TLSSocket; read: () => string; closed: () => boolean }> {
  const socket = connectTls(tlsOf(server));
  let read = '';
  let closed = false;
  socket.on('data', (chunk: Buffer) => (read += chunk.toString()));
  socket.on('error', () => {});
  socket.on('close', () => (closed = true));
  await once(socket, 'secureConnect');
  socket.write(text);
  return { socket, read: () => read, closed: () => closed };
}

const watchPath = `${aPath()}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`;
const httpWatch = (path = watchPath): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

test('a stop sends GOAWAY before it ends the streams of HTTP/2, all without an error', async (t) => {
  const server = await aServer(t);
  const session = await aSession(server);
  const order: string[] = [];
  session.on('goaway', (code) => order.push(`goaway ${code}`));
  const streams = [0, 1].map(() => session.request({ ':path': watchPath }));
  for (const stream of streams) {
    stream.on('data', () => {});
    stream.on('end', () => order.push('end'));
    stream.on('close', () => order.push(`close ${stream.rstCode}`));
  }
  await Promise.all(streams.map((stream) => once(stream, 'response')));

  const startedMs = performance.now();
  await server.stop();

  await until(() => order.length === 5);
  t.is(order[0], 'goaway 0');
  t.deepEqual(order.slice(1).toSorted(), ['close 0', 'close 0', 'end', 'end']);
  t.true(performance.now() - startedMs < 10_000);
});

test('a stop ends a watch of HTTP/1.1 with its last chunk, then closes; an idle connection closes at once', async (t) => {
  const server = await aServer(t);
  const [watch, idle] = [await anHttp1(server, httpWatch()), await anHttp1(server, '')];
  await until(() => watch.read().includes('BOOKMARK'));

  await server.stop();

  await until(() => watch.closed() && idle.closed());
  t.true(watch.read().endsWith('\r\n0\r\n\r\n'));
});

test('a server that stops finishes a write in progress and accepts no new connection', async (t) => {
  const server = await aServer(t);
  const body = JSON.stringify(anApiExport());
  const write = await anHttp1(server, `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 20)}`);
  await until(async () => (await server.metric('strata_requests_in_flight')) === 2);

  const stopped = server.stop();
  await sleep(20);
  write.socket.write(body.slice(20));
  await until(() => write.read().includes('\r\n\r\n'));
  await stopped;

  t.regex(write.read(), /^HTTP\/1\.1 201 /);
  await t.throwsAsync(anHttp1(server, ''), { code: 'ECONNREFUSED' });
});

test('timeoutSeconds ends a watch cleanly at that time, with a bookmark before it', async (t) => {
  const server = await aServer(t, { clock: hurried(4) });
  const session = await aSession(server);
  t.teardown(() => session.destroy());
  await server.client().create(aPath(), anApiExport());

  const startedMs = performance.now();
  const stream = session.request({ ':path': `${watchPath}&timeoutSeconds=4` });
  let text = '';
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await once(stream, 'end');

  const types = text.trim().split('\n').map((line) => (JSON.parse(line) as { type: string }).type); // prettier-ignore
  t.deepEqual(types, ['ADDED', 'BOOKMARK', 'BOOKMARK']);
  t.is(stream.rstCode, 0);
  const tookMs = performance.now() - startedMs;
  t.true(tookMs > 900 && tookMs < 10_000, String(tookMs));
  await server.untilNoWatch();
});

test('the headers of a watch come before the first event', async (t) => {
  const server = await aServer(t);

  const watch = await anHttp1(
    server,
    httpWatch(`${aPath()}?watch=true&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan`),
  );
  t.teardown(() => watch.socket.destroy());

  await until(() => watch.read().includes('\r\n\r\n'));
  t.regex(watch.read(), /^HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)*content-type: application\/json\r\n/i);
  t.true(watch.read().endsWith('\r\n\r\n'));
});

test('a watch whose client disconnects is closed, however it disconnects', async (t) => {
  const server = await aServer(t);
  await server.client().create(aPath(), anApiExport());
  const [session, gone] = [await aSession(server), await anHttp1(server, httpWatch())];
  const streams = Array.from({ length: 20 }, () => session.request({ ':path': watchPath }));
  for (const stream of streams) stream.on('error', () => {});
  await Promise.all(streams.map((stream) => once(stream, 'response')));
  t.is(await server.metric('strata_watches_open'), 21);

  for (const stream of streams.slice(0, 10)) stream.close(8);
  await until(async () => (await server.metric('strata_watches_open')) === 11);
  session.destroy();
  gone.socket.destroy();

  await server.untilNoWatch();
  t.deepEqual(
    server.logged.filter(({ level }) => level === 'error'),
    [],
  );
});

test('a watch whose client disconnected before it could begin does not begin, because nobody would ever end it', async (t) => {
  const server = await aServer(t, { flags: { 'synthetic-delay': '300ms', 'requests-in-flight-max': '3' } });
  const session = await aSession(server);
  for (const path of [watchPath, aPath(), `${watchPath}&resourceVersion=1`]) {
    const stream = session.request({ ':path': path });
    stream.on('error', () => {});
    await sleep(20);
    stream.close(8);
  }
  const h1 = await anHttp1(server, httpWatch());
  await sleep(20);
  h1.socket.destroy();

  await sleep(600);

  t.is(await server.metric('strata_watches_open'), 0);
  t.is((await server.client().raw('GET', aPath())).status, 200);
  session.destroy();
});

test('watches beyond the maximum are answered 429 with a time to retry, and a closed one makes room', async (t) => {
  const server = await aServer(t, { flags: { 'open-watches-max': '2' } });
  const client = server.client();
  const watches = await Promise.all([0, 1].map(() => anHttp1(server, httpWatch())));
  await until(() => watches.every((watch) => watch.read().includes('BOOKMARK')));

  const refused = await client.raw('GET', watchPath);

  t.is(refused.status, 429);
  t.is(refused.headers['retry-after'], '1');
  t.like(JSON.parse(refused.text) as KubeStatus, { reason: 'TooManyRequests', details: { retryAfterSeconds: 1 } });
  watches[0]?.socket.destroy();
  await until(async () => (await server.metric('strata_watches_open')) === 1);
  t.is((await client.raw('GET', `${watchPath}&timeoutSeconds=1`)).status, 200);
  for (const { socket } of watches) socket.destroy();
});

test('requests beyond the maximum are answered 429; watches and health do not count, and nothing is counted twice', async (t) => {
  const server = await aServer(t, { flags: { 'requests-in-flight-max': '2' } });
  const client = server.client();
  const watches = await Promise.all([0, 1, 2].map(() => anHttp1(server, httpWatch())));
  await until(() => watches.every((watch) => watch.read().includes('BOOKMARK')));
  const slow = await Promise.all([0, 1].map(() => anHttp1(server, `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{`)));
  await sleep(50);

  const refused = await client.raw('GET', aPath());
  t.is(refused.status, 429);
  t.is(refused.headers['retry-after'], '1');
  t.is((await client.raw('GET', '/readyz')).status, 200);
  for (const { socket } of slow) socket.destroy();
  await until(async () => (await client.raw('GET', aPath())).status === 200);
  for (let i = 0; i < 10; i++)
    for (const path of [aPath({ resource: 'none' }), aPath({ name: 'none' }), '/shards/BAD', aPath()])
      t.not((await client.raw('GET', path)).status, 429);
  for (const { socket } of watches) socket.destroy();
});

test('writes beyond the queue are answered 429, and none of them is stored', async (t) => {
  const server = await aServer(t, { flags: { 'queue-mutations-max': '1', 'commit-mutations-max': '1' } });
  const client = server.client({ http2: true });

  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, i) => client.raw('POST', aPath(), { body: anApiExport({ name: `n${i}` }) })),
  );

  const stored = answers.filter(({ status }) => status === 201).length;
  const refused = answers.filter(({ status }) => status === 429);
  t.is(stored + refused.length, 60);
  t.true(refused.length > 0);
  t.true(refused.every(({ headers }) => headers['retry-after'] === '1'));
  t.is((await client.list(aPath())).items.length, stored);
});

test('a synthetic delay delays a request', async (t) => {
  const server = await aServer(t, { flags: { 'synthetic-delay': '200ms' } });
  const startedMs = performance.now();

  t.is((await server.client().raw('GET', '/readyz')).status, 200);

  t.true(performance.now() - startedMs > 190);
});

test('a request that takes too long loses its connection, a watch does not', async (t) => {
  const server = await aServer(t, { clock: hurried(100), flags: { 'request-timeout': '60s', 'write-timeout': '34s' } });
  const watch = await anHttp1(server, httpWatch(`${watchPath}&timeoutSeconds=3600`));
  const session = await aSession(server);
  const slow = session.request({ ':method': 'POST', ':path': aPath() });
  slow.on('error', () => {});
  slow.write('{');
  // The client must read the answer with the reason, because otherwise it would not see the end
  // after it.
  slow.resume();

  await once(slow, 'close');

  await sleep(300);
  t.false(watch.closed());
  watch.socket.destroy();
  session.destroy();
});

test('a reader that reads nothing is disconnected soon after its watch has ended, even if little is left', async (t) => {
  const server = await aServer(t, { clock: hurried(20) });
  const session = connectHttp2(server.url, { ...tlsOf(server), settings: { initialWindowSize: 1000 } });
  session.on('error', () => {});
  await once(session, 'connect');
  await server.client().create(aPath(), anApiExport({}, { spec: { text: 'x'.repeat(3000) } }));
  const stream = session.request({ ':path': `${watchPath}&timeoutSeconds=2` });
  stream.on('error', () => {});
  await once(stream, 'response');
  stream.pause();

  await server.untilNoWatch();

  await until(() => stream.closed, 3_000);

  t.false(session.closed);
  session.destroy();
});

test('an idle HTTP/2 connection is closed, one with a quiet watch is not', async (t) => {
  const server = await aServer(t, { flags: { 'keep-alive-timeout': '1s' } });
  const [idle, used] = [await aSession(server), await aSession(server)];
  const stream = used.request({ ':path': `${aPath()}?watch=true` });
  stream.on('data', () => {});
  let closed = false;
  idle.on('close', () => (closed = true));

  await until(() => closed, 4_000);

  await sleep(500);
  t.false(used.destroyed);
  t.is(await server.metric('strata_watches_open'), 1);
  used.destroy();
});
