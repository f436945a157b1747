/**
 * Backends that answer before they have the whole request, and clients that never send the rest:
 * neither end must keep a connection or a stream for it.
 */
import { readFileSync } from 'node:fs';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import type { Server } from 'node:tls';
import { endlessMemory } from '../../support/an-exchange.js';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { CacheError } from '../../../src/domain/errors.js';
import { NotSent } from '../../../src/proxy/backend-requests.js';
import { Backends } from '../../../src/proxy/backends.js';
import { until, type TestServer } from '../../support/test-server.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import { aRawBackend, moveBirch } from '../../support/proxy/raw-backend.js';
import { connected } from '../../support/proxy/raw-requests.js';
import { portOf, serving } from '../../support/proxy/serving.js';

/** Begins an upload; the client leaves once it is answered. */
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
    const { port, open } = await aRawBackend(t, door.authority, (socket) =>
      socket.write('HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno'),
    );
    await moveBirch(installation, port);
    for (let i = 0; i < 5; i += 1) await givenUp(door, 401);
    // One connection may be kept for the next request. For a client that stays, the front door cuts
    // it after 30 s.
    await until(() => open.size <= 1, 20_000);
    t.true(open.size <= 1, `${open.size} connections`);
  },
);

test.serial('an upload given up after an early answer leaves no stream at a backend that speaks HTTP/2', async (t) => {
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
  await until(() => streams.size === 0, 20_000);
  t.is(streams.size, 0);
});

test.serial('a request that finds every connection to a backend busy is refused in time, and not sent', async (t) => {
  const { door } = await anInstallation(t);
  const watched = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n';
  const { port } = await aRawBackend(t, door.authority, (socket) => socket.write(watched));
  const backends = new Backends({ clock: systemClock }, { socketsMax: 2 });
  t.teardown(() => backends.close());
  const { certificate: cert, key } = door.master;
  const credentials = { ca: readFileSync(door.authority.certificateFile, 'utf8'), cert, key };
  const ask = (signal: AbortSignal) =>
    backends.request(
      {
        origin: `https://127.0.0.1:${port}`,
        method: 'GET',
        target: '/x',
        headers: {},
        body: undefined,
        bodyPassed: () => {},
        lasts: false,
        unread: endlessMemory,
        signal,
      },
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
