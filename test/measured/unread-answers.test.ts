/**
 * The memory for bytes that servers send and clients do not read is bounded, also if they arrive
 * byte by byte. A piece of one byte would be a JavaScript object of more than a hundred bytes.
 */
import { once } from 'node:events';
import { connect, createSecureServer } from 'node:http2';
import { setTimeout } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { lines } from '../../src/kube/watch-event.js';
import { ListCutter } from '../../src/kube/list-cutter.js';
import { aRawBackend, aRawHttp2Backend, moveBirch, type RawStream } from '../support/proxy/raw-backend.js';
import { collectGarbage } from '../support/collect-garbage.js';
import { anInstallation, type Installation } from '../support/proxy/a-front-door.js';
import { portOf, serving } from '../support/proxy/serving.js';
import { test } from '../support/test.js';
import { until } from '../support/test-server.js';

const path = '/clusters/team1/x';
const requests = 20;
/** Pieces of each answer; their bytes fit into the window of its stream. */
const pieces = 60_000;
/** The bytes are 1.2 MB. A front door with the fault held 140 MB for them. */
const heldMBMax = 25;

function heldMB(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 1e6;
}

/**
 * Sends requests and reads none of their answers. Returns how much memory the answers hold once
 * `isAllSent`, then closes the connection.
 */
async function heldOfAnswers(t: ExecutionContext, { door }: Installation, query: string, isAllSent: () => boolean): Promise<number> {
  const session = connect(door.url, { ca: door.certificate, settings: { initialWindowSize: 0 } });
  t.teardown(() => session.destroy());
  await once(session, 'remoteSettings');
  const before = heldMB();
  await Promise.all(Array.from({ length: requests }, () => once(session.request({ ':path': `${path}${query}` }), 'response')));
  await until(isAllSent, 30_000);
  const held = heldMB() - before;
  session.destroy();
  await until(async () => (await door.metric('strata_requests_in_flight')) === 0);
  return held;
}

function frames({ id }: RawStream): Buffer {
  const frame = Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 0, 0x78]);
  frame.writeUInt32BE(id, 5);
  return Buffer.concat(Array.from({ length: pieces }, () => frame));
}

for (const query of ['', '?watch=true'])
  test(`a front door holds one-byte frames in little more memory than their bytes: an answer to GET ${path}${query}`, async (t) => {
    t.timeout(120_000);
    const installation = await anInstallation(t);
    let act = (stream: RawStream): void => stream.headers(418, undefined, true);
    await moveBirch(installation, await aRawHttp2Backend(t, installation.door.authority, (stream) => act(stream)));
    let sent = 0;
    act = (stream) => {
      stream.headers(200);
      stream.socket.write(frames(stream), () => (sent += 1));
    };

    const held = await heldOfAnswers(t, installation, query, () => sent === requests);

    t.log(`${held.toFixed(1)} MB`);
    t.true(held < heldMBMax, `${held} MB`);
  });

test('a front door holds one-byte chunks in little more memory than their bytes', async (t) => {
  t.timeout(120_000);
  const installation = await anInstallation(t);
  const { port, open } = await aRawBackend(t, installation.door.authority, (socket, request) => {
    if (!request.includes(path)) return void socket.write('HTTP/1.1 418 No\r\nContent-Length: 0\r\n\r\n');
    socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(pieces)}`);
  });
  await moveBirch(installation, port);

  // The rest of an answer that nobody reads waits in the backend's sockets, so all is sent once
  // that amount is stable.
  let taken = -1;
  const isStill = (): boolean => taken === (taken = [...open].reduce((sum, { writableLength }) => sum + writableLength, 0));
  const held = await heldOfAnswers(t, installation, '', isStill);

  t.log(`${held.toFixed(1)} MB`);
  t.true(held < heldMBMax, `${held} MB`);
});

test('watches that nobody reads end once their client’s unread bytes exceed its quota, and it may open others then', async (t) => {
  t.timeout(120_000);
  const installation = await anInstallation(t);
  const { door } = installation;
  const backend = createSecureServer({ ...(await serving(door.authority)), maxSessionMemory: 1_000 });
  backend.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.respond({ ':status': isLong ? 200 : 418 });
    if (isLong) stream.write(Buffer.alloc(200_000));
    else stream.end('short');
  });
  let isLong = false;
  await moveBirch(installation, await portOf(t, backend));
  isLong = true;
  const { certificate: cert, key } = door.authority.issue({ user: 'alice', groups: [] });
  const [connections, watches] = [24, 95];
  const reached = (): Promise<number> => door.metric('strata_limits_reached_total');
  const openConnections = (): Promise<number> => door.metric('strata_connections_open');

  for (const round of ['first', 'second']) {
    const [reachedBefore, openBefore] = [await reached(), await openConnections()];
    const sessions = Array.from({ length: connections }, () =>
      connect(door.url, { ca: door.certificate, cert, key, settings: { initialWindowSize: 0 } }),
    );
    t.teardown(() => sessions.forEach((session) => session.destroy()));
    let [answered, ended] = [0, 0];
    for (const session of sessions) {
      await once(session, 'remoteSettings');
      for (let i = 0; i < watches; i += 1) {
        const stream = session.request({ ':path': `${path}?watch=true` });
        stream.once('response', () => (answered += 1));
        stream.once('close', () => (ended += 1));
        stream.on('error', () => {});
      }
    }
    await until(() => answered === connections * watches && ended > 0, 30_000);
    // A client may have a fifth of 256 MiB unread, and each watch at most 64 KiB.
    t.log(`${answered - ended} of ${answered} are open in the ${round} round`);
    t.true(answered - ended > 800);
    t.true((await reached()) > reachedBefore);
    sessions.forEach((session) => session.destroy());
    await until(async () => (await openConnections()) <= openBefore);
  }
  isLong = false;
  t.is((await door.client().raw('GET', `${path}?watch=true`)).text, 'short');
});

for (const speaks of [1, 2] as const)
  test(`the front door reads an answer over HTTP/${speaks === 1 ? '1.1' : 2} as slowly as its client does, and loses none of it`, async (t) => {
    t.timeout(120_000);
    const installation = await anInstallation(t);
    const { door } = installation;
    const answer = Buffer.alloc(40_000_000, 'x');
    let wire: Pick<TLSSocket, 'bytesWritten'> | undefined;
    const options = { ...(await serving(door.authority)), ...(speaks === 1 && { ALPNProtocols: ['http/1.1'] }) };
    const backend = createSecureServer({ ...options, allowHTTP1: true }, ({ url, socket }, response) => {
      response.writeHead(url === path ? 200 : 418);
      response.end(url === path ? answer : '');
      wire = socket as TLSSocket;
    });
    await moveBirch(installation, await portOf(t, backend));
    const session = connect(door.url, { ca: door.certificate });
    t.teardown(() => session.destroy());
    const stream = session.request({ ':path': path });
    let [taken, aheadMost] = [0, 0];
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      taken += chunk.length;
      if (taken < 10_000_000) await setTimeout(2);
      aheadMost = Math.max(aheadMost, (wire?.bytesWritten ?? 0) - taken);
    }
    t.is(taken, answer.length);
    t.log(`${(aheadMost / 1e6).toFixed(1)} MB ahead`);
    // Includes what the kernel holds on the way.
    t.true(aheadMost < 16_000_000, `${aheadMost}`);
  });

async function* crumbs(count: number): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < count; i += 1) yield Buffer.from('x');
}

test('an agent that receives an event or an item byte by byte holds little more than its bytes', async (t) => {
  const count = 1_000_000;
  const heldMBMost = 8;
  const cutter = new ListCutter(2 * count);
  cutter.push(Buffer.from('{"items":[{"a":"'));
  const before = heldMB();
  for (let i = 0; i < count; i += 1) cutter.push(Buffer.from('x'));
  const ofItem = heldMB() - before;
  t.is(cutter.push(Buffer.from('"}'))[0]?.length, count + 8);

  let ofLine = 0;
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    yield* crumbs(count);
    ofLine = heldMB() - before;
    yield Buffer.from('\n');
  };
  for await (const batch of lines(chunks(), 2 * count)) t.is(batch[0]?.length, count);

  t.log(`${ofItem.toFixed(1)} MB of an item, ${ofLine.toFixed(1)} MB of a line`);
  t.true(ofItem < heldMBMost && ofLine < heldMBMost, `${ofItem} and ${ofLine} MB`);
});
