/**
 * After `--send-timeout` the server cuts a client that reads nothing, whatever it asked for and
 * over both protocols, and frees its memory. test/lengthy/unread-answers.test.ts measures what such
 * a client costs until then.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';

const large = aPath({ cluster: 'large', name: 'large' });
const everything = aPath({ shard: '*', cluster: '*' });
const asked = [large, everything, `${everything}?watch=true`] as const;
const cutMsMax = 5_000;
const writes = 20;

async function aServerWithMuch(t: ExecutionContext): Promise<TestServer> {
  const server = await aServer(t, { flags: { 'send-timeout': '1s', 'request-timeout': '60s' } });
  const text = 'x'.repeat(2_900_000);
  await server.client().create(aPath({ cluster: 'large' }), anApiExport({ name: 'large' }, { spec: { text } }));
  for (let i = 1; i < 4; i += 1) await server.client().create(aPath({ cluster: `large-${i}` }), anApiExport({}, { spec: { text } }));
  return server;
}

/** `idle`: how many bytes the request for the metrics itself takes. */
async function assertFree(t: ExecutionContext, server: TestServer, idle: number): Promise<void> {
  await until(async () => (await server.metric('strata_buffered_bytes')) <= idle, cutMsMax).catch(() => {});
  t.is(await server.metric('strata_buffered_bytes'), idle);
  t.true((await server.metric('strata_requests_in_flight')) <= 1, `${await server.metric('strata_requests_in_flight')} requests`);
  t.is(await server.metric('strata_watches_open'), 0);
}

test('over HTTP/2 a get, a list and a watch without window are cut after the timeout', async (t) => {
  const server = await aServerWithMuch(t);
  const idle = await server.metric('strata_buffered_bytes');
  const client = await RawHttp2.open({ port: server.port, as: server.master, windowBytes: 0 });
  t.teardown(() => client.destroy());

  const streams = asked.map((path) => client.request('GET', path));
  await client.until(() => streams.every(({ status }) => status === 200), 'the head of each answer');
  await client.until(() => client.isClosed || streams.every(({ isOver }) => isOver), 'an end of each', cutMsMax);

  t.true(streams.every(({ bytes }) => bytes === 0));
  await assertFree(t, server, idle);
});

test('connections that are never read are cut after the timeout, over both protocols', async (t) => {
  const server = await aServerWithMuch(t);
  const idle = await server.metric('strata_buffered_bytes');
  const place = { port: server.port, as: server.master };
  const h2 = await RawHttp2.open({ ...place, windowBytes: 2 ** 31 - 1 });
  const h1 = await Promise.all(asked.map(() => RawHttp1.open(place)));
  t.teardown(() => [h2, ...h1].forEach((client) => client.destroy()));

  h2.stopReading();
  for (const path of asked) h2.request('GET', path);
  h1.forEach((client, at) => {
    client.stopReading();
    client.head('GET', asked[at] ?? large);
  });

  await until(
    async () => (await server.metric('strata_requests_in_flight')) <= 1 && (await server.metric('strata_watches_open')) === 0,
    2 * cutMsMax,
  );
  await assertFree(t, server, idle);
});

test('cutting a stream does not affect the other streams of its connection', async (t) => {
  const server = await aServerWithMuch(t);
  const client = await RawHttp2.open({ port: server.port, as: server.master, windowBytes: 0 });
  t.teardown(() => client.destroy());

  const watch = client.request('GET', `${aPath()}?watch=true`);
  client.windowUpdate(watch.id, 1_000_000);
  const stuck = client.request('GET', large);
  await client.until(() => watch.status === 200 && stuck.status === 200, 'the heads of both');
  await client.until(() => client.isClosed || stuck.isOver, 'an end of the one', cutMsMax);
  await server.client().create(aPath(), anApiExport({ name: 'live' }));
  await client.until(() => client.isClosed || watch.text.includes('"live"'), 'an event for the other', cutMsMax);

  t.false(client.isClosed, 'the connection stays open');
  t.deepEqual(stuck.came, ['headers', 'reset']);
  t.true(watch.text.includes('"live"'));
});

test('a client that reads slowly but steadily is not cut', async (t) => {
  const server = await aServerWithMuch(t);
  const client = await RawHttp2.open({ port: server.port, as: server.master, windowBytes: 100_000, silent: true });
  t.teardown(() => client.destroy());

  const stream = client.request('GET', large);
  for (let at = 0; at < writes; at += 1) {
    await sleep(200);
    client.windowUpdate(0, 200_000);
    client.windowUpdate(stream.id, 200_000);
  }
  await client.answered(stream);

  t.true(stream.isWhole, `it came as ${stream.came.slice(-3).join(', ')} after ${stream.bytes} bytes`);
  t.true(stream.bytes > 2_900_000);
});
