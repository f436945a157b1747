/**
 * Requests that make Node or Strata throw where nobody catches. Finds one that ends the process, or
 * that gets neither an answer nor the end of its connection. The server is a process of its own,
 * because a crash would end the test.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import { encodeFields } from '../../support/hpack.js';
import { flags, frameTypes, RawHttp2 } from '../../support/raw-http2.js';
import type { As } from '../../support/raw-tls.js';
import { StrataProcess } from '../../support/strata-process.js';
import { aPath } from '../../support/objects.js';
import { aClient } from './http1-requests.js';

/** Below the 100 connections that a cache lets an address have without a certificate. */
const linesAtOnce = 40;

type Asked = Readonly<{ port: number; as: As }>;

let server: StrataProcess;

test.before('start a cache server', async () => {
  server = await StrataProcess.start();
});
test.after.always(() => server[Symbol.asyncDispose]());

async function assertLives(t: ExecutionContext): Promise<void> {
  t.is((await server.client().raw('GET', '/livez')).status, 200);
}

const unversioned = ['GET /livez', 'GET /', 'POST /', `DELETE ${aPath()}`, 'OPTIONS *'];
const versions = ['', ' HTTP/0.9', ' HTTP/1.9', ' HTTP/2.0', ' HTTP/3.0', ' HTTP/1', ' HTTP/1.1.1', ' http/1.1', ' HTTP/9.9'];
const extras = [
  '',
  'expect: 100-continue\r\n',
  'expect: x\r\n',
  'connection: upgrade\r\nupgrade: websocket\r\n',
  'transfer-encoding: chunked\r\n',
];
const lines = unversioned.flatMap((line) => versions.flatMap((version) => extras.map((extra) => `${line}${version}\r\n${extra}\r\n`)));

async function askLines(t: ExecutionContext, { port, as }: Asked): Promise<void> {
  const ask = async (line: string): Promise<void> => {
    const client = await aClient(t, { port, as });
    client.send(line);
    await client.until(() => client.isClosed, `the end after ${JSON.stringify(line)}`);
    t.true(
      client.answers.every(({ status }) => status >= 400),
      line,
    );
  };
  const left = [...lines, 'CONNECT localhost:443 HTTP/2.0\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'];
  while (left.length > 0) await Promise.all(left.splice(0, linesAtOnce).map(ask));
}

for (const isNamed of [false, true])
  test(`a request line of another version than the connection’s is refused, ${isNamed ? 'with' : 'without'} a certificate`, async (t) => {
    await askLines(t, { port: server.port, as: isNamed ? server.master : null });
    const client = await aClient(t, { port: server.port, as: isNamed ? server.master : null });
    client.send('GET /livez HTTP/2.0\r\n\r\n');
    const answer = await client.answer(0);
    t.is(answer?.status, 400);
    t.is(answer?.headers['connection'], 'close');
    await assertLives(t);
  });

test('the front door refuses a request line of another version than the connection’s', async (t) => {
  const { door } = await anInstallation(t);
  await askLines(t, { port: door.port, as: null });
  await askLines(t, { port: door.port, as: door.master });
  t.is((await door.client().raw('GET', '/livez')).status, 200);
});

test('CONNECT over HTTP/2, which has no path, is refused with a 4xx, and is no failure in the log', async (t) => {
  for (const as of [null, server.master]) {
    const client = await RawHttp2.open({ port: server.port, as });
    t.teardown(() => client.destroy());
    const stream = client.begin();
    const fields = encodeFields([
      [':method', 'CONNECT'],
      [':authority', 'localhost:443'],
    ]);
    client.headers(stream.id, fields, { ends: false });
    await client.answered(stream);
    t.true(stream.status >= 400 && stream.status < 500, String(stream.status));
  }
  t.notRegex(await server.log(), /request\.failed/);
});

/** Frames that make the server end a connection while it handles what else arrived on it. */
const ends = {
  'headers that are too long for its caller': [frameTypes.headers, flags.endHeaders, 1, head([['x', 'a'.repeat(9_000)]])],
  'headers that are too long, of a request without a body': [
    frameTypes.headers,
    flags.endHeaders | flags.endStream,
    1,
    head([['x', 'a'.repeat(9_000)]]),
  ],
  'a PING that nobody has sent': [frameTypes.ping, flags.ack, 0, Buffer.alloc(8)],
  'GOAWAY with an error': [frameTypes.goaway, 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1])],
} as const;

for (const [what, end] of Object.entries(ends))
  test(`requests with bodies behind ${what}, in the same write, do not end the process`, async (t) => {
    const client = await RawHttp2.open({ port: server.port });
    t.teardown(() => client.destroy());
    const asked = [1, 2, 3].map(() => client.begin());
    client.frames([
      end,
      ...asked.flatMap(({ id }): Parameters<RawHttp2['frames']>[0] => [
        [frameTypes.headers, flags.endHeaders, id + 2, head()],
        [frameTypes.data, flags.endStream, id + 2, Buffer.from('hello')],
      ]),
    ]);
    await client.until(() => client.isClosed || asked.slice(1).every(({ isOver }) => isOver), 'an end');
    await assertLives(t);
  });

function head(extra: readonly (readonly [string, string])[] = []): Buffer {
  return encodeFields([[':method', 'POST'], [':path', '/healthz'], [':scheme', 'https'], [':authority', 'localhost'], ...extra]);
}
