/**
 * Both ends of a frame socket over real TLS on this machine: a server that accepts every upgrade
 * unless the test answers it, this project's clients, and a client that writes arbitrary bytes.
 */
import type { IncomingMessage } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { systemClock } from '../../../src/clock.js';
import type { Clock } from '../../../src/domain/ports.js';
import { SocketAcceptor } from '../../../src/frames/accept-socket.js';
import { connectSocket, type ClientIdentity, type ConnectOptions } from '../../../src/frames/connect-socket.js';
import type { FrameSocket } from '../../../src/frames/frame-socket.js';
import { selfSigned } from '../../support/test-authority.js';
import { until } from '../../support/test-server.js';

export const socketOptions: ConnectOptions = Object.freeze({
  frameBytesMax: 256 * 1024,
  bufferedBytesLow: 64 * 1024,
  bufferedBytesMax: 4 * 1024 * 1024,
  pingIntervalMs: 60_000,
  pongTimeoutMs: 60_000,
  closeGraceMs: 5_000,
  connectTimeoutMs: 10_000,
});

export type SocketServerOptions = Readonly<{
  options?: Partial<ConnectOptions>;
  http2?: boolean;
  clock?: Clock;
  /** Answers the upgrade in place of the server. */
  upgrade?: (request: IncomingMessage, socket: Duplex) => void;
}>;

/** One self-signed certificate for both ends. */
const pair = selfSigned(['127.0.0.1', 'cache.example']);
/** Each end requests the certificate of the other. */
const tls = { cert: pair.certificate, key: pair.key, ca: pair.certificate, requestCert: true, rejectUnauthorized: true };

export const identity: ClientIdentity = { ...pair, ca: pair.certificate };

export class SocketServer {
  readonly port: number;
  /** The server's ends, in the order in which clients connected. */
  readonly accepted: FrameSocket[] = [];
  /** The TLS sockets of `accepted`. */
  readonly sockets: Duplex[] = [];
  /** How many times data arrived on any of `sockets`. */
  reads = 0;
  readonly #options: ConnectOptions;

  private constructor(port: number, options: ConnectOptions) {
    this.port = port;
    this.#options = options;
  }

  static async open(
    t: ExecutionContext,
    { options = {}, http2 = false, clock = systemClock, upgrade }: SocketServerOptions = {},
  ): Promise<SocketServer> {
    const server = http2 ? createSecureServer({ ...tls, allowHTTP1: true, ALPNProtocols: ['h2', 'http/1.1'] }) : createServer(tls);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const opened = new SocketServer((server.address() as AddressInfo).port, { ...socketOptions, ...options });
    const acceptor = new SocketAcceptor({ clock }, opened.#options);
    const connections = new Set<Socket>();
    server.on('connection', (socket: Socket) => connections.add(socket));
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      opened.sockets.push(socket);
      socket.prependListener('data', () => (opened.reads += 1));
      if (upgrade !== undefined) return upgrade(request, socket);
      void acceptor.accept(request, socket, head).then((accepted) => accepted && opened.accepted.push(accepted));
    });
    t.teardown(() => {
      for (const socket of connections) socket.destroy();
      server.close();
    });
    return opened;
  }

  get url(): string {
    return `wss://127.0.0.1:${this.port}/services/cache/connect`;
  }

  /** Connects a client of this project; returns it and the server's end. */
  async connect(t: ExecutionContext, clock: Clock = systemClock): Promise<readonly [client: FrameSocket, server: FrameSocket]> {
    const before = this.accepted.length;
    const client = await connectSocket(this.url, identity, { clock, signal: new AbortController().signal }, this.#options);
    t.teardown(() => client.terminate());
    await until(() => this.accepted.length > before);
    const server = this.accepted[before];
    if (server === undefined) throw new Error('just waited for');
    return [client, server];
  }

  /** A client that has sent an upgrade with these headers and read the answer. */
  async raw(t: ExecutionContext, headers: Readonly<Record<string, string>> = {}): Promise<RawClient> {
    const socket = connect({ host: '127.0.0.1', port: this.port, ...tls, ALPNProtocols: ['http/1.1'] });
    t.teardown(() => socket.destroy());
    const client = new RawClient(socket);
    const all = {
      host: 'cache',
      upgrade: 'websocket',
      connection: 'Upgrade',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      'sec-websocket-protocol': 'strata.v1',
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`GET /services/cache/connect HTTP/1.1\r\n${lines.join('')}\r\n`);
    await until(() => client.received.includes('\r\n\r\n') || client.closed);
    return client;
  }
}

/** Writes websocket frames byte by byte, because no library writes invalid ones. */
export class RawClient {
  readonly socket: TLSSocket;
  received = '';
  closed = false;

  constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => (this.received += chunk.toString('latin1')));
    socket.on('error', () => {});
    socket.once('close', () => (this.closed = true));
  }

  /**
   * One websocket frame, masked with zeros. `length` is the declared length; it may differ from the
   * payload's.
   */
  frame(opcode: number, payload: Uint8Array, { fin = true, length = payload.length }: { fin?: boolean; length?: number } = {}): Buffer {
    const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
    head[0] = opcode | (fin ? 0x80 : 0);
    head[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127);
    if (head.length === 4) head.writeUInt16BE(length, 2);
    if (head.length === 10) head.writeUIntBE(length, 4, 6);
    return Buffer.concat([head, Buffer.alloc(4), payload]);
  }

  /** The code of the close frame that the server sent last. */
  get closeCode(): number | undefined {
    const bytes = Buffer.from(this.received, 'latin1');
    const at = bytes.lastIndexOf(Buffer.from([0x88]));
    return at < 0 || at + 4 > bytes.length ? undefined : bytes.readUInt16BE(at + 2);
  }
}
