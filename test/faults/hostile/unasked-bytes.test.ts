/**
 * Bytes that cost a peer nothing and ask for nothing. Finds a connection that may bring megabytes
 * of them. Also finds bytes of a request that a watch holds and that do not count for its caller.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { frameTypes, RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';
import { TlsRecords } from '../../support/tls-records.js';
import { aClient, get, post } from './http1-requests.js';

const bytesMax = 64 * 1024 * 1024;
const bytesAtOnce = 256 * 1024;
const framesAtOnce = 1_000;
const windowUpdate = Buffer.from([0, 0, 0, 1]);
const unknownType = 0x42;
const unknownFrame = Buffer.from([0, 0, 1, unknownType, 0, 0, 0, 0, 0, 0]);
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0');
/** Far less than what a connection may bring if bytes count only after decryption. */
const recordBytesMax = 16 * 1024 * 1024;

type Frames = Parameters<RawHttp2['frames']>[0];

const floods: Readonly<Record<string, Frames[number]>> = {
  'PRIORITY of streams that there are not': [frameTypes.priority, 0, 1_000_001, Buffer.from([0, 0, 0, 0, 16])],
  'PRIORITY of a stream that is open': [frameTypes.priority, 0, 1, Buffer.from([0, 0, 0, 0, 16])],
  WINDOW_UPDATE: [frameTypes.windowUpdate, 0, 0, windowUpdate],
  'frames of a type that nobody knows': [unknownType, 0, 0, Buffer.alloc(16_000)],
  'GOAWAY again and again': [frameTypes.goaway, 0, 0, Buffer.alloc(8)],
};

/** Sends until the connection is closed, at most `bytesMax`; resolves with the number of bytes. */
async function bytesUntilCut(client: Readonly<{ isClosed: boolean; socket: Socket }>, sendSome: () => number): Promise<number> {
  let sent = 0;
  while (!client.isClosed && sent < bytesMax) {
    sent += sendSome();
    await new Promise<void>((resolve) => {
      if (!client.socket.writableNeedDrain) return void setImmediate(resolve);
      const done = (): void => {
        clearTimeout(timer);
        client.socket.off('drain', done);
        resolve();
      };
      const timer = setTimeout(done, 100);
      client.socket.once('drain', done);
    });
  }
  return sent;
}

test('a request in TLS records of one byte, between key updates, is answered', async (t) => {
  const server = await aServer(t);
  const client = await TlsRecords.open({ port: server.port, as: server.master }, 'http/1.1');
  t.teardown(() => client.destroy());
  client.updateKeys(10);
  client.sendByteByByte(Buffer.from('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n'));
  client.updateKeys(10);
  t.regex(await client.answer(), /^HTTP\/1\.1 200 /);
});

for (const isNamed of [false, true]) {
  const who = isNamed ? 'with' : 'without';
  for (const [what, frame] of Object.entries(floods))
    test(`a connection that floods with ${what} is ended, ${who} a certificate`, async (t) => {
      const server = await aServer(t);
      const client = await RawHttp2.open({ port: server.port, as: isNamed ? server.master : null });
      t.teardown(() => client.destroy());
      await client.until(() => client.hasServerSettings, 'settings');
      client.request('POST', aPath(), { ends: false });
      const some = Array.from({ length: Math.min(framesAtOnce, Math.ceil(bytesAtOnce / frame[3].length)) }, () => frame);
      const sent = await bytesUntilCut(client, () => {
        client.frames(some);
        return some.reduce((sum, [, , , payload]) => sum + 9 + payload.length, 0);
      });
      await client.until(() => client.isClosed, `the end, after ${sent} bytes`);
      t.pass();
    });

  for (const protocol of ['h2', 'http/1.1'] as const)
    test(`a connection of ${protocol} that brings only key updates, or TLS records of one byte, is ended, ${who} a certificate`, async (t) => {
      const server = await aServer(t);
      const as = isNamed ? server.master : null;
      const empty = await TlsRecords.open({ port: server.port, as }, protocol);
      t.teardown(() => empty.destroy());
      t.true((await bytesUntilCut(empty, () => empty.updateKeys(framesAtOnce))) < recordBytesMax);
      const slow = await TlsRecords.open({ port: server.port, as }, protocol);
      t.teardown(() => slow.destroy());
      // Frames of an unknown type, or empty lines before the first request.
      if (protocol === 'h2') slow.sendByteByByte(preface);
      const asked = Buffer.concat(Array.from({ length: 100 }, () => (protocol === 'h2' ? unknownFrame : Buffer.from('\r\n'))));
      t.true((await bytesUntilCut(slow, () => slow.sendByteByByte(asked))) < recordBytesMax);
    });

  test(`requests with empty chunked bodies do not entitle a connection to key updates without end, ${who} a certificate`, async (t) => {
    // Headers that come byte by byte may take more than 10 s beside twenty floods in one process.
    const server = await aServer(t, { flags: { 'headers-timeout': '60s' } });
    const client = await TlsRecords.open({ port: server.port, as: isNamed ? server.master : null }, 'http/1.1');
    t.teardown(() => client.destroy());
    for (let i = 0; i < 20; i += 1) {
      client.sendByteByByte(Buffer.from('POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n'));
      t.regex(await client.answer(), /^HTTP\/1\.1 4/);
      client.sendByteByByte(Buffer.from('0\r\n\r\n'));
    }
    t.true((await bytesUntilCut(client, () => client.updateKeys(framesAtOnce))) < recordBytesMax);
    t.true(client.isClosed);
  });

  test(`a connection of HTTP/1.1 that brings only empty lines is ended, ${who} a certificate`, async (t) => {
    const server = await aServer(t);
    const client = await aClient(t, { port: server.port, as: isNamed ? server.master : null });
    t.is((await client.ask('GET', '/livez'))?.status, 200);
    const sent = await bytesUntilCut(client, () => {
      client.send('\r\n'.repeat(bytesAtOnce / 2));
      return bytesAtOnce;
    });
    await client.until(() => client.isClosed, `the end, after ${sent} bytes`);
    t.pass();
  });
}

test('a connection that uploads much, in accepted and in refused requests, is not ended', async (t) => {
  const server = await aServer(t, { flags: { 'body-bytes-max': '1MiB' } });
  const client = await aClient(t, { port: server.port, as: server.master });
  for (let i = 0; i < 20; i += 1) {
    client.send(post(`n${i}`, 'x'.repeat(900_000)));
    t.is((await client.answer(2 * i))?.status, 201);
    // Over the bound of a body; the server still reads it to its end.
    client.send(post(`m${i}`, 'x'.repeat(1_200_000)));
    t.is((await client.answer(2 * i + 1))?.status, 413);
  }
  client.send(get('/livez'));
  t.is((await client.answer(40))?.status, 200);
});

async function aReader(t: ExecutionContext) {
  const server = await aServer(t, { flags: { 'buffered-bytes-max': '24MiB' } });
  const client = async (): Promise<RawHttp2> => {
    const opened = await RawHttp2.open({ port: server.port, as: server.master });
    t.teardown(() => opened.destroy());
    await opened.until(() => opened.hasServerSettings, 'settings');
    return opened;
  };
  return { server, client };
}

function watch(client: RawHttp2, headers: Readonly<Record<string, string>> = {}): ReturnType<RawHttp2['request']> {
  return client.request('GET', `${aPath()}?watch=true`, { headers, ends: false });
}

test('long headers of open watches count as buffered bytes of their caller until the watches end', async (t) => {
  const { server, client } = await aReader(t);
  const before = await server.metric('strata_buffered_bytes');
  const long = Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`x-${i}`, 'y'.repeat(4_000)]));
  const open = async (count: number): Promise<{ client: RawHttp2; statuses: number[] }> => {
    const one = await client();
    const streams = Array.from({ length: count }, () => watch(one, long));
    await one.until(() => streams.every(({ status }) => status !== 0), 'answers');
    return { client: one, statuses: streams.map(({ status }) => status) };
  };

  const first = await open(50);
  t.true(first.statuses.every((status) => status === 200));
  t.true((await server.metric('strata_buffered_bytes')) >= before + 50 * 56_000);
  const others = [await open(90), await open(90), await open(90), await open(90)];
  t.true(others.some(({ statuses }) => statuses.includes(429)));
  for (const one of [first, ...others]) one.client.destroy();
  await server.untilNoWatch();
  t.is(await server.metric('strata_buffered_bytes'), before);
});

test('the server drops a body that comes with a watch, and the watch goes on', async (t) => {
  const { server, client } = await aReader(t);
  const one = await client();
  const stream = watch(one);
  await one.until(() => stream.status === 200, 'the watch');
  // Far more than the window of a stream, which the server must give back.
  t.true(await one.body(stream, Buffer.alloc(512 * 1024), { ends: false }));
  await server.client().create(aPath(), anApiExport({ name: 'one' }));
  await one.until(() => stream.text.includes('"one"'), 'the event');
  t.false(stream.isOver);
});

test('a body of some thousand bytes in chunks of one byte is accepted', async (t) => {
  const { server } = await aReader(t);
  const client = await aClient(t, { port: server.port, as: server.master });
  client.head('POST', aPath(), { 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
  const text = JSON.stringify(anApiExport({ name: 'small' }, { spec: { text: 'x'.repeat(2_000) } }));
  client.send(`${[...text].map((byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`);
  t.is((await client.answer(0))?.status, 201);
});

for (const isNamed of [false, true])
  test(`a body without end in pieces of one byte ends its connection, ${isNamed ? 'with' : 'without'} a certificate`, async (t) => {
    const { server } = await aReader(t);
    const as = isNamed ? server.master : null;
    const overHttp1 = await aClient(t, { port: server.port, as });
    overHttp1.head('POST', aPath(), { 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
    await bytesUntilCut(overHttp1, () => {
      overHttp1.send('1\r\n \r\n'.repeat(framesAtOnce));
      return 6 * framesAtOnce;
    });
    t.true(overHttp1.isClosed);

    const overHttp2 = await RawHttp2.open({ port: server.port, as });
    t.teardown(() => overHttp2.destroy());
    const { id } = overHttp2.request('POST', aPath(), { headers: { 'content-type': 'application/json' }, ends: false });
    const pieces = Array.from({ length: framesAtOnce }, (): Frames[number] => [frameTypes.data, 0, id, Buffer.from(' ')]);
    await bytesUntilCut(overHttp2, () => {
      overHttp2.frames(pieces);
      return 10 * framesAtOnce;
    });
    t.true(overHttp2.isClosed);
  });

test('a connection whose handshake brings 100 kB and does not end is closed', async (t) => {
  const server = await aServer(t, { flags: { 'handshake-timeout': '5m' } });
  const socket = connect({ host: '127.0.0.1', port: server.port });
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  // The beginning of a ClientHello of 128,000 bytes, in records of TLS.
  const hello = Buffer.alloc(120_000);
  hello.writeUInt8(1, 0);
  hello.writeUIntBE(128_000, 1, 3);
  for (let at = 0; at < hello.length; at += 12_000) {
    const head = Buffer.from([22, 3, 1, 0, 0]);
    head.writeUInt16BE(12_000, 3);
    socket.write(Buffer.concat([head, hello.subarray(at, at + 12_000)]));
  }
  await once(socket, 'close', { signal: AbortSignal.timeout(30_000) });
  t.is((await server.client().raw('GET', '/livez')).status, 200);
});
