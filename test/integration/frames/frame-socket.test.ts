import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { closingFields, type FrameConnection } from '../../../src/frames/frame-connection.js';
import type { Frame } from '../../../src/frames/frame.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { until } from '../../support/test-server.js';
import { SocketServer, socketOptions } from './a-socket.js';
import { aPut, plain, someFrames } from '../../support/frames/some-frames.js';

const aRoute: Frame = { kind: 'route', route: ['amber'] };

function aLargePut(bytes: number): Frame {
  const { objects } = aPut();
  return aPut({ objects: objects.map((object) => ({ ...object, body: Buffer.alloc(bytes, 0x61) })) });
}

/**
 * At most `max` frames, or all until the end. The connection allows one reader, so callers pass the
 * same iterator each time.
 */
async function take(frames: AsyncIterator<Frame>, max = Infinity): Promise<readonly unknown[]> {
  const taken: unknown[] = [];
  while (taken.length < max) {
    const { done, value } = await frames.next();
    if (done === true) break;
    taken.push(plain(value));
  }
  return taken;
}

function reading(connection: FrameConnection): AsyncIterator<Frame> {
  return connection.frames()[Symbol.asyncIterator]();
}

for (const http2 of [false, true]) {
  test(`frames cross in order and both ways on a server of ${http2 ? 'HTTP/2 that allows HTTP/1.1' : 'HTTPS'}`, async (t) => {
    const server = await SocketServer.open(t, { http2 });
    const [client, accepted] = await server.connect(t);

    for (const frame of someFrames) client.send(frame);
    for (const frame of someFrames.toReversed()) accepted.send(frame);

    t.deepEqual(await take(reading(accepted), someFrames.length), someFrames.map(plain));
    t.deepEqual(await take(reading(client), someFrames.length), someFrames.toReversed().map(plain));
  });
}

test('a close carries its reason, ends the frames at both ends and gives both ends its code', async (t) => {
  const server = await SocketServer.open(t);
  const [client, accepted] = await server.connect(t);
  client.send(aRoute);

  accepted.send(aRoute);
  accepted.close('fenced', 'a newer term has the shard');
  accepted.close('shutdown', 'said too late', 0);
  accepted.send(aRoute);

  const bye = { kind: 'bye', reason: 'fenced', message: 'a newer term has the shard', retryAfterMs: undefined };
  t.deepEqual(await take(reading(client)), [aRoute, bye]);
  t.deepEqual(await take(reading(accepted)), []);
  t.deepEqual([await client.closed, await accepted.closed], [{ code: 4002 }, { code: 4002 }]);
  t.notThrows(() => client.send(aRoute));
});

test('a client reads frames that the peer sent before it closed', async (t) => {
  const server = await SocketServer.open(t);
  const [client, accepted] = await server.connect(t);

  for (let sent = 0; sent < 100; sent += 1) client.send(aRoute);
  client.close('shutdown', '', 0);

  t.is((await take(reading(accepted))).length, 101);
  t.is((await accepted.closed).code, 4001);
});

test('a connection that breaks ends the iteration of frames without an error', async (t) => {
  const server = await SocketServer.open(t);
  const [client, accepted] = await server.connect(t);
  const read = take(reading(accepted));

  client.terminate();

  t.deepEqual(await read, []);
  t.is((await accepted.closed).code, 1006);
});

test('the closing has the code and the text of the peer’s close frame; a code of Strata’s own is logged by its name', async (t) => {
  const server = await SocketServer.open(t);
  const raw = await server.raw(t);
  await until(() => server.accepted.length > 0);
  const [accepted] = server.accepted;

  raw.socket.write(raw.frame(8, Buffer.from([0x03, 0xe9, ...Buffer.from('rebooting')])));

  t.deepEqual(await accepted?.closed, { code: 1001, reason: 'rebooting' });
  t.deepEqual(closingFields({ code: 1001, reason: 'rebooting' }), { code: 1001, reason: 'rebooting' });
  t.deepEqual(closingFields({ code: 4001 }), { code: 4001, reason: 'shutdown' });
  t.deepEqual(closingFields({ code: 4008, reason: 'rebooting' }), { code: 4008, reason: 'timeout' });
  t.deepEqual(closingFields({ code: 1006 }), { code: 1006, reason: undefined });
});

test('a peer that does not answer a close is disconnected after the grace', async (t) => {
  const clock = new ManualClock();
  const server = await SocketServer.open(t, { clock });
  const raw = await server.raw(t);
  await until(() => server.accepted.length > 0);
  const [accepted] = server.accepted;

  accepted?.close('shutdown', '', 0);
  await until(() => raw.closeCode === 4001);
  t.false(raw.closed);
  clock.advance(socketOptions.closeGraceMs);

  t.is((await accepted?.closed)?.code, 1006);
  t.is(clock.pending, 0);
});

test('a silent peer is disconnected, by the clock', async (t) => {
  const clock = new ManualClock();
  const server = await SocketServer.open(t, { clock });
  await server.raw(t);
  await until(() => server.accepted.length > 0);
  const [accepted] = server.accepted;

  clock.advance(socketOptions.pingIntervalMs + socketOptions.pongTimeoutMs - 1);
  t.is(clock.pending, 1);
  clock.advance(1);

  t.is((await accepted?.closed)?.code, 1006);
  t.is(clock.pending, 0);
});

test('a peer that answers pings stays connected, though it sends nothing else', async (t) => {
  const clock = new ManualClock();
  const server = await SocketServer.open(t, { clock });
  const raw = await server.raw(t);
  await until(() => server.accepted.length > 0);
  const [accepted] = server.accepted;

  for (let round = 1; round <= 5; round += 1) {
    clock.advance(socketOptions.pingIntervalMs);
    // Each ping carries the time at which it was sent: ten digits of this clock.
    await until(() => raw.received.split('\x89\x0a').length > round);
    const answers = server.reads;
    raw.socket.write(raw.frame(0xa, Buffer.alloc(0)));
    await until(() => server.reads > answers);
    clock.advance(socketOptions.pongTimeoutMs - 1);
  }

  accepted?.close('shutdown', '');
  await until(() => raw.closeCode === 4001);
  t.is(raw.closeCode, 4001);
});

test('a slow reader stops its sender, which buffers little, and loses nothing', async (t) => {
  const server = await SocketServer.open(t);
  const [client, accepted] = await server.connect(t);
  const frame = aLargePut(200 * 1024);
  const framesMax = 300;
  let sent = 0;
  let mostBuffered = 0;

  const sending = (async () => {
    for (; sent < framesMax; sent += 1) {
      client.send(frame);
      mostBuffered = Math.max(mostBuffered, client.bufferedBytes);
      await client.drained();
    }
  })();
  await untilStill(() => sent);

  // These frames are in the kernel's socket buffers of both ends.
  t.true(sent * 200 < 24 * 1024, `${sent} frames went out unread`);
  t.true(mostBuffered < socketOptions.bufferedBytesLow + 256 * 1024);
  const read = await take(reading(accepted), framesMax);
  await sending;
  t.is(read.length, framesMax);
});

test('many small frames in one chunk are all read, in portions of any size', async (t) => {
  const server = await SocketServer.open(t);
  const [client, accepted] = await server.connect(t);

  for (let sent = 0; sent < 20_000; sent += 1) client.send(aRoute);

  t.is((await take(reading(accepted), 20_000)).length, 20_000);
});

test('a sender that does not wait disconnects a peer that reads nothing', async (t) => {
  const server = await SocketServer.open(t);
  const raw = await server.raw(t);
  await until(() => server.accepted.length > 0);
  const [accepted] = server.accepted;
  raw.socket.pause();

  const frame = aLargePut(200 * 1024);
  for (let sent = 0; sent < 100; sent += 1) accepted?.send(frame);
  await accepted?.drained();

  t.true((accepted?.bufferedBytes ?? 0) < socketOptions.bufferedBytesMax + 256 * 1024);
  t.is((await accepted?.closed)?.code, 1006);
});

test('a waiting sender continues when the connection ends', async (t) => {
  const server = await SocketServer.open(t);
  const [client, accepted] = await server.connect(t, systemClock);

  for (let sent = 0; sent < 15; sent += 1) client.send(aLargePut(200 * 1024));
  const waiting = client.drained();
  client.terminate();

  await t.notThrowsAsync(waiting);
  t.is((await accepted.closed).code, 1006);
});

/** Waits until the number has stopped changing. */
async function untilStill(read: () => number): Promise<void> {
  let last = -1;
  let since = performance.now();
  await until(() => {
    if (read() !== last) since = performance.now();
    last = read();
    return performance.now() - since > 200;
  });
}
