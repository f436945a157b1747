/**
 * A server behind the proxy that reports what it received, over HTTP/2 or HTTP/1.1. Callers need a
 * certificate of the authority.
 *
 *   …/echo    what came: protocol, method, target, headers, body, and whose certificate
 *   …/watch   an event at once, and others as the test writes them
 *   …/big     as many bytes as `?bytes=` says
 *   …/whole   all ten bytes that it announces, in two frames, and never its end
 *   …/half    half of what it announces, and then its end
 *   …/odd     an answer that no server should send, with `?status=` as its status
 *   …/upload  records how the body ends; with `?early` it answers first
 *   …/never   no answer
 */
import { createServer, type ServerResponse, type IncomingMessage } from 'node:http';
import { constants, createSecureServer, type Http2ServerRequest } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import type { TestAuthority } from '../test-authority.js';
import type { Teardown } from '../test-server.js';
import { portOf, serving } from './serving.js';

export type Echoed = Readonly<{
  http: string;
  method: string;
  target: string;
  headers: Readonly<Record<string, string | readonly string[]>>;
  body: string;
  client: string;
}>;

export class EchoBackend {
  /** The port; 0 before it listens. */
  port = 0;
  /** Open answers, by the end of their path: `watch`, `never`. */
  readonly open = new Map<string, Set<ServerResponse>>();
  asked = 0;
  upgrades = 0;
  answersUpgrades = true;
  readonly uploads: ('whole' | 'broken off')[] = [];
  readonly #sockets: ReadonlySet<Socket>;

  private constructor(sockets: ReadonlySet<Socket>) {
    this.#sockets = sockets;
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  static async start(t: Teardown, authority: TestAuthority, { speaks = 2 }: { speaks?: 1 | 2 } = {}): Promise<EchoBackend> {
    const tls = { ...(await serving(authority)), rejectUnauthorized: true };
    const sockets = new Set<Socket>();
    const backend = new EchoBackend(sockets);
    const answer = (request: IncomingMessage, response: ServerResponse): void => void backend.answer(request, response);
    const server =
      speaks === 1
        ? createHttpsServer(tls, answer)
        : createSecureServer({ ...tls, allowHTTP1: true }, answer as unknown as Parameters<typeof createSecureServer>[1]);
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => sockets.delete(socket));
    });
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      backend.upgrades += 1;
      if (!backend.answersUpgrades) return;
      const status = new URL(request.url ?? '/', 'https://backend').searchParams.get('status');
      if (status !== null) return backend.#odd(request, status);
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-User: ${String(request.headers['x-remote-user'])}\r\nX-Protocols: ${String(request.headers['sec-websocket-protocol'])}\r\n\r\n`,
      );
      socket.write(head);
      socket.pipe(socket);
    });
    t.teardown(() => {
      for (const socket of sockets) socket.destroy();
    });
    backend.port = await portOf(t, server);
    return backend;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  disconnect(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  write(name: string): void {
    for (const response of this.open.get('watch') ?? []) response.write(eventOf(name));
  }

  /** Sends an HTTP/1.1 answer that Node's server would not, so it is written by hand. */
  #odd({ socket }: IncomingMessage, status: string): void {
    socket.end(`HTTP/1.1 ${status} Odd\r\nX-Odd: \u00e9\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.asked += 1;
    response.on('error', () => {});
    request.on('error', () => {});
    const url = new URL(request.url ?? '/', 'https://backend');
    const what = url.pathname.split('/').at(-1) ?? '';
    if (what === 'watch' || what === 'never') {
      const responses = this.open.get(what) ?? new Set();
      this.open.set(what, responses.add(response));
      response.once('close', () => responses.delete(response));
      if (what === 'watch') response.writeHead(200, { 'content-type': 'application/json' }).write(eventOf('begun'));
      return;
    }
    if (what === 'odd') return this.#odd(request, url.searchParams.get('status') ?? '');
    if (what === 'big') {
      response.writeHead(200, { 'content-type': 'application/octet-stream' });
      return void response.end(Buffer.alloc(Number(url.searchParams.get('bytes')), 'x'));
    }
    if (what === 'whole') {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '10' });
      response.write('01234', () => response.write('56789'));
      return;
    }
    if (what === 'half') {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '1000' });
      response.write('half');
      setTimeout(() => (request.httpVersionMajor === 1 ? request.socket.destroy() : response.destroy()), 50);
      return;
    }
    if (what === 'upload') {
      const note = (isWhole: boolean): void => void this.uploads.push(isWhole ? 'whole' : 'broken off');
      const { stream } = request as unknown as Partial<Http2ServerRequest>;
      // Once the answer is sent, Node's server reports every body of HTTP/1.1 as complete, so the
      // received bytes decide.
      if (stream === undefined) {
        let tail = '';
        request.socket.on('data', (bytes: Buffer) => (tail = `${tail}${bytes.toString('latin1')}`.slice(-5)));
        request.socket.once('close', () => note(tail === '0\r\n\r\n'));
      } else stream.once('close', () => note(stream.readableEnded && stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted));
      if (url.searchParams.has('early')) response.end('early');
      request.resume();
      return;
    }
    const body = await text(request).catch(() => 'broken off');
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !name.startsWith(':')));
    const client = String((request.socket as TLSSocket).getPeerCertificate().subject.CN);
    const authority = request.headers[':authority'] ?? request.headers.host;
    const echoed = {
      http: request.httpVersion,
      method: request.method,
      target: request.url,
      headers: { ...headers, host: authority },
      body,
      client,
    };
    response.writeHead(what === 'gone' ? 410 : 200, { 'content-type': 'application/json', 'x-from': 'backend' });
    response.end(JSON.stringify(echoed));
  }
}

function eventOf(name: string): string {
  return `${JSON.stringify({ type: 'ADDED', object: { metadata: { name } } })}\n`;
}

/** Accepts connections and answers none. */
export async function silentPort(t: ExecutionContext): Promise<number> {
  const server = createServer();
  server.removeAllListeners('connection');
  return portOf(t, server);
}
