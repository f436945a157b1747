import type { Duplex } from 'node:stream';
import { createServer, type AddressInfo } from 'node:net';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { CacheError } from '../../../src/domain/errors.js';
import { refuseUpgrade } from '../../../src/frames/accept-socket.js';
import { connectSocket, type ClientIdentity } from '../../../src/frames/connect-socket.js';
import type { FrameSocket } from '../../../src/frames/frame-socket.js';
import { UpgradeRefused } from '../../../src/frames/upgrade-refused.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { until } from '../../support/test-server.js';
import { identity, SocketServer, socketOptions } from './a-socket.js';

const never = new AbortController().signal;

function connect(url: string, as: ClientIdentity = identity): Promise<FrameSocket> {
  return connectSocket(url, as, { clock: systemClock, signal: never }, socketOptions);
}

const handshakes: readonly [string, Record<string, string>][] = [
  ['offers no subprotocol', { 'sec-websocket-protocol': '' }],
  ['offers another subprotocol', { 'sec-websocket-protocol': 'strata.v2, v1' }],
  ['names a subprotocol twice', { 'sec-websocket-protocol': 'strata.v1, strata.v1' }],
  ['has no key', { 'sec-websocket-key': '' }],
  ['is of another version', { 'sec-websocket-version': '7' }],
  ['is for something else', { upgrade: 'h2c' }],
];

for (const http2 of [false, true]) {
  for (const [name, headers] of handshakes) {
    test(`an upgrade that ${name} is answered with 400 and a Status, ${http2 ? 'HTTP/2 or not' : 'over HTTPS'}`, async (t) => {
      const server = await SocketServer.open(t, { http2 });

      const raw = await server.raw(t, headers);
      await until(() => raw.closed);

      const [head = '', body = ''] = raw.received.split('\r\n\r\n');
      t.regex(head, /^HTTP\/1\.1 400 Bad Request\r\n/);
      t.is((JSON.parse(body) as { code: number }).code, 400);
      t.deepEqual(server.accepted, []);
    });
  }
}

test('of several subprotocols the server chooses its own, and it declines compression', async (t) => {
  const server = await SocketServer.open(t);

  const raw = await server.raw(t, {
    'sec-websocket-protocol': 'strata.v2, strata.v1',
    'sec-websocket-extensions': 'permessage-deflate; client_max_window_bits',
  });

  t.regex(raw.received, /^HTTP\/1\.1 101 /);
  t.regex(raw.received, /sec-websocket-protocol: strata\.v1\r\n/i);
  t.notRegex(raw.received, /sec-websocket-extensions/i);
});

test('a refused upgrade gives the client the code, the message and when to retry', async (t) => {
  const upgrade = (_: unknown, socket: Duplex): void =>
    refuseUpgrade(socket, 403, JSON.stringify({ kind: 'Status', message: 'not for you', reason: 'Forbidden' }), { 'retry-after': '7' });
  for (const http2 of [false, true]) {
    const server = await SocketServer.open(t, { http2, upgrade });

    const error = await t.throwsAsync(connect(server.url), { instanceOf: UpgradeRefused });

    t.deepEqual([error.httpCode, error.reason, error.message, error.retryAfterMs], [403, 'Forbidden', 'not for you', 7000]);
    await until(() => server.sockets.every(({ destroyed }) => destroyed));
  }
});

test('a client leaves a server that answers an upgrade with endless 1xx responses at once, but tolerates a few', async (t) => {
  const endless = await SocketServer.open(t, { upgrade: (_, socket) => void socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(101)) });

  await t.throwsAsync(connect(endless.url), { instanceOf: CacheError, message: /more than 100 interim responses/ });

  await until(() => endless.sockets.every(({ destroyed }) => destroyed));
  const patient = await SocketServer.open(t, {
    upgrade: (_, socket) => {
      socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100));
      refuseUpgrade(socket, 403, '{}', {});
    },
  });
  await t.throwsAsync(connect(patient.url), { instanceOf: UpgradeRefused });
});

test('when the answer is not a Status, its first 1,024 characters are the message', async (t) => {
  const upgrade = (_: unknown, socket: Duplex): void => refuseUpgrade(socket, 502, 'x'.repeat(100_000));
  const server = await SocketServer.open(t, { upgrade });

  const error = await t.throwsAsync(connect(server.url), { instanceOf: UpgradeRefused });

  t.deepEqual([error.httpCode, error.reason, error.message, error.retryAfterMs], [502, '', 'x'.repeat(1024), undefined]);
});

test('a client does not follow a redirect', async (t) => {
  const elsewhere = await SocketServer.open(t);
  const upgrade = (_: unknown, socket: Duplex): void => refuseUpgrade(socket, 307, '{}', { location: elsewhere.url });
  const server = await SocketServer.open(t, { upgrade });

  const error = await t.throwsAsync(connect(server.url), { instanceOf: UpgradeRefused });

  t.is(error.httpCode, 307);
  t.deepEqual(elsewhere.sockets, []);
});

test('a client that does not read its refusal is still disconnected', async (t) => {
  const upgrade = (_: unknown, socket: Duplex): void => refuseUpgrade(socket, 403, '{}');
  const server = await SocketServer.open(t, { upgrade });

  const raw = await server.raw(t);
  raw.socket.pause();
  await until(() => server.sockets.every(({ destroyed }) => destroyed));

  t.is(server.sockets.length, 1);
});

test('the server must show a trusted certificate for its name', async (t) => {
  const server = await SocketServer.open(t);
  const byName = await connect(server.url, { ...identity, serverName: 'cache.example' });
  t.teardown(() => byName.terminate());

  await t.throwsAsync(connect(server.url, { ...identity, serverName: 'other.example' }), {
    instanceOf: CacheError,
    message: /is for other names/,
  });
  await t.throwsAsync(connect(server.url, { ...identity, ca: undefined }), {
    instanceOf: CacheError,
    message: /is not one that Node trusts/,
  });
  t.is(server.accepted.length, 1);
});

test('a URL without TLS is refused', async (t) => {
  const server = await SocketServer.open(t);

  await t.throwsAsync(connect(server.url.replace('wss:', 'ws:')), { instanceOf: CacheError });
  await t.throwsAsync(connect(server.url.replace('wss:', 'http:')), { instanceOf: CacheError });

  t.deepEqual(server.sockets, []);
});

test('an invalid URL, key or certificate is a fault', async (t) => {
  await t.throwsAsync(connect('cache.example'), { instanceOf: CacheError });
  await t.throwsAsync(connect('wss://127.0.0.1:1/#part'), { instanceOf: CacheError });
  await t.throwsAsync(connect('wss://127.0.0.1:1/', { ...identity, key: 'none' }), { instanceOf: CacheError });
  await t.throwsAsync(connect('wss://127.0.0.1:1/', { ...identity, certificate: 'none' }), { instanceOf: CacheError });
});

test('an unreachable server, and one that does not answer in time, is a fault', async (t) => {
  const silent = createServer();
  t.teardown(() => silent.close());
  const connections: Duplex[] = [];
  silent.on('connection', (socket) => connections.push(socket.on('error', () => {}).resume()));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const url = `wss://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
  const clock = new ManualClock();

  const slow = connectSocket(url, identity, { clock, signal: never }, socketOptions);
  await until(() => connections.length > 0);
  clock.advance(socketOptions.connectTimeoutMs);

  await t.throwsAsync(slow, { instanceOf: CacheError, message: /did not answer within/ });
  t.is(clock.pending, 0);
  await until(() => connections.every(({ destroyed }) => destroyed));
  await t.throwsAsync(connect('wss://127.0.0.1:1/'), { instanceOf: CacheError, message: /ECONNREFUSED/ });
});

test('a client does not wait for the end of an endless refusal', async (t) => {
  const clock = new ManualClock();
  const head = 'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\nbusy';
  const server = await SocketServer.open(t, { upgrade: (_, socket) => void socket.write(head) });

  const connecting = connectSocket(server.url, identity, { clock, signal: never }, socketOptions);
  await until(() => server.sockets.length > 0);
  clock.advance(socketOptions.connectTimeoutMs);

  await t.throwsAsync(connecting, { instanceOf: CacheError });
});

test('an aborted connect leaves no connection open', async (t) => {
  const server = await SocketServer.open(t, { upgrade: () => {} });
  const abort = new AbortController();
  const clock = new ManualClock();

  const connecting = connectSocket(server.url, identity, { clock, signal: abort.signal }, socketOptions);
  await until(() => server.sockets.length > 0);
  abort.abort();

  await t.throwsAsync(connecting, { instanceOf: CacheError, message: /the attempt was canceled/ });
  t.is(clock.pending, 0);
  await t.throwsAsync(connectSocket(server.url, identity, { clock, signal: abort.signal }, socketOptions), { instanceOf: CacheError });
  t.is(server.sockets.length, 1);
});
