/**
 * The server writes changes to a live watch without waiting for its reader. Finds a watch that is
 * not read and not cut off, and a slow one that is cut off or misses an event.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';

const sendTimeoutMs = 1_000;
const cutMsMax = 8_000;
const watch = `${aPath()}?watch=true`;
/** More than a stream holds before it is full, and less than the server sends at once. */
const filling = { spec: { text: 'x'.repeat(100_000) } };
const windowBytes = 16_384;

async function aServerThatCuts(t: ExecutionContext): Promise<TestServer> {
  return await aServer(t, { flags: { 'send-timeout': `${sendTimeoutMs}ms` } });
}

async function live(server: TestServer, watches: number): Promise<void> {
  await until(async () => (await server.metric('strata_watches_open')) === watches);
  await sleep(100);
}

test('over HTTP/2 a live watch whose client reads nothing of one event is cut off after the timeout; another goes on', async (t) => {
  const server = await aServerThatCuts(t);
  const client = await RawHttp2.open({ port: server.port, as: server.master, windowBytes, silent: true });
  t.teardown(() => client.destroy());
  const idle = await server.metric('strata_buffered_bytes');
  const [stuck, reading] = [client.request('GET', watch), client.request('GET', watch)];
  await live(server, 2);
  client.windowUpdate(0, 10_000_000);
  client.windowUpdate(reading.id, 10_000_000);

  await server.client().create(aPath(), anApiExport({ name: 'first' }, filling));
  await client.until(() => client.isClosed || stuck.isOver, 'an end of the one', cutMsMax);
  await server.client().create(aPath(), anApiExport({ name: 'second' }, filling));
  await client.until(() => client.isClosed || reading.text.includes('"second"'), 'an event for the other', cutMsMax);

  t.false(client.isClosed);
  t.is(stuck.came.at(-1), 'reset');
  t.true(stuck.bytes <= windowBytes, `${stuck.bytes} bytes`);
  t.is(await server.metric('strata_watches_open'), 1);
  await until(async () => (await server.metric('strata_buffered_bytes')) <= idle);
});

test('over HTTP/2 a live watch whose client reads each event late, but within the timeout, misses nothing', async (t) => {
  const server = await aServerThatCuts(t);
  const client = await RawHttp2.open({ port: server.port, as: server.master, windowBytes, silent: true });
  t.teardown(() => client.destroy());
  const stream = client.request('GET', watch);
  await live(server, 1);
  client.windowUpdate(0, 10_000_000);

  for (let i = 0; i < 5; i += 1) {
    await server.client().create(aPath(), anApiExport({ name: `n${i}` }, filling));
    await sleep(0.6 * sendTimeoutMs);
    client.windowUpdate(stream.id, 150_000);
  }
  await client.until(() => stream.isOver || stream.text.includes('"n4"'), 'the last event');
  // Longer than the timeout, with nothing to read.
  await sleep(1.5 * sendTimeoutMs);
  await server.client().create(aPath(), anApiExport({ name: 'last' }));
  client.windowUpdate(stream.id, 150_000);
  await client.until(() => stream.isOver || stream.text.includes('"last"'), 'one more');

  t.false(stream.isOver);
  t.deepEqual(
    stream.text
      .split('\n')
      .filter(Boolean)
      .map((line) => (JSON.parse(line) as { object: { metadata: { name: string } } }).object.metadata.name),
    ['n0', 'n1', 'n2', 'n3', 'n4', 'last'],
  );
});

test('over HTTP/1.1 a live watch that is not read is cut off once it holds more than sockets do; another goes on', async (t) => {
  const server = await aServerThatCuts(t);
  const place = { port: server.port, as: server.master };
  const stuck = await RawHttp1.open(place);
  const reading = await RawHttp2.open({ ...place, windowBytes: 2 ** 30 });
  t.teardown(() => [stuck, reading].forEach((client) => client.destroy()));
  stuck.stopReading();
  stuck.head('GET', watch);
  const stream = reading.request('GET', watch);
  reading.windowUpdate(0, 2 ** 30);
  await live(server, 2);

  let events = 0;
  const client = server.client();
  const isOneLeft = async (): Promise<boolean> => (await server.metric('strata_watches_open')) === 1;
  for (const untilMs = Date.now() + cutMsMax; Date.now() < untilMs && !(await isOneLeft()); events += 1)
    await client.create(aPath(), anApiExport({ name: `n${events}` }, filling));

  t.true(await isOneLeft());
  await reading.until(() => stream.isOver || stream.bytes > events * filling.spec.text.length, 'all for the other');
  t.false(stream.isOver);
});
