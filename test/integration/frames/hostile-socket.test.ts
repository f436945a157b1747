import type { TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { BadFrame } from '../../../src/frames/bad-frame.js';
import type { FrameSocket } from '../../../src/frames/frame-socket.js';
import type { Frame } from '../../../src/frames/frame.js';
import { writeFrame } from '../../../src/frames/frame-codec.js';
import { until } from '../../support/test-server.js';
import { SocketServer, socketOptions, type RawClient } from './a-socket.js';

const binary = 2;
const aFrame = writeFrame({ kind: 'route', route: ['amber'] });

async function aPeer(t: ExecutionContext): Promise<{ raw: RawClient; accepted: FrameSocket; server: SocketServer }> {
  const server = await SocketServer.open(t);
  const raw = await server.raw(t);
  await until(() => server.accepted.length > 0);
  const [accepted] = server.accepted;
  if (accepted === undefined) throw new Error('just waited for');
  return { raw, accepted, server };
}

/** Reads to the end, and closes at a bad frame, as the owner of a connection does. */
async function serve(connection: FrameSocket): Promise<Readonly<{ frames: readonly Frame[]; error: unknown }>> {
  const frames: Frame[] = [];
  try {
    for await (const frame of connection.frames()) frames.push(frame);
    return { frames, error: undefined };
  } catch (error) {
    connection.close('protocol', 'no frame');
    return { frames, error };
  }
}

type Bad = Readonly<{ name: string; write: (raw: RawClient) => Buffer; message: RegExp; code: number }>;

const bad: readonly Bad[] = [
  { name: 'text', write: (raw) => raw.frame(1, Buffer.from('hello')), message: /sent a text message/, code: 4004 },
  {
    name: 'bytes that are no frame',
    write: (raw) => raw.frame(binary, Buffer.from('ddffffffff', 'hex')),
    message: /ends early/,
    code: 4004,
  },
  { name: 'an empty message', write: (raw) => raw.frame(binary, Buffer.alloc(0)), message: /ends early/, code: 4004 },
  {
    name: 'a message that says it is too long',
    write: (raw) => raw.frame(binary, Buffer.alloc(0), { length: socketOptions.frameBytesMax + 1 }),
    message: /Max payload size exceeded/,
    code: 1009,
  },
  {
    name: 'a message that says it has 2^40 bytes',
    write: (raw) => raw.frame(binary, Buffer.alloc(0), { length: 2 ** 40 }),
    message: /Max payload size exceeded/,
    code: 1009,
  },
  {
    name: 'a message that grows too long in fragments',
    write: (raw) => {
      const part = Buffer.alloc(socketOptions.frameBytesMax / 2 + 1);
      return Buffer.concat([raw.frame(binary, part, { fin: false }), raw.frame(0, part, { fin: false })]);
    },
    message: /Max payload size exceeded/,
    code: 1009,
  },
  {
    name: 'fragments of one byte',
    write: (raw) => {
      const more = raw.frame(0, Buffer.alloc(1), { fin: false });
      return Buffer.concat([raw.frame(binary, Buffer.alloc(1), { fin: false }), ...Array<Buffer>(10_000).fill(more)]);
    },
    message: /Too many message fragments/,
    code: 1008,
  },
  {
    name: 'fragments of nothing',
    write: (raw) => {
      const more = raw.frame(0, Buffer.alloc(0), { fin: false });
      return Buffer.concat([raw.frame(binary, Buffer.alloc(0), { fin: false }), ...Array<Buffer>(10_000).fill(more)]);
    },
    message: /Too many message fragments/,
    code: 1008,
  },
  { name: 'a compressed message', write: (raw) => raw.frame(binary | 0x40, Buffer.alloc(8)), message: /RSV1 must be clear/, code: 1002 },
  { name: 'a message without a mask', write: () => Buffer.from([0x82, 1, 0]), message: /MASK must be set/, code: 1002 },
  {
    name: 'a close for a reason that is none',
    write: (raw) => raw.frame(8, Buffer.from([3, 1])),
    message: /invalid status code/,
    code: 1002,
  },
];

for (const { name, write, message, code } of bad) {
  test(`${name}: earlier frames are read, then reading fails, and the connection closes with ${code}`, async (t) => {
    const { raw, accepted } = await aPeer(t);

    raw.socket.write(Buffer.concat([raw.frame(binary, aFrame), write(raw), raw.frame(binary, aFrame)]));
    const { frames, error } = await serve(accepted);

    t.deepEqual(frames, [{ kind: 'route', route: ['amber'] }]);
    t.true(error instanceof BadFrame);
    t.regex(String(error), message);
    await until(() => raw.closeCode === code);
    t.is(raw.closeCode, code);
  });
}

test('a connection that sends a message byte by byte ends before the message has cost much', async (t) => {
  const { raw, accepted } = await aPeer(t);
  const served = serve(accepted);
  raw.socket.setNoDelay(true);
  let drops = 0;

  raw.socket.write(raw.frame(binary, Buffer.alloc(0), { length: socketOptions.frameBytesMax }));
  for (; raw.closeCode === undefined && drops < 5_000; drops += 1) {
    await new Promise<void>((resolve) => raw.socket.write(Buffer.alloc(1), () => resolve()));
  }

  const { error } = await served;
  t.regex(String(error), /Too many buffered chunks/);
  t.is(raw.closeCode, 1008);
});

test('a peer that sends pings and does not read the answers is disconnected', async (t) => {
  const { raw, accepted } = await aPeer(t);
  raw.socket.pause();
  const pings = Buffer.concat(Array<Buffer>(4096).fill(raw.frame(9, Buffer.alloc(125))));
  let isClosed = false;
  void accepted.closed.then(() => (isClosed = true));

  for (let sent = 0; !isClosed && sent < 100; sent += 1) {
    if (!raw.socket.write(pings)) {
      await Promise.race([new Promise((resolve) => raw.socket.once('drain', resolve)), accepted.closed]);
    }
  }

  t.is((await accepted.closed).code, 1006);
});

test('a peer that answers pings that nobody sent is disconnected', async (t) => {
  const { raw, accepted } = await aPeer(t);
  const served = serve(accepted);
  raw.socket.write(Buffer.concat(Array<Buffer>(900).fill(raw.frame(10, Buffer.alloc(0)))));
  raw.socket.write(raw.frame(binary, aFrame));
  raw.socket.write(Buffer.concat(Array<Buffer>(200).fill(raw.frame(10, Buffer.alloc(0)))));

  const { frames, error } = await served;
  t.is(frames.length, 1);
  t.regex(String(error), /more than 1000 pongs/);
});

test('after a peer has broken the rules the server reads nothing more from it', async (t) => {
  const { raw, accepted } = await aPeer(t);
  const served = serve(accepted);
  const pongs = Buffer.concat(Array<Buffer>(100_000).fill(raw.frame(10, Buffer.alloc(0))));
  for (let i = 0; i < 40; i += 1) raw.socket.write(pongs);
  t.regex(String((await served).error), /more than 1000 pongs/);
  let unsent = 0;
  const looking = setInterval(() => (unsent = raw.socket.destroyed ? unsent : raw.socket.writableLength), 1);
  t.teardown(() => clearInterval(looking));

  const { code } = await accepted.closed;

  t.is(code, 1006, 'the peer’s own close frame is queued behind all of them');
  t.true(unsent > pongs.length, `${unsent} bytes`);
});

test('during a flood of frames that are expensive to handle, other work gets its turns', async (t) => {
  const { raw, accepted } = await aPeer(t);
  const count = 200;
  let turns = 0;
  let isOver = false;
  const others = (): void => {
    turns += 1;
    if (!isOver) setImmediate(others);
  };
  raw.socket.write(Buffer.concat(Array<Buffer>(count).fill(raw.frame(binary, aFrame))));

  setImmediate(others);
  let read = 0;
  for await (const _ of accepted.frames()) {
    for (const untilMs = performance.now() + 1; performance.now() < untilMs;);
    if ((read += 1) === count) break;
  }
  isOver = true;
  t.true(turns >= count / 10, `${turns} turns`);
});

test('TCP back-pressure stops a peer that floods an unread connection', async (t) => {
  const { raw, accepted, server } = await aPeer(t);
  const piece = Buffer.concat(Array<Buffer>(5_000).fill(raw.frame(binary, aFrame)));
  let written = 0;

  while (written < 400 && raw.socket.writableLength < 4 * 2 ** 20) {
    raw.socket.write(piece);
    written += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }

  t.true(written < 400);
  t.true((server.sockets[0] as TLSSocket).bytesRead < 2 ** 20);
  const { value } = await accepted.frames().next();
  t.deepEqual(value, { kind: 'route', route: ['amber'] });
});
