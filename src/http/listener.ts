/**
 * The socket: TLS that requests but does not require client certificates, HTTP/2 and HTTP/1.1, and
 * limits on unauthenticated peers.
 *
 * One address may have `handshakesPerAddressMax` handshakes under way, and
 * `anonymousConnectionsPerAddressMax` connections without a certificate. The second limit does not
 * apply if such callers may have tokens. Beyond a limit, the oldest of these connections from that
 * address is closed; when the server is full, the oldest from the address with the most. So they
 * never keep out a peer with a certificate.
 *
 * A stop first refuses new connections, and sends GOAWAY on every HTTP/2 session and `Connection:
 * close` on HTTP/1.1. Then the watches end, and the writes finish. If watches ended first, clients
 * would watch again on a connection that is about to close.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createSecureServer, type Http2SecureServer, type Http2ServerRequest, type ServerHttp2Session } from 'node:http2';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { isIPv6, type AddressInfo, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { SecureVersion, TLSSocket } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Caller } from '../domain/caller.js';
import { deferred } from '../domain/base/promises.js';
import { CacheError } from '../domain/errors.js';
import { Connection, type ConnectionOptions, type ConnectionContext, type TrustedAuthorities, type Upgrade } from './connection.js';
import type { Exchange } from './exchange.js';
import { hasShortHeaders, sessionSettings, withoutHttp2 } from './session-settings.js';
import { isHttp2, isOfHttp1, readThroughStream } from './transport.js';
import { Turns } from './turns.js';
import { endOf, EvictableSockets, type End } from './evictable-sockets.js';

export type Pair = Readonly<{ cert: string; key: string }>;

export type ListenerOptions = ConnectionOptions &
  Readonly<{
    bindAddress: string;
    securePort: number;
    clientAuthorities: TrustedAuthorities | undefined;
    tlsVersionMin: SecureVersion;
    /** In OpenSSL's format; undefined: OpenSSL's default. */
    tlsCipherSuites: string | undefined;
    http2: boolean;
    http2StreamsMax: number;
    connectionsMax: number;
    anonymousConnectionsPerAddressMax: number;
    handshakeTimeoutMs: number;
    headersTimeoutMs: number;
    requestTimeoutMs: number;
  }>;

export type ListenerParts = ConnectionContext &
  Readonly<{
    callerOf: (socket: TLSSocket) => Caller;
    handle: (exchange: Exchange, refusal: Error | undefined) => void;
    /** Takes over an HTTP/1.1 connection that requests another protocol. */
    upgrade: (upgrade: Upgrade) => void;
  }>;

/** How long a client may resume a TLS session. Only a full handshake checks the certificate. */
const sessionTimeoutSeconds = 300;
const ticketKeyBytes = 48;
/** Checking a signature takes a tenth of a millisecond. */
const checkedInOneTurn = 64;
/**
 * How often, at least, Node checks for slow HTTP/1.1 connections. By its default of 30 s, a limit
 * of 15 s could become 45 s.
 */
const checkingIntervalMaxMs = 5000;
/**
 * After this long without a byte, the kernel probes whether the peer is alive, which takes ten more
 * seconds.
 */
const tcpKeepAliveMs = 15_000;
/** The memory of an HTTP/2 session besides answers: frames, headers, streams. */
const sessionOverheadBytes = 16 * 1024 * 1024;
/** How often the bytes on each connection are compared with its requests. */
const trafficCheckMs = 250;
/** A long certificate chain has some 10 KiB; Node keeps up to 128 KiB of an unfinished message. */
const handshakeBytesMax = 64 * 1024;
/** A load balancer may open many handshakes at once. */
const handshakesPerAddressMax = 1_000;
const mebibyte = 1024 * 1024;

export class Listener {
  readonly #server: Http2SecureServer;
  readonly #parts: ListenerParts;
  readonly #options: ListenerOptions;
  readonly #sockets = new Set<Socket>();
  readonly #handshakes = new EvictableSockets();
  /** Sockets without a certificate, or beyond their caller's quota. */
  readonly #unproven = new EvictableSockets();
  /** Turns of requests whose headers, or whose bodies, have arrived. */
  readonly #turns = new Turns();
  readonly #connections = new Map<TLSSocket, Connection>();
  readonly #bySession = new WeakMap<ServerHttp2Session, Connection>();
  /** The connection for the session that Node creates in the same tick. */
  #introducing: Connection | undefined;
  #pair: Pair;
  #authorities: TrustedAuthorities | undefined;
  #stopping = false;
  #cancelCheck = (): void => {};
  #onEmpty: () => void = () => {};

  constructor(pair: Pair, parts: ListenerParts, options: ListenerOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#pair = pair;
    this.#authorities = options.clientAuthorities;
    this.#server = createSecureServer({
      ...this.#context(),
      allowHTTP1: true,
      ...(options.http2 ? {} : { ALPNCallback: withoutHttp2 }),
      // Without a CA, Node would trust the CAs of the system. So no certificate is requested, and
      // everybody is anonymous.
      requestCert: options.clientAuthorities !== undefined,
      rejectUnauthorized: false,
      handshakeTimeout: options.handshakeTimeoutMs,
      sessionTimeout: sessionTimeoutSeconds,
      maxSessionMemory: Math.ceil((options.connectionBufferedBytesMax + sessionOverheadBytes) / mebibyte),
      settings: { enablePush: false },
    });
    // The HTTP/1.1 part of this server has the limits of node:http, which are missing in its type.
    Object.assign(
      this.#server as unknown as Pick<
        Server,
        'headersTimeout' | 'requestTimeout' | 'keepAliveTimeout' | 'maxHeadersCount' | 'closeIdleConnections'
      > & {
        connectionsCheckingInterval: number;
      },
      {
        headersTimeout: options.headersTimeoutMs,
        requestTimeout: options.requestTimeoutMs,
        keepAliveTimeout: options.keepAliveTimeoutMs,
        // No limit: Node ignores the headers after this many, and their bytes are bounded.
        maxHeadersCount: 0,
        // At a stop each connection ends itself, because Node counts a connection as idle once its
        // last answer is written, although requests wait on it.
        closeIdleConnections: () => {},
        connectionsCheckingInterval: Math.min(options.headersTimeoutMs, checkingIntervalMaxMs),
      },
    );
    this.#server.on('connection', (socket: Socket) => this.#accept(socket));
    // Must run before Node's own listener, which creates an HTTP/2 session with the current
    // settings.
    this.#server.prependListener('secureConnection', (socket) => this.#introduce(socket));
    this.#server.on('secureConnection', readThroughStream);
    this.#server.on('session', (session) => this.#carry(session));
    this.#server.on('sessionError', () => {});
    this.#server.on('tlsClientError', (_, socket) => socket.destroy());
    this.#server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket: Socket) => {
      const connection = this.#connections.get(socket as TLSSocket);
      if (connection !== undefined && code.startsWith('HPE_')) connection.parserFailed(code);
      else socket.destroy();
    });
    this.#server.on('request', (request, response) =>
      this.#handle(request as unknown as IncomingMessage, response as unknown as ServerResponse),
    );
    this.#server.on('checkExpectation', (request, response) =>
      this.#handle(request as unknown as IncomingMessage, response as unknown as ServerResponse),
    );
    // Over HTTP/1.1, the bytes after a CONNECT are not HTTP.
    this.#server.on('connect', (request: IncomingMessage, response: ServerResponse | Socket) =>
      isHttp2(request) ? this.#handle(request, response as ServerResponse) : void response.destroy(),
    );
    // Node would throw for a stream that was reset together with its headers, and end the process.
    this.#server.on('checkContinue', (request, response) => {
      if (response.stream?.destroyed !== true && response.stream?.closed !== true) response.writeContinue();
      this.#handle(request as unknown as IncomingMessage, response as unknown as ServerResponse);
    });
    this.#server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      const connection = this.#connections.get(socket as TLSSocket);
      if (connection === undefined || !connection.mayBeHandedOver || !isOfHttp1(request)) return void socket.destroy();
      const refusal = connection.refusal(request);
      if (refusal === undefined) connection.handOver();
      parts.upgrade({ request, socket, head, caller: connection.caller, refusal, becomeWatch: () => connection.becomeWatch() });
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get connections(): Iterable<Pick<Connection, 'peer' | 'protocol'>> {
    return this.#connections.values();
  }

  async listen(): Promise<void> {
    this.#server.listen(this.#options.securePort, this.#options.bindAddress);
    await once(this.#server, 'listening').catch((error: unknown) => {
      throw cannotListen(error, this.#options);
    });
    this.#checkTraffic();
  }

  #checkTraffic(): void {
    this.#cancelCheck = this.#parts.clock.after(trafficCheckMs, () => {
      for (const connection of this.#connections.values()) connection.checkTraffic();
      for (const socket of this.#handshakes.sockets) if (socket.bytesRead > handshakeBytesMax) socket.destroy();
      this.#checkTraffic();
    });
  }

  /** Serves new connections with this pair; open ones stay. */
  show(pair: Pair): void {
    this.#pair = pair;
    this.#server.setSecureContext(this.#context());
  }

  /**
   * Trusts these authorities for new connections, which cannot resume an earlier TLS session. An
   * open connection stays only if its caller would be the same. An anonymous connection whose
   * certificate is trusted from now on ends too, so that its client connects again with a name.
   * Resolves once every connection that must end has ended.
   */
  trust(authorities: TrustedAuthorities): Promise<void> {
    this.#authorities = authorities;
    this.#server.setSecureContext(this.#context());
    this.#server.setTicketKeys(randomBytes(ticketKeyBytes));
    // These handshakes use the former authorities.
    for (const socket of this.#handshakes.sockets) socket.destroy();
    return this.#endMisjudged(authorities);
  }

  async #endMisjudged(authorities: TrustedAuthorities): Promise<void> {
    let judged = 0;
    for (const [socket, connection] of this.#connections) {
      const isSame = connection.isTrustedAlikeBy(authorities) && isDeepStrictEqual(this.#parts.callerOf(socket), connection.caller);
      if (!isSame) connection.destroy();
      judged += 1;
      if (judged % checkedInOneTurn === 0) await turn();
    }
  }

  /** Stops listening, and announces to every client that its connection accepts no new requests. */
  beginStop(): void {
    this.#stopping = true;
    this.#cancelCheck();
    this.#server.close();
    for (const connection of this.#connections.values()) connection.close();
  }

  /** Resolves when every connection is closed; those left after `graceMs` are cut. */
  async finishStop(graceMs: number): Promise<void> {
    if (this.#sockets.size === 0) return;
    const { promise, resolve } = deferred<void>();
    const cancel = this.#parts.clock.after(graceMs, () => {
      for (const connection of this.#connections.values()) connection.destroy();
      for (const socket of this.#sockets) socket.destroy();
    });
    this.#onEmpty = resolve;
    await promise;
    cancel();
  }

  #context(): { cert: string; key: string; minVersion: SecureVersion; ciphers?: string; ca?: string } {
    const { cert, key } = this.#pair;
    const { tlsVersionMin: minVersion, tlsCipherSuites: ciphers } = this.#options;
    const ca = this.#authorities?.pem;
    return { cert, key, minVersion, ...(ciphers === undefined ? {} : { ciphers }), ...(ca === undefined ? {} : { ca }) };
  }

  #accept(socket: Socket): void {
    const from = endOf(socket);
    const isCrowded = from !== undefined && this.#handshakes.count(from) >= handshakesPerAddressMax;
    const isFull = this.#sockets.size >= this.#options.connectionsMax;
    const hasRoom = isCrowded
      ? this.#handshakes.dropOldest(from.network)
      : !isFull || this.#unproven.dropOldest() || this.#handshakes.dropOldest();
    if (from === undefined || !hasRoom) return void socket.destroy();

    socket.setNoDelay(true);
    socket.setKeepAlive(true, tcpKeepAliveMs);
    socket.on('error', () => {});
    this.#sockets.add(socket);
    this.#handshakes.add(from, socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.#handshakes.delete(from, socket);
      if (this.#sockets.size === 0) this.#onEmpty();
    });
  }

  /** Called after the handshake. Determines the caller once for all requests of the connection. */
  #introduce(socket: TLSSocket): void {
    this.#introducing = undefined;
    const end = endOf(socket);
    if (end === undefined) return void socket.destroy();
    const wire = this.#handshakes.get(end) ?? socket;
    this.#handshakes.delete(end);
    const caller = this.#parts.callerOf(socket);
    const opened = (exchange: Exchange): void => this.#serve(exchange, connection);
    const connection = new Connection({ socket, wire, caller }, { ...this.#parts, opened, turns: this.#turns }, this.#options);
    if (connection.peer.kind === 'anonymous' || !connection.isWithinQuota) this.#addUnproven(end, socket);
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#connections.delete(socket));
    // The handshake was under way when `beginStop` closed the other connections.
    if (this.#stopping) connection.close();
    this.#introducing = connection;
    if (socket.alpnProtocol === 'h2') this.#server.updateSettings(sessionSettings(connection.isLimited, this.#options.http2StreamsMax));
  }

  #addUnproven(end: End, socket: TLSSocket): void {
    const { servesTokens, anonymousConnectionsPerAddressMax: max } = this.#options;
    if (!servesTokens && this.#unproven.count(end) >= max) this.#unproven.dropOldest(end.network);
    this.#unproven.add(end, socket);
    socket.once('close', () => this.#unproven.delete(end, socket));
  }

  #carry(session: ServerHttp2Session): void {
    const connection = this.#introducing;
    // The peer reset the connection at the end of its handshake.
    if (connection === undefined) return session.destroy();
    this.#bySession.set(session, connection);
    connection.carry(session);
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connectionOf(request);
    // The connection closed before the request was read.
    if (connection === undefined) return void response.destroy();
    // The HTTP/2 settings have announced this limit to the client.
    if (connection.isLimited && !hasShortHeaders(request)) return connection.destroy();
    // CONNECT has no path.
    request.url ??= '';
    connection.receive(request, response);
  }

  #connectionOf(request: IncomingMessage | Http2ServerRequest): Connection | undefined {
    if (!isHttp2(request)) return this.#connections.get(request.socket as TLSSocket);
    const session = request.stream.session as ServerHttp2Session | undefined;
    return session && this.#bySession.get(session);
  }

  #serve(exchange: Exchange, connection: Connection): void {
    const refusal = connection.refusal(exchange.request);
    if (refusal === undefined) {
      const giveBack = connection.tryWait(exchange.request);
      if (giveBack !== undefined)
        this.#turns.add(connection.peer.id, () => {
          giveBack();
          this.#begin(exchange);
        });
      return;
    }
    connection.closeWithRefusal();
    this.#parts.handle(exchange, refusal);
  }

  /** Most requests that are cancelled at once end before their turn, and cost nothing more. */
  #begin(exchange: Exchange): void {
    if (exchange.wasCancelled) return;
    exchange.begin();
    this.#parts.handle(exchange, undefined);
  }
}

const advice: ReadonlyMap<unknown, string> = new Map([
  ['EADDRINUSE', 'another program listens there; choose another port with --secure-port (STRATA_SECURE_PORT)'],
  ['EACCES', 'this user may not open that port; choose one from 1024 on with --secure-port (STRATA_SECURE_PORT)'],
  ['EADDRNOTAVAIL', 'this machine does not have that address; choose another with --bind-address (STRATA_BIND_ADDRESS)'],
]);
const kcpPort = 6443;

/** The error names the option to change. */
function cannotListen(cause: unknown, { bindAddress, securePort }: Readonly<{ bindAddress: string; securePort: number }>): CacheError {
  const at = `${isIPv6(bindAddress) ? `[${bindAddress}]` : bindAddress}:${securePort}`;
  const code: unknown = cause instanceof Error ? Reflect.get(cause, 'code') : undefined;
  const ofKcp = code === 'EADDRINUSE' && securePort === kcpPort ? ` (${kcpPort} is also kcp's own)` : '';
  const why = advice.get(code);
  return new CacheError(`cannot listen at ${at}${why === undefined ? '' : `: ${why}${ofKcp}`}`, { cause });
}
