/**
 * Backends that answer byte by byte as a test says, because no Node server can. They take birch's
 * place.
 */
import type { Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { encodeFields, type Field } from '../hpack.js';
import { sliceOf } from '../raw-pusher.js';
import type { TestAuthority } from '../test-authority.js';
import { until } from '../test-server.js';
import { aShard, type Installation } from './a-front-door.js';
import { portOf, serving } from './serving.js';

/**
 * Speaks HTTP/1.1. `answer` is called for each request once its headers have arrived; its `reset`
 * resets the TCP connection. `open`: the connections.
 */
export async function aRawBackend(
  t: ExecutionContext,
  authority: TestAuthority,
  answer: (socket: TLSSocket, request: string, reset: () => void) => void,
): Promise<{ port: number; open: Set<TLSSocket> }> {
  const open = new Set<TLSSocket>();
  const server = createServer({ ...(await serving(authority)), ALPNProtocols: ['http/1.1'] }, (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      const reset = (): void => void beneath.get(socket.remotePort)?.resetAndDestroy();
      if (bytes.includes('\r\n\r\n')) answer(socket, bytes.toString('latin1'), reset);
    });
  });
  const beneath = new Map<number | undefined, Socket>();
  server.on('connection', (socket: Socket) => beneath.set(socket.remotePort, socket));
  t.teardown(() => open.forEach((socket) => socket.destroy()));
  return { port: await portOf(t, server), open };
}

/** A stream of `aRawHttp2Backend`, with functions that send frames on it. */
export type RawStream = Readonly<{
  headers: (status: number, length?: number, ends?: boolean) => void;
  data: (text: string, ends?: boolean) => void;
  reset: (code: number) => void;
  /** `last`: the last stream that the backend processed. */
  goAway: (last: number, code: number) => void;
  id: number;
  socket: TLSSocket;
}>;

/**
 * Speaks HTTP/2, frame by frame. `answer` is called for each request once its headers have arrived.
 */
export async function aRawHttp2Backend(
  t: ExecutionContext,
  authority: TestAuthority,
  answer: (stream: RawStream) => void,
): Promise<number> {
  const preface = 24;
  const [data, headers, reset, settings, ping, goAway] = [0, 1, 3, 4, 6, 7];
  const server = createServer({ ...(await serving(authority)), ALPNProtocols: ['h2'] }, (socket) => {
    socket.on('error', () => {});
    t.teardown(() => void socket.destroy());
    const frame = (type: number, flags: number, id: number, payload: Buffer = Buffer.alloc(0)): void => {
      const head = Buffer.alloc(9);
      head.writeUIntBE(payload.length, 0, 3);
      head.writeUInt8(type, 3);
      head.writeUInt8(flags, 4);
      head.writeUInt32BE(id, 5);
      if (!socket.destroyed) socket.write(Buffer.concat([head, payload]));
    };
    const streamOf = (id: number): RawStream => ({
      headers: (status, length, ends = false) => {
        const fields: Field[] = [[':status', String(status)]];
        if (length !== undefined) fields.push(['content-length', String(length)]);
        frame(headers, ends ? 5 : 4, id, encodeFields(fields));
      },
      data: (text, ends = false) => frame(data, ends ? 1 : 0, id, Buffer.from(text)),
      reset: (code) => frame(reset, 0, id, numbers(code)),
      goAway: (last, code) => frame(goAway, 0, 0, numbers(last, code)),
      id,
      socket,
    });
    let waiting: Buffer = Buffer.alloc(0);
    let isOpen = false;
    frame(settings, 0, 0);
    socket.on('data', (bytes: Buffer) => {
      waiting = Buffer.concat([waiting, bytes]);
      if (!isOpen && waiting.length < preface) return;
      if (!isOpen) waiting = waiting.subarray(preface);
      isOpen = true;
      while (waiting.length >= 9 && waiting.length >= 9 + waiting.readUIntBE(0, 3)) {
        const length = waiting.readUIntBE(0, 3);
        const [type, flags, id] = [waiting[3], waiting[4] ?? 0, waiting.readUInt32BE(5)];
        const payload = Buffer.from(waiting.subarray(9, 9 + length));
        waiting = waiting.subarray(9 + length);
        if (type === settings && (flags & 1) === 0) frame(settings, 1, 0);
        if (type === ping && (flags & 1) === 0) frame(ping, 1, 0, payload);
        if (type === headers) answer(streamOf(id));
      }
    });
  });
  return portOf(t, server);
}

function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeUInt32BE(value, 4 * i));
  return bytes;
}

/**
 * Resolves once the front door sends requests for birch's paths to `port`. Until then the backend
 * must answer neither 200 nor 502.
 */
export async function moveBirch({ pushers, door }: Installation, port: number): Promise<void> {
  const shards = sliceOf('shards', { group: 'core.kcp.io', shard: 'root' });
  await pushers.amber.acknowledged(pushers.amber.put(shards, [aShard('birch', `https://127.0.0.1:${port}`)], 'v1alpha1'));
  await until(async () => ![200, 502].includes((await door.client().raw('GET', '/clusters/team1/echo')).status));
}
