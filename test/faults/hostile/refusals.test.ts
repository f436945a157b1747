/**
 * A refusal must arrive whole at every stage of a request: a Status and the end of the stream, with
 * no reset before it, whatever happens to the body. The connection then serves another request. A
 * client that never stops sending is cut off after a time.
 *
 * On commit e892933 each refusal over HTTP/2 of a request with an unread body came as RST_STREAM
 * without an end of stream.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeStatus } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import type { Certificate } from '../../support/test-authority.js';
import { TestServer, until } from '../../support/test-server.js';

const mebibyte = 1024 * 1024;
const json = { 'content-type': 'application/json' };
const small = Buffer.from(JSON.stringify(anApiExport()));
const large = Buffer.alloc(5 * mebibyte, 0x20);
/**
 * How much of a body goes out over HTTP/1.1 before the test checks again that the server reads on.
 */
const pieceBytes = 64 * 1024;

type Known = Readonly<{ server: TestServer; amber: Certificate; taken: TestServer }>;

const known: Promise<Known> = (async () => {
  const [server, taken] = await Promise.all([
    TestServer.start({ flags: { 'write-timeout': '2s' } }),
    TestServer.start({ flags: { 'requests-in-flight-max': '1' } }),
  ]);
  const amber = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  return { server, amber, taken };
})();

test.after.always(async () => {
  const { server, taken } = await known;
  await Promise.all([server.close(), taken.close()]);
});

type Refused = Readonly<{
  what: string;
  method: string;
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: Buffer;
  expected: string;
  as?: 'amber' | 'nobody';
  server?: 'taken';
}>;

const refusals: readonly Refused[] = [
  { what: 'a write to all shards', method: 'POST', path: aPath({ shard: '*' }), expected: '400 BadRequest' },
  { what: 'a write to another shard', method: 'POST', path: aPath({ shard: 'birch' }), as: 'amber', expected: '403 Forbidden' },
  { what: 'a write of an anonymous caller', method: 'POST', path: aPath(), as: 'nobody', expected: '403 Forbidden' },
  { what: 'an unknown type', method: 'POST', path: aPath({ resource: 'unknown' }), expected: '404 NotFound' },
  { what: 'a POST to a name', method: 'POST', path: aPath({ name: 'one' }), expected: '405 MethodNotAllowed' },
  {
    what: 'an unknown media type',
    method: 'POST',
    path: aPath(),
    headers: { 'content-type': 'text/plain' },
    expected: '415 UnsupportedMediaType',
  },
  {
    what: 'a server-side apply',
    method: 'PATCH',
    path: aPath({ name: 'one' }),
    headers: { 'content-type': 'application/apply-patch+yaml' },
    expected: '415 UnsupportedMediaType',
  },
  { what: 'one request too many', method: 'POST', path: aPath(), server: 'taken', expected: '429 TooManyRequests' },
];

/** How a body is sent: with its length, without it, or as fast as it is read. */
type Sending = Readonly<{ what: string; body: Buffer; hasLength: boolean }>;

const sendings: readonly Sending[] = [
  { what: 'a small body', body: small, hasLength: true },
  { what: 'a small body without a length', body: small, hasLength: false },
  { what: '5 MiB that keep coming', body: large, hasLength: true },
  { what: '5 MiB that keep coming without a length', body: large, hasLength: false },
];

async function placeOf({ as, server: which }: Refused): Promise<Readonly<{ port: number; as: Certificate | null }>> {
  const { server, amber, taken } = await known;
  const { port, master } = which === 'taken' ? taken : server;
  return { port, as: as === 'amber' ? amber : as === 'nobody' ? null : master };
}

function asStatus(status: number, text: string): string {
  const { kind, reason, code } = JSON.parse(text) as KubeStatus;
  return kind === 'Status' && code === status ? `${status} ${reason}` : `${status} with ${text.slice(0, 100)}`;
}

/** Sends the whole body over HTTP/2; checks the answer, and that the connection goes on. */
async function overHttp2(t: ExecutionContext, refused: Refused, { body, hasLength }: Sending): Promise<void> {
  const client = await RawHttp2.open(await placeOf(refused));
  t.teardown(() => client.destroy());
  const headers = { ...json, ...refused.headers, ...(hasLength ? { 'content-length': String(body.length) } : {}) };

  const stream = client.request(refused.method, refused.path, { headers, ends: false });
  const sent = client.body(stream, body, { stopsWhenOver: false });
  await client.answered(stream);

  t.true(stream.isWhole, `it came as ${stream.came.join(', ')}, reset with ${stream.resetCode}`);
  t.is(asStatus(stream.status, stream.text), refused.expected);
  if (refused.expected.startsWith('429')) t.regex(stream.headers['retry-after'] ?? '', /^\d+$/);
  await sent;
  const next = await client.ask('GET', '/livez');
  t.is(next.status, 200, 'the same connection serves another request');
  t.is(client.goaway, undefined);
  t.true(stream.resetCode === undefined || stream.resetCode === 0, `reset with ${stream.resetCode}`);
}

async function overHttp1(t: ExecutionContext, refused: Refused, { body, hasLength }: Sending): Promise<void> {
  const client = await RawHttp1.open(await placeOf(refused));
  t.teardown(() => client.destroy());

  client.head(refused.method, refused.path, {
    ...json,
    ...refused.headers,
    ...(hasLength ? { 'content-length': String(body.length) } : { 'transfer-encoding': 'chunked' }),
  });
  for (let at = 0; at < body.length && !client.isClosed; at += pieceBytes) {
    const piece = body.subarray(at, at + pieceBytes);
    client.send(hasLength ? piece : Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]));
    await client.drained();
  }
  if (!hasLength) client.send('0\r\n\r\n');
  const answer = await client.answer(0);

  t.truthy(answer, `the connection ended without an answer, after ${client.unread.length} bytes of one`);
  t.is(asStatus(answer?.status ?? 0, answer?.text ?? '{}'), refused.expected);
  if (refused.expected.startsWith('429')) t.regex(answer?.headers['retry-after'] ?? '', /^\d+$/);
  if (answer?.headers['connection'] === 'close') {
    await client.until(() => client.isClosed, 'the end of a connection that announces its close');
    return;
  }
  t.is((await client.ask('GET', '/livez'))?.status, 200, 'the same connection serves another request');
}

/** Takes the only slot of the server `taken` by a request whose body never comes. */
async function takeOnlySlot(t: ExecutionContext): Promise<void> {
  const { taken } = await known;
  const isTaken = async (): Promise<boolean> => (await taken.client().raw('GET', aPath())).status === 429;
  // Waits until the request of the test before is gone.
  await until(async () => !(await isTaken()));
  const slow = await RawHttp1.open({ port: taken.port, as: taken.master });
  t.teardown(() => slow.destroy());
  slow.head('POST', aPath(), { ...json, 'content-length': '1000' });
  await until(isTaken);
}

for (const refused of refusals) {
  test.serial(`${refused.what} gets a whole ${refused.expected} over HTTP/2, however its body comes`, async (t) => {
    if (refused.server === 'taken') await takeOnlySlot(t);
    for (const sending of sendings) await overHttp2(t, refused, sending);
  });

  test.serial(`${refused.what} gets a whole ${refused.expected} over HTTP/1.1, however its body comes`, async (t) => {
    if (refused.server === 'taken') await takeOnlySlot(t);
    for (const sending of sendings) await overHttp1(t, refused, sending);
  });
}

for (const [what, sending] of [
  ['that says its length', { what: '', body: large, hasLength: true }],
  ['without a length', { what: '', body: large, hasLength: false }],
] as const) {
  test.serial(`a body of 5 MiB ${what} gets a whole 413 over both protocols, while it is sent`, async (t) => {
    const refused = { what, method: 'POST', path: aPath(), expected: '413 RequestEntityTooLarge' };

    await overHttp2(t, refused, sending);
    await overHttp1(t, refused, sending);
  });
}

test.serial('a refusal after the body was read arrives whole, over both protocols', async (t) => {
  const unnamed = Buffer.from('{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{}}');
  for (const [body, expected] of [
    [unnamed, '422 Invalid'],
    [Buffer.from('{"a":'), '400 BadRequest'],
  ] as const) {
    for (const hasLength of [true, false]) {
      const refused = { what: '', method: 'POST', path: aPath(), expected };
      await overHttp2(t, refused, { what: '', body, hasLength });
      await overHttp1(t, refused, { what: '', body, hasLength });
    }
  }
});

test.serial('a body that does not come in time gets a whole 504 over both protocols, and over HTTP/2 the connection goes on', async (t) => {
  const { server } = await known;
  const place = { port: server.port, as: server.master };
  const h2 = await RawHttp2.open(place);
  const h1 = await RawHttp1.open(place);
  t.teardown(() => (h2.destroy(), h1.destroy()));

  const stream = h2.request('POST', aPath(), { headers: json, ends: false });
  h2.data(stream.id, Buffer.from('{'));
  h1.head('POST', aPath(), { ...json, 'content-length': '1000' });
  h1.send('{');
  await h2.answered(stream);

  t.true(stream.isWhole, `it came as ${stream.came.join(', ')}`);
  t.is(asStatus(stream.status, stream.text), '504 Timeout');
  t.is((await h2.ask('GET', '/livez')).status, 200);
  const answer = await h1.answer(0);
  t.is(asStatus(answer?.status ?? 0, answer?.text ?? '{}'), '504 Timeout');
});

test.serial('a client that never stops sending after a refusal is cut off in seconds, and its other requests are served', async (t) => {
  const { server } = await known;
  const place = { port: server.port, as: server.master };
  const h2 = await RawHttp2.open(place);
  const h1 = await RawHttp1.open(place);
  t.teardown(() => (h2.destroy(), h1.destroy()));
  const stream = h2.request('POST', aPath({ shard: '*' }), { headers: json, ends: false });
  h1.head('POST', aPath({ shard: '*' }), { ...json, 'transfer-encoding': 'chunked' });
  await Promise.all([h2.answered(stream), h1.answer(0)]);
  t.true(stream.isWhole, `it came as ${stream.came.join(', ')}`);

  const startedMs = performance.now();
  const trickle = (async () => {
    while (performance.now() - startedMs < 20_000 && !(stream.resetCode !== undefined && h1.isClosed)) {
      if (stream.resetCode === undefined) h2.data(stream.id, Buffer.from(' '));
      if (!h1.isClosed) h1.send('1\r\n \r\n');
      await sleep(20);
    }
  })();
  await trickle;

  t.is(stream.resetCode, 0, 'the stream is closed without an error, after its answer');
  t.true(h1.isClosed);
  t.is((await h2.ask('GET', '/livez')).status, 200);
});

test.serial('an HTTP/1.1 request with something that Node ignores is refused as Go refuses it, and writes nothing', async (t) => {
  const { server } = await known;
  const body = JSON.stringify(anApiExport({ name: 'misfit' }));
  const [length, chunked] = [`Content-Length: ${body.length}`, `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`];
  const asked: readonly (readonly [expected: string, heads: readonly string[], sent: string])[] = [
    ['400 BadRequest', ['Host: x', 'Transfer-Encoding: gzip, chunked'], chunked],
    ['400 BadRequest', ['Host: x', 'Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'], chunked],
    ['400 BadRequest', [length], body],
    ['400 BadRequest', ['Host: a', 'Host: b', length], body],
    ['400 BadRequest', ['Host: a', 'host: a', length], body],
    ['417 ExpectationFailed', ['Host: x', 'Expect: 200-maybe', length], body],
    ['417 ExpectationFailed', ['Host: x', 'Expect: 100-continue, 200-maybe', length], body],
    ['417 ExpectationFailed', ['Host: x', 'Expect: 100', length], body],
  ];

  for (const [expected, heads, sent] of asked) {
    const client = await RawHttp1.open({ port: server.port, as: server.master });
    client.send(`POST ${aPath()} HTTP/1.1\r\nContent-Type: application/json\r\n${heads.join('\r\n')}\r\n\r\n${sent}`);
    const answer = await client.answer(0);
    t.is(asStatus(answer?.status ?? 0, answer?.text ?? '{}'), expected, heads.join());
    await client.until(() => client.isClosed, 'the end');
    client.destroy();
  }
  t.is((await server.client().raw('GET', aPath({ name: 'misfit' }))).status, 404);

  const client = await RawHttp1.open({ port: server.port, as: server.master });
  t.teardown(() => client.destroy());
  client.send(`POST ${aPath()} HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nTransfer-Encoding: Chunked\r\n\r\n${chunked}`);
  t.is((await client.answer(0))?.status, 201);
  t.is(client.interim, 1);
  client.send('GET /livez HTTP/1.0\r\n\r\n');
  t.is((await client.answer(1))?.status, 200, 'HTTP/1.0 needs no Host');
});

test.serial(
  'over HTTP/2, another expectation than 100-continue is 417, the connection serves others, and a reset ends nothing',
  async (t) => {
    const { server } = await known;
    const client = await RawHttp2.open({ port: server.port, as: server.master });
    t.teardown(() => client.destroy());

    const stream = client.request('POST', aPath(), { headers: { ...json, expect: '200-maybe' }, ends: false });
    client.data(stream.id, Buffer.from(JSON.stringify(anApiExport({ name: 'expecting' }))), true);
    await client.answered(stream);
    t.is(asStatus(stream.status, stream.text), '417 ExpectationFailed');
    client.socket.cork();
    for (let i = 0; i < 8; i += 1) client.reset(client.request('POST', '/livez', { headers: { expect: 'x' }, ends: false }).id, 0);
    client.socket.uncork();
    t.is((await client.ask('GET', '/livez')).status, 200);
    t.is((await server.client().raw('GET', aPath({ name: 'expecting' }))).status, 404);
  },
);
