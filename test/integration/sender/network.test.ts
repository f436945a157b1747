/** A sender and a server over a slow, silent or broken network (F9). */
import { setImmediate as turn } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import type { Clock } from '../../../src/domain/ports.js';
import { connectSocket, defaultConnectOptions, type ClientIdentity } from '../../../src/frames/connect-socket.js';
import type { FrameSocket } from '../../../src/frames/frame-socket.js';
import { connectPath } from '../../../src/frames/socket-options.js';
import { defaultSenderBounds } from '../../../src/sender/sender-options.js';
import { Sender } from '../../../src/sender/sender.js';
import type { SliceSource, Outgoing } from '../../../src/sender/source.js';
import { identity, SocketServer } from '../frames/a-socket.js';
import { shardName } from '../../support/objects.js';
import { pushedExport, sliceOf } from '../../support/raw-pusher.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { aServer, quickened, until, type TestServer } from '../../support/test-server.js';
import { silent } from '../../support/test-store.js';

const exports = sliceOf('apiexports');
const everywhere = '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';
/** How much faster time runs in the test that waits a minute. */
const factor = 20;
const pingMs = 300;
/** The round trip takes a quarter of a second, on a shared machine. */
const patientPongMs = 10_000;

/** After a sync of an empty slice, it sends the objects that the test adds. */
class Tap implements SliceSource {
  readonly connected = true;
  #waiting: Outgoing[] = [];
  #wake: () => void = () => {};
  opened = 0;

  send(name: string, spec: unknown): void {
    this.#waiting.push({ kind: 'put', version: 'v1alpha2', object: pushedExport(name, { spec }) });
    this.#wake();
  }

  async *open(signal: AbortSignal): AsyncGenerator<readonly Outgoing[]> {
    this.opened += 1;
    signal.addEventListener('abort', () => this.#wake(), { once: true });
    yield [
      { kind: 'begin', revision: '' },
      { kind: 'end', revision: '' },
    ];
    while (!signal.aborted) {
      if (this.#waiting.length > 0) yield this.#waiting.splice(0);
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** `clock` is for the sender; its connections use real time. */
function aSender({
  url,
  identity: own,
  clock = systemClock,
  pongMs = pingMs,
}: Readonly<{ url: string; identity: ClientIdentity; clock?: Clock; pongMs?: number }>): Sender {
  const options = { ...defaultConnectOptions, pingIntervalMs: pingMs, pongTimeoutMs: pongMs, connectTimeoutMs: 1_000 };
  const connect = (to: string, signal: AbortSignal) => connectSocket(to, own, { clock: systemClock, signal }, options);
  return new Sender(
    { turn, clock, random: Math.random, log: silent, connect },
    {
      ...defaultSenderBounds,
      backoffMaxMs: 500,
      shard: shardName('amber'),
      process: 'process-1',
      takesOver: false,
      urls: [url],
      agent: 'test',
    },
  );
}

async function aPush(t: ExecutionContext, pongMs = pingMs) {
  const server = await aServer(t, { flags: { 'ping-interval': `${pingMs}ms`, 'pong-timeout': `${pongMs}ms` } });
  const proxy = await TcpProxy.start(server.port);
  t.teardown(() => proxy.close());
  const { certificate, key } = server.master;
  const trusted = { ca: server.certificate, certificate, key };
  const sender = aSender({ url: `https://127.0.0.1:${proxy.port}${connectPath}`, identity: trusted, pongMs });
  const tap = new Tap();
  sender.add(exports, tap);
  const stop = new AbortController();
  const ended = sender.run(stop.signal);
  t.teardown(async () => {
    stop.abort();
    await ended;
  });
  await until(() => sender.state.slices[0]?.phase === 'synced');
  return { server, proxy, sender, tap };
}

async function listed(server: TestServer): Promise<number> {
  return (await server.client().list(everywhere)).items.length;
}

test('on a slow network every change arrives over one connection', async (t) => {
  const { server, proxy, tap } = await aPush(t, patientPongMs);

  proxy.delay(125);
  for (let i = 0; i < 50; i += 1) tap.send(`n${i}`, { i });
  await until(async () => (await listed(server)) === 50);

  t.is(proxy.connections, 1);
  t.is(tap.opened, 1);
});

test('both ends notice a network that swallows everything; afterwards the sender continues without a resync', async (t) => {
  const { server, proxy, sender, tap } = await aPush(t);

  proxy.blackhole();
  for (let i = 0; i < 50; i += 1) tap.send(`n${i}`, { i });
  await until(() => sender.state.connection.kind !== 'connected');
  await until(async () => (await server.metric('strata_push_sessions')) === 0);
  t.is(await listed(server), 0);
  proxy.heal();
  await until(async () => (await listed(server)) === 50);

  t.is(tap.opened, 1, 'no second sync');
});

test('a connection that is cut again and again loses nothing and repeats no sync', async (t) => {
  const { server, proxy, tap } = await aPush(t);

  for (let i = 0; i < 60; i += 1) {
    tap.send(`n${i}`, { i });
    if (i % 20 === 10) proxy.cut();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await until(async () => (await listed(server)) === 60);

  t.true(proxy.connections > 1);
  t.is(tap.opened, 1);
});

test('a sender leaves a cache that answers pings but acknowledges nothing for a minute, and reconnects', async (t) => {
  const cache = await SocketServer.open(t);
  const sender = aSender({ url: cache.url, identity, clock: quickened(factor) });
  sender.add(exports, new Tap());
  const stop = new AbortController();
  const ended = sender.run(stop.signal);
  t.teardown(async () => {
    stop.abort();
    await ended;
  });
  await until(() => cache.accepted.length === 1);
  const startedMs = performance.now();
  void welcome(cache.accepted[0]!);

  await until(() => cache.accepted.length === 2);

  const tookMs = (performance.now() - startedMs) * factor;
  t.log(`back after ${Math.round(tookMs / 1_000)} s`);
  t.true(tookMs > 55_000, `${tookMs}`);
});

/** Reads all frames, and answers only the hello. */
async function welcome(socket: FrameSocket): Promise<void> {
  for await (const { kind } of socket.frames())
    if (kind === 'hello')
      socket.send({
        kind: 'welcome',
        protocol: 1,
        cacheId: 'c-1',
        epoch: 1,
        term: 1,
        credit: { mutations: 1_000, bytes: 1_000_000 },
        limits: { frameBytesMax: 100_000, frameMutationsMax: 100, bodyBytesMax: 10_000 },
      });
}
