/**
 * Where an answer ends, and whether it is complete: backends that end their answers in odd ways,
 * and slow clients.
 */
import { connect, createSecureServer, type ServerHttp2Stream } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server, TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { until, type TestServer } from '../../support/test-server.js';
import { anInstallation, type Installation } from '../../support/proxy/a-front-door.js';
import { aRawBackend, aRawHttp2Backend, moveBirch, type RawStream } from '../../support/proxy/raw-backend.js';
import { portOf, serving } from '../../support/proxy/serving.js';

const path = '/clusters/team1/x';
const bytesSent = 60_000;
const teapot = 'HTTP/1.1 418 No Coffee\r\nContent-Length: 0\r\n\r\n';

function chunked(bytes: number): string {
  const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
  const rest = bytes % 0x1000;
  return `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(Math.floor(bytes / 0x1000))}${rest.toString(16)}\r\n${'x'.repeat(rest)}\r\n0\r\n\r\n`;
}

/** A front door, and behind it an HTTP/1.1 backend that gives this answer. */
async function behind(
  t: ExecutionContext,
  answer: (socket: TLSSocket, reset: () => void) => void,
  flags: Readonly<Record<string, string>> = {},
): Promise<TestServer> {
  const installation = await anInstallation(t, { flags });
  const { door } = installation;
  const { port } = await aRawBackend(t, door.authority, (socket, request, reset) => {
    if (request.includes(path)) answer(socket, reset);
    else socket.write(teapot);
  });
  await moveBirch(installation, port);
  return door;
}

/**
 * `isAsking`: the request has a body that has not ended yet. Returns the bytes received and the
 * reset code.
 */
async function takenSlowly(
  t: ExecutionContext,
  door: TestServer,
  isAsking = false,
): Promise<readonly [bytes: number, code: number | undefined]> {
  const { certificate: cert, key } = door.master;
  const session = connect(door.url, { cert, key, rejectUnauthorized: false, settings: { initialWindowSize: 1_024 } });
  t.teardown(() => session.destroy());
  const stream = session.request({ ':path': path, ':method': isAsking ? 'POST' : 'GET' }, { endStream: !isAsking }).on('error', () => {});
  if (isAsking) stream.write('{');
  await sleep(600);
  let bytes = 0;
  // Reads over many turns: the rest waits while the front door notices the end of the backend's
  // connection.
  for await (const chunk of stream) bytes += (chunk as Buffer).length;
  return [bytes, stream.rstCode];
}

test.serial("a slow client gets the whole of an answer that arrived whole, though the backend's connection is reset", async (t) => {
  const door = await behind(t, (socket, reset) => {
    socket.write(chunked(bytesSent));
    setTimeout(reset, 200);
  });
  t.deepEqual(await takenSlowly(t, door), [bytesSent, 0]);
});

for (const [how, end] of [
  ['closed', ({ socket }) => socket.end()],
  ['closed with GOAWAY', ({ id, goAway, socket }) => (goAway(id, 0), socket.end())],
  ['broken off', ({ socket }) => socket.destroy()],
  ['there, and its stream reset,', ({ reset }) => reset(8)],
] satisfies readonly (readonly [string, (stream: RawStream) => void])[])
  test.serial(`so does one whose backend speaks HTTP/2, when that connection is ${how} before the client reads a byte`, async (t) => {
    const installation = await anInstallation(t);
    const frameBytes = 16_000;
    const frames = 12;
    let answer = (stream: RawStream): void => stream.headers(418, undefined, true);
    await moveBirch(installation, await aRawHttp2Backend(t, installation.door.authority, (stream) => answer(stream)));
    answer = (stream) => {
      stream.headers(200);
      for (let i = 1; i <= frames; i += 1) stream.data('x'.repeat(frameBytes), i === frames);
      setTimeout(end, 200, stream);
    };
    t.deepEqual(await takenSlowly(t, installation.door), [frames * frameBytes, 0]);
    t.is((await takenSlowly(t, installation.door, true))[0], frames * frameBytes, 'also when the request has not ended');
  });

test.serial('an answer that nobody reads within the time of a request is reset, because a part must not look complete', async (t) => {
  const door = await behind(t, (socket) => socket.write(chunked(bytesSent)), { 'request-timeout': '1s', 'headers-timeout': '1s' });
  const client = await RawHttp2.open({ port: door.port, as: door.master, windowBytes: 0 });
  t.teardown(() => client.destroy());
  const stream = client.request('GET', path);
  await sleep(2_500);
  client.windowUpdate(stream.id, bytesSent);
  await client.answered(stream);
  t.is(stream.came.at(-1), 'reset');
});

for (const [what, answer] of [
  ['something else after its length', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcgarbage'],
  ['bytes that a length of 0 does not announce', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nabc'],
  ['a chunk that is none', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n'],
] as const)
  test.serial(`an answer with ${what} ends, and its request does not stay in flight`, async (t) => {
    const door = await behind(t, (socket) => socket.write(answer), { 'request-timeout': '2s', 'headers-timeout': '2s' });
    const client = await RawHttp2.open({ port: door.port, as: door.master });
    t.teardown(() => client.destroy());
    const streams = Array.from({ length: 5 }, () => client.request('GET', path));
    for (const stream of streams) await client.answered(stream, 5_000);
    await until(async () => (await door.metric('strata_requests_in_flight')) === 0, 5_000);
    t.true(streams.every(({ isOver }) => isOver));
  });

test.serial('an answer that is reset right after its headers ends at its client, whenever the reset is noticed', async (t) => {
  const installation = await anInstallation(t);
  const { door } = installation;
  let answer = (stream: RawStream): void => stream.headers(418, undefined, true);
  await moveBirch(installation, await aRawHttp2Backend(t, door.authority, (stream) => answer(stream)));
  answer = (stream) => {
    stream.headers(200);
    if (stream.id % 4 === 1) stream.reset(2);
    else stream.data('x'.repeat(stream.id % 3_000), true);
  };
  const client = await RawHttp2.open({ port: door.port, as: door.master });
  t.teardown(() => client.destroy());
  for (let round = 0; round < 10; round += 1) {
    const streams = Array.from({ length: 50 }, () => client.request('GET', path));
    for (const stream of streams) await client.answered(stream);
    if (streams.some(({ isOver }) => !isOver)) return t.fail(`round ${round}`);
  }
  t.is(await door.metric('strata_requests_in_flight'), 0);
});

test.serial(
  'an answer whose stream is reset without an error before its end is broken off at its client, however much of it has arrived',
  async (t) => {
    const installation = await anInstallation(t);
    const { door } = installation;
    let answer = (stream: RawStream): void => stream.headers(418, undefined, true);
    await moveBirch(installation, await aRawHttp2Backend(t, door.authority, (stream) => answer(stream)));
    const client = await RawHttp2.open({ port: door.port, as: door.master });
    t.teardown(() => client.destroy());
    for (const bytes of [0, 100, 15_000])
      for (const afterMs of [0, 50]) {
        answer = (stream) => {
          stream.headers(200);
          if (bytes > 0) stream.data('x'.repeat(bytes), false);
          setTimeout(() => stream.reset(0), afterMs);
        };
        const stream = client.request('GET', path);
        await client.answered(stream);
        t.is(stream.came.at(-1), 'reset', `${bytes} bytes, reset after ${afterMs} ms`);
      }
    answer = (stream) => {
      stream.headers(200);
      stream.data('x', true);
      stream.reset(0);
    };
    const whole = client.request('POST', path, { ends: false });
    await client.answered(whole);
    t.is(whole.came.at(-1), 'end', 'a server may reset without an error to refuse the rest of a request once it has answered');
  },
);

test.serial('a length that comes with 204 is not passed on, because HTTP/2 does not allow it', async (t) => {
  const door = await behind(t, (socket) => socket.write('HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n'));
  t.is((await door.client({ http2: true }).raw('DELETE', path)).status, 204);
});

/** Puts an HTTP/2 backend behind the front door that never ends a stream. */
async function withoutEnds(t: ExecutionContext, installation: Installation): Promise<Set<ServerHttp2Stream>> {
  const streams = new Set<ServerHttp2Stream>();
  const server = createSecureServer(await serving(installation.door.authority));
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => {});
    const [status, length] = /\?(\d+)-(\d+)$/.exec(String(headers[':path']))?.slice(1).map(Number) ?? [];
    if (status === undefined || length === undefined) {
      stream.respond({ ':status': 418 }, { endStream: true });
      return;
    }
    streams.add(stream);
    stream.once('close', () => streams.delete(stream));
    stream.respond({ ':status': status, ...(status === 200 && { 'content-length': length }) });
    if (headers[':method'] !== 'HEAD') stream.write(Buffer.alloc(length));
  });
  await moveBirch(installation, await portOf(t, server as unknown as Server));
  return streams;
}

test.serial('an answer is whole once it has its length, and leaves no stream at a backend that never ends it', async (t) => {
  const installation = await anInstallation(t);
  const { door } = installation;
  const streams = await withoutEnds(t, installation);
  const client = await RawHttp2.open({ port: door.port, as: door.master });
  t.teardown(() => client.destroy());
  for (const [method, what, length] of [
    ['GET', '200-0', 0],
    ['GET', '200-10', 10],
    ['GET', '200-20000', 20_000],
    ['GET', '200-150000', 150_000],
    ['HEAD', '200-10', 0],
    ['GET', '204-0', 0],
    ['GET', '304-0', 0],
  ] as const) {
    const stream = await client.answered(client.request(method, `${path}?${what}`), 5_000);
    t.deepEqual([stream.bytes, stream.came.at(-1)], [length, 'end'], `${method} ${what}`);
  }
  await until(() => streams.size === 0, 5_000);
  t.is(streams.size, 0);
});
