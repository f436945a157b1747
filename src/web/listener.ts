/**
 * The socket: TLS with client certificates asked for but not demanded (N11), HTTP/2 and HTTP/1.1, and limits on what a
 * peer may do before it has said who it is.
 *
 * A stop goes in the order of S17: no new connections, GOAWAY on every HTTP/2 session and `Connection: close` on HTTP/1.1,
 * then the watches end, then writes finish. Ending streams first would lead clients to watch again on a dying connection.
 */
import { randomBytes, type X509Certificate } from 'node:crypto';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { SecureVersion, TLSSocket } from 'node:tls';
import { deferred } from '../domain/deferred.js';
import type { Clock } from '../domain/ports.js';

export type Pair = Readonly<{ cert: string; key: string }>;

/** Whose client certificates are believed. */
export type TrustedAuthorities = Readonly<{ pem: string; vouchesFor: (certificate: X509Certificate) => boolean }>;

export type ListenerOptions = Readonly<{
  bindAddress: string;
  securePort: number;
  clientAuthorities: TrustedAuthorities | undefined;
  tlsVersionMin: SecureVersion;
  http2: boolean;
  http2StreamsMax: number;
  connectionsMax: number;
  handshakeTimeoutMs: number;
  headersTimeoutMs: number;
  requestTimeoutMs: number;
  keepAliveTimeoutMs: number;
}>;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** Takes over a connection of HTTP/1.1 that asks for another protocol. */
type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** What one HTTP/2 session may hold in unsent and unread frames: many full watches share it. */
const sessionMemoryMaxMB = 256;
/** A session whose client has lost its state must prove itself again: certificates are judged at the handshake only. */
const sessionTimeoutSeconds = 300;
const headerListBytesMax = 64 * 1024;
const ticketKeyBytes = 48;
/** To check a signature takes a tenth of a millisecond. */
const judgedInOneTurn = 64;
/** How often, at least, HTTP/1.1 connections are looked at that take too long; Node's own 30 s would triple a shorter limit. */
const checkingIntervalMaxMs = 5000;

export class Listener {
  readonly #server: Http2SecureServer;
  readonly #options: ListenerOptions;
  readonly #sessions = new Set<ServerHttp2Session>();
  /** Open connections, before and behind their handshake. */
  readonly #sockets = new Set<Socket>();
  /** Those that speak HTTP/1.1, and how many requests each has under way. */
  readonly #http1 = new Map<Socket, number>();
  /** Those that do not speak HTTP/2, behind their handshake. */
  readonly #secure = new Set<TLSSocket>();
  #pair: Pair;
  #authorities: TrustedAuthorities | undefined;
  /** Connections before the end of their handshake, by their peer: Node does not say which of them a TLS socket stands on. */
  readonly #handshakes = new Map<string, Socket>();
  #stopping = false;

  constructor(pair: Pair, { handle, upgrade }: Readonly<{ handle: Handler; upgrade: UpgradeHandler }>, options: ListenerOptions) {
    this.#options = options;
    this.#pair = pair;
    this.#authorities = options.clientAuthorities;
    this.#server = createSecureServer({
      ...this.#context(),
      allowHTTP1: true,
      ALPNProtocols: options.http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
      // Without a CA of ours Node would believe the system's: then nobody is asked, and everybody is anonymous.
      requestCert: options.clientAuthorities !== undefined,
      rejectUnauthorized: false,
      handshakeTimeout: options.handshakeTimeoutMs,
      sessionTimeout: sessionTimeoutSeconds,
      maxSessionMemory: sessionMemoryMaxMB,
      settings: { maxConcurrentStreams: options.http2StreamsMax, maxHeaderListSize: headerListBytesMax, enablePush: false },
    });
    // The HTTP/1.1 half of this server is node:http's, with its own names for its limits.
    Object.assign(
      this.#server as unknown as Pick<Server, 'headersTimeout' | 'requestTimeout' | 'keepAliveTimeout'> & {
        connectionsCheckingInterval: number;
      },
      {
        headersTimeout: options.headersTimeoutMs,
        requestTimeout: options.requestTimeoutMs,
        keepAliveTimeout: options.keepAliveTimeoutMs,
        connectionsCheckingInterval: Math.min(options.headersTimeoutMs, checkingIntervalMaxMs),
      },
    );
    this.#server.on('connection', (socket: Socket) => this.#accept(socket));
    this.#server.on('secureConnection', (socket) => {
      this.#handshakes.delete(peerOf(socket));
      if (socket.alpnProtocol !== 'h2') this.#followHttp1(socket);
    });
    this.#server.on('session', (session) => this.#follow(session));
    this.#server.on('sessionError', () => {});
    this.#server.on('tlsClientError', (_, socket) => socket.destroy());
    this.#server.on('clientError', (_: Error, socket: Socket) => socket.destroy());
    this.#server.on('request', (request, response) =>
      this.#handle(request as unknown as IncomingMessage, response as unknown as ServerResponse, handle),
    );
    this.#server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      // From here on it is not a connection that stands idle between requests.
      this.#http1.delete(socket);
      upgrade(request, socket, head);
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async listen(): Promise<void> {
    const { promise, resolve, reject } = deferred<void>();
    this.#server.once('error', reject);
    this.#server.listen(this.#options.securePort, this.#options.bindAddress, () => {
      this.#server.off('error', reject);
      resolve();
    });
    return promise;
  }

  /** New connections are served with this pair; open ones go on. */
  show(pair: Pair): void {
    this.#pair = pair;
    this.#server.setSecureContext(this.#context());
  }

  /**
   * From now on these are believed: by new connections, which cannot resume a session of before, and of the open ones only those
   * stay that would be judged as they were. Whoever was nobody and would be somebody now ends as well, to come back as that. What is in
   * its handshake ends too: it may have been judged by the others.
   */
  trust(authorities: TrustedAuthorities): void {
    this.#authorities = authorities;
    for (const socket of this.#handshakes.values()) socket.destroy();
    this.#server.setSecureContext(this.#context());
    this.#server.setTicketKeys(randomBytes(ticketKeyBytes));
    void this.#endMisjudged();
  }

  async #endMisjudged(): Promise<void> {
    let judged = 0;
    for (const connection of [...this.#sessions, ...this.#secure]) {
      if (connection.destroyed) continue;
      if (this.#isMisjudged('socket' in connection ? (connection.socket as TLSSocket) : connection)) connection.destroy();
      judged += 1;
      if (judged % judgedInOneTurn === 0) await turn();
    }
  }

  /** Stops listening and tells every client that this connection takes nothing new. */
  beginStop(): void {
    this.#stopping = true;
    this.#server.close();
    for (const session of this.#sessions) session.close();
    for (const [socket, underWay] of this.#http1) if (underWay === 0) socket.end();
  }

  /** Resolves when every connection is gone; those left after `graceMs` are cut. */
  async finishStop(clock: Clock, graceMs: number): Promise<void> {
    if (this.#sockets.size === 0) return;
    const { promise, resolve } = deferred<void>();
    const cancel = clock.after(graceMs, () => {
      for (const session of this.#sessions) session.destroy();
      for (const socket of this.#sockets) socket.destroy();
    });
    this.#onEmpty = resolve;
    await promise;
    cancel();
  }

  #onEmpty: () => void = () => {};

  #isMisjudged(socket: TLSSocket): boolean {
    const certificate = socket.getPeerX509Certificate();
    return certificate !== undefined && socket.authorized !== this.#authorities?.vouchesFor(certificate);
  }

  #context(): { cert: string; key: string; minVersion: SecureVersion; ca?: string } {
    const { cert, key } = this.#pair;
    const ca = this.#authorities?.pem;
    return { cert, key, minVersion: this.#options.tlsVersionMin, ...(ca === undefined ? {} : { ca }) };
  }

  #accept(socket: Socket): void {
    if (this.#sockets.size >= this.#options.connectionsMax) {
      socket.destroy();
      return;
    }
    socket.setNoDelay(true);
    socket.on('error', () => {});
    const peer = peerOf(socket);
    this.#sockets.add(socket);
    this.#handshakes.set(peer, socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (this.#handshakes.get(peer) === socket) this.#handshakes.delete(peer);
      if (this.#sockets.size === 0) this.#onEmpty();
    });
  }

  #follow(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    session.once('close', () => this.#sessions.delete(session));
    session.on('error', () => {});
    this.#closeWhenIdle(session);
    if (this.#stopping) session.close();
  }

  /** As a connection of HTTP/1.1 that stands idle, though a quiet watch is a use of it. */
  #closeWhenIdle(session: ServerHttp2Session): void {
    let streams = 0;
    session.on('stream', (stream) => {
      streams += 1;
      stream.once('close', () => (streams -= 1));
    });
    session.setTimeout(this.#options.keepAliveTimeoutMs, () => {
      if (streams === 0) session.close();
    });
  }

  #followHttp1(socket: TLSSocket): void {
    this.#http1.set(socket, 0);
    this.#secure.add(socket);
    socket.once('close', () => {
      this.#http1.delete(socket);
      this.#secure.delete(socket);
    });
    // Its handshake was still under way when the others were told.
    if (this.#stopping) socket.end();
  }

  #handle(request: IncomingMessage, response: ServerResponse, handler: Handler): void {
    response.on('error', () => {});
    if (request.httpVersionMajor === 1) this.#countHttp1(request, response);
    handler(request, response);
  }

  #countHttp1({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#http1.set(socket, (this.#http1.get(socket) ?? 0) + 1);
    if (this.#stopping) response.setHeader('connection', 'close');
    response.once('close', () => {
      if (!this.#http1.has(socket)) return;
      const underWay = (this.#http1.get(socket) ?? 1) - 1;
      this.#http1.set(socket, underWay);
      // A watch that has ended on a server that stops: its connection must not be used again.
      if (this.#stopping && underWay === 0) socket.end();
    });
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
