/** Backends that answer before they have the whole request, and clients that never send the rest: nothing of it stays at either end. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../src/clock.js';
import { CacheError } from '../../src/domain/errors.js';
import { Backends, NotSent } from '../../src/proxy/backends.js';
import { sliceOf } from '../support/raw-pusher.js';
import type { TestAuthority } from '../support/test-authority.js';
import { until, type TestServer } from '../support/test-server.js';
import { aShard, anInstallation, type Installation } from './a-front-door.js';
import { connected } from './raw-requests.js';

type Listening = Pick<Server, 'listen' | 'address' | 'close'>;

async function serving(authority: TestAuthority): Promise<{ cert: string; key: string; ca: Buffer; requestCert: true }> {
  const { certificate, key } = await authority.issue({
    user: 'backend',
    groups: [],
    alternativeNames: 'IP:127.0.0.1',
    usage: 'serverAuth',
  });
  return { cert: certificate, key, ca: readFileSync(authority.certificateFile), requestCert: true };
}

async function portOf(t: ExecutionContext, server: Listening): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server as Server, 'listening');
  t.teardown(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Speaks HTTP/1.1 by hand, because no server of Node's answers before it has a request. `open`: its connections. */
async function aRawBackend(t: ExecutionContext, authority: TestAuthority, answer: string): Promise<{ port: number; open: Set<TLSSocket> }> {
  const open = new Set<TLSSocket>();
  const server = createServer({ ...(await serving(authority)), ALPNProtocols: ['http/1.1'] }, (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      if (bytes.includes('\r\n\r\n')) socket.write(answer);
    });
  });
  t.teardown(() => open.forEach((socket) => socket.destroy()));
  return { port: await portOf(t, server), open };
}

async function moveBirch({ pushers, door }: Installation, port: number): Promise<void> {
  const shards = sliceOf('shards', { group: 'core.kcp.io' });
  await pushers.amber.acknowledged(pushers.amber.put(shards, [aShard('birch', `https://127.0.0.1:${port}`)], 'v1alpha1'));
  await until(async () => ![200, 502].includes((await door.client().raw('GET', '/clusters/team1/echo')).status));
}

/** The beginning of an upload; its client goes once it is answered. */
async function givenUp(door: TestServer, status: number): Promise<void> {
  const socket = connected(door);
  let received = '';
  socket.on('data', (bytes: Buffer) => (received += bytes.toString()));
  socket.write('POST /clusters/team1/x HTTP/1.1\r\nHost: door\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n');
  await until(() => received.startsWith(`HTTP/1.1 ${status}`));
  socket.destroy();
}

test.serial(
  'an upload that its client gives up after an early answer leaves no connection to a backend that speaks HTTP/1.1',
  async (t) => {
    const installation = await anInstallation(t);
    const { door } = installation;
    const { port, open } = await aRawBackend(t, door.authority, 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno');
    await moveBirch(installation, port);
    for (let i = 0; i < 5; i += 1) await givenUp(door, 401);
    // One may be kept for the next request.
    await until(() => open.size <= 1, 10_000);
    t.true(open.size <= 1, `${open.size} connections`);
  },
);

test.serial('nor a stream at one that speaks HTTP/2 and has answered without a body', async (t) => {
  const installation = await anInstallation(t);
  const streams = new Set<ServerHttp2Stream>();
  const server = createSecureServer(await serving(installation.door.authority));
  server.on('stream', (stream: ServerHttp2Stream) => {
    streams.add(stream);
    stream.once('close', () => streams.delete(stream));
    stream.on('error', () => {});
    stream.resume();
    stream.respond({ ':status': 204 }, { endStream: true });
  });
  await moveBirch(installation, await portOf(t, server as unknown as Server));
  for (let i = 0; i < 3; i += 1) await givenUp(installation.door, 204);
  await until(() => streams.size === 0, 10_000);
  t.is(streams.size, 0);
});

test.serial('a request that finds every connection to a backend busy is not sent, and is told so in time', async (t) => {
  const { door } = await anInstallation(t);
  const watched = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n';
  const { port } = await aRawBackend(t, door.authority, watched);
  const backends = new Backends({ clock: systemClock }, { socketsMax: 2 });
  t.teardown(() => backends.close());
  const { certificate: cert, key } = door.master;
  const credentials = { ca: readFileSync(door.authority.certificateFile, 'utf8'), cert, key };
  const ask = (signal: AbortSignal) =>
    backends.request(
      { origin: `https://127.0.0.1:${port}`, method: 'GET', target: '/x', headers: {}, body: undefined, lasts: false, signal },
      credentials,
    );
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  for (let i = 0; i < 2; i += 1) t.is((await ask(stop.signal)).status, 200);

  const beganMs = performance.now();
  await t.throwsAsync(ask(stop.signal), { instanceOf: NotSent });
  t.true(performance.now() - beganMs < 10_000);
  const givenUpEarly = new AbortController();
  setTimeout(() => givenUpEarly.abort(new CacheError('the client has gone')), 200);
  await t.throwsAsync(ask(givenUpEarly.signal), { message: 'the client has gone' });
});
