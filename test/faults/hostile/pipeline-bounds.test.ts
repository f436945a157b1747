/**
 * HTTP/1.1: a few requests may wait behind the one that is being answered. Finds a connection that
 * may bring more, and requests on it that cost the server memory.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { once } from 'node:events';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import { aClient, get, post } from './http1-requests.js';
import { aPath } from '../../support/objects.js';
import { residentMiB, residentMiBDuring } from '../../support/process-figures.js';
import type { RawHttp1 } from '../../support/raw-http1.js';
import type { As, Place } from '../../support/raw-tls.js';
import { StrataProcess } from '../../support/strata-process.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';

/** So many requests may wait behind the one that is being answered. */
const waitingMax = 32;
/** A server without the bound took 660 MiB more. */
const moreMiBMax = 200;

/** Sends all bytes; resolves once the server has closed the connection. */
async function flood(t: ExecutionContext, place: Place, bytes: string): Promise<void> {
  const client = await aClient(t, place);
  client.send(bytes);
  await client.until(() => client.isClosed, 'cut off', 60_000);
}

/** Requests in flight, without the one that asks for the metric. */
async function inFlight(server: TestServer): Promise<number> {
  return (await server.metric('strata_requests_in_flight')) - 1;
}

for (const [who, isNamed] of [
  ['without a certificate', false],
  ['with one', true],
] as const)
  test.serial(`four connections ${who} that send 50,000 requests each are cut off, and cost the server little memory`, async (t) => {
    const server = await StrataProcess.start();
    t.teardown(() => server[Symbol.asyncDispose]());
    const as: As = isNamed ? server.authority.issue({ user: 'eve', groups: [] }) : null;
    const before = await residentMiB(server.pid);
    const most = await residentMiBDuring(server.pid, () =>
      Promise.all(
        ['', 'x'.repeat(180)].flatMap((path) => [1, 2].map(() => flood(t, { port: server.port, as }, get(`/${path}`).repeat(50_000)))),
      ),
    );
    t.true(most < before + moreMiBMax, `${before} MiB before, ${most} MiB at most`);
    t.is((await server.client().raw('GET', '/livez')).status, 200);
  });

test('the front door cuts off a connection on which too many requests wait', async (t) => {
  const { door } = await anInstallation(t);
  for (const path of ['/x', '/clusters/root:org:team/api', '/livez']) {
    await flood(t, { port: door.port }, get(path).repeat(500));
    await flood(t, { port: door.port, as: door.master }, get(path).repeat(500));
  }
  t.is((await door.client({ as: null }).raw('GET', '/readyz')).status, 200);
});

test('waiting requests are answered in their order', async (t) => {
  const server = await aServer(t);
  const client = await aClient(t, { port: server.port, as: server.master });
  const texts = Array.from({ length: waitingMax }, (_, i) => 'x'.repeat(i * 1000));
  client.send([get('/livez'), ...texts.map((text, i) => post(`n${i}`, text))].join(''));
  await client.answer(waitingMax);
  const names = client.answers.slice(1).map(({ text }) => (JSON.parse(text) as { metadata: { name: string } }).metadata.name);
  t.deepEqual(
    names,
    texts.map((_, i) => `n${i}`),
  );
});

test('requests that come byte by byte are answered', async (t) => {
  const server = await aServer(t);
  const client = await aClient(t, { port: server.port, as: server.master });
  for (const byte of [get('/livez'), post('one'), get('/livez')].join('')) client.send(byte);
  await client.answer(2);
  t.deepEqual(
    client.answers.map(({ status }) => status),
    [200, 201, 200],
  );
});

test('a client that expects 100-continue gets it after the answers to its earlier requests', async (t) => {
  const server = await aServer(t);
  const client = await aClient(t, { port: server.port, as: server.master });
  const [head = '', body = ''] = post('one').split('\r\n\r\n');
  client.send(`${get('/livez')}${head}\r\nexpect: 100-continue\r\n\r\n`);
  await client.until(() => client.interim === 1, 'to be asked for the body');
  t.is(client.answers.length, 1);
  client.send(body + get('/livez'));
  await client.answer(2);
  t.deepEqual(
    client.answers.map(({ status }) => status),
    [200, 201, 200],
  );
});

test('one request more than may wait behind a watch ends the connection and the watch', async (t) => {
  const server = await aServer(t);
  const client = await aClient(t, { port: server.port, as: server.master });
  client.send(get(`${aPath()}?watch=true`) + get('/livez').repeat(waitingMax));
  await until(async () => (await server.metric('strata_watches_open')) === 1);
  t.false(client.isClosed);
  client.send(get('/livez'));
  await client.until(() => client.isClosed, 'cut off');
  await server.untilNoWatch();
  t.true((await server.metric('strata_limits_reached_total')) > 0);
});

test('a connection that is cut off leaves no request in flight', async (t) => {
  const server = await aServer(t);
  const client = await aClient(t, { port: server.port, as: server.master });
  client.head('POST', aPath(), { 'content-type': 'application/json', 'content-length': '1000000' });
  await until(async () => (await inFlight(server)) > 0);
  client.send(' '.repeat(1_000_000) + get(aPath()).repeat(600));
  await client.until(() => client.isClosed, 'cut off');
  // The header is too long for a client without a certificate, and the server must not handle what
  // follows it in the same packet.
  await flood(t, { port: server.port }, get(`/${'x'.repeat(9000)}`) + get(aPath()).repeat(100));
  await until(async () => (await inFlight(server)) === 0);
  t.pass();
});

test('waiting bodies count for their caller, who loses connections when there is no room for more', async (t) => {
  const server = await aServer(t, {
    flags: { 'buffered-bytes-max': '8MiB', 'connection-buffered-bytes-max': '1MiB', 'body-bytes-max': '512KiB' },
  });
  const clients: RawHttp1[] = [];
  // Each connection holds half a megabyte, and the caller may have 8 MiB.
  for (let i = 0; i < 20; i += 1) {
    const client = await aClient(t, { port: server.port, as: server.master });
    client.send(get(`${aPath()}?watch=true`) + post('n', 'x'.repeat(15_000)).repeat(waitingMax));
    clients.push(client);
  }
  await until(() => clients.some(({ isClosed }) => isClosed));
  t.true(clients.some(({ isClosed }) => !isClosed));
});

for (const [what, bytes] of [
  ['an upgrade', 'GET /services/cache/connect HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n'],
  ['CONNECT', 'CONNECT localhost:443 HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  ['no HTTP', 'nonsense\r\n\r\n'],
] as const)
  test(`${what} behind waiting requests ends the connection`, async (t) => {
    const server = await aServer(t);
    const client = await aClient(t, { port: server.port, as: server.master });
    client.send(get(`${aPath()}?watch=true`) + get('/livez').repeat(3) + bytes);
    await client.until(() => client.isClosed, 'cut off');
    await server.untilNoWatch();
    t.is(await inFlight(server), 0);
  });

test('a client that leaves while its requests wait leaves nothing behind', async (t) => {
  const server = await aServer(t);
  const buffered = await server.metric('strata_buffered_bytes');
  for (const ending of ['reset', 'fin', 'goodbye'] as const) {
    const client = await aClient(t, { port: server.port, as: server.master });
    client.send(get(`${aPath()}?watch=true`) + post(ending).repeat(3));
    await until(async () => (await server.metric('strata_watches_open')) === 1);
    client.end(ending);
    await once(client.socket, 'close');
    await server.untilNoWatch();
  }
  t.deepEqual((await server.client().list(aPath())).items, []);
  t.is(await server.metric('strata_buffered_bytes'), buffered);
});
