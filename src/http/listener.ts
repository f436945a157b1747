/**
 * The socket: TLS with client certificates asked for but not demanded, HTTP/2 and HTTP/1.1, and limits on what a peer may do before
 * it is known.
 *
 * One address may have `handshakesPerAddressMax` handshakes under way, and, unless such callers may have tokens, `anonymousConnectionsPerAddressMax` connections without a
 * certificate; beyond that, and when the server is full, the oldest of them makes room. So they never keep out a peer that has one.
 *
 * A stop goes in this order: no new connections, GOAWAY on every HTTP/2 session and `Connection: close` on HTTP/1.1,
 * then the watches end, then writes finish. If streams ended first, clients would watch again on a dying connection.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createSecureServer, type Http2SecureServer, type Http2ServerRequest, type ServerHttp2Session } from 'node:http2';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { SecureVersion, TLSSocket } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Caller } from '../domain/caller.js';
import { deferred } from '../domain/deferred.js';
import { cannotListen } from './cannot-listen.js';
import { Connection, type ConnectionOptions, type ConnectionParts, type TrustedAuthorities, type Upgrade } from './connection.js';
import type { Exchange } from './exchange.js';
import { hasShortHeaders, sessionSettings, withoutHttp2 } from './session-settings.js';
import { isHttp2, isOfHttp1, takeBytesOnlyWhenAsked } from './transport.js';
import { Turns } from './turns.js';
import { endOf, UnprovenSockets, type End } from './unproven-sockets.js';

export type Pair = Readonly<{ cert: string; key: string }>;

export type ListenerOptions = ConnectionOptions &
  Readonly<{
    bindAddress: string;
    securePort: number;
    clientAuthorities: TrustedAuthorities | undefined;
    tlsVersionMin: SecureVersion;
    /** In OpenSSL's words; undefined: its own choice. */
    tlsCipherSuites: string | undefined;
    http2: boolean;
    http2StreamsMax: number;
    connectionsMax: number;
    anonymousConnectionsPerAddressMax: number;
    handshakeTimeoutMs: number;
    headersTimeoutMs: number;
    requestTimeoutMs: number;
  }>;

export type ListenerParts = Omit<ConnectionParts, 'opened' | 'turns'> &
  Readonly<{
    callerOf: (socket: TLSSocket) => Caller;
    handle: (exchange: Exchange, refusal: Error | undefined) => void;
    /** Takes over a connection of HTTP/1.1 that asks for another protocol. */
    upgrade: (upgrade: Upgrade) => void;
  }>;

/** A session whose client has lost its state must prove itself again: certificates are checked at the handshake only. */
const sessionTimeoutSeconds = 300;
const ticketKeyBytes = 48;
/** Checking a signature takes a tenth of a millisecond. */
const judgedInOneTurn = 64;
/** How often, at least, Node checks for HTTP/1.1 connections that take too long; its own 30 s would triple a shorter limit. */
const checkingIntervalMaxMs = 5000;
/** After how long without a byte the kernel probes whether a peer is still there; it takes ten more seconds to be sure. */
const tcpKeepAliveMs = 15_000;
/** Beside what is sent, HTTP/2 keeps frames, headers and streams in memory. */
const sessionOverheadBytes = 16 * 1024 * 1024;
/** How often what has come on each connection is compared with what was asked on it. */
const trafficCheckMs = 250;
/** A long chain of certificates has some ten; Node keeps 128 KiB of a message that does not end. */
const handshakeBytesMax = 64 * 1024;
/** A load balancer may bring many at once. */
const handshakesPerAddressMax = 1_000;
const mebibyte = 1024 * 1024;

export class Listener {
  readonly #server: Http2SecureServer;
  readonly #parts: ListenerParts;
  readonly #options: ListenerOptions;
  /** Open sockets, before and after their handshake. */
  readonly #sockets = new Set<Socket>();
  /** Those of them whose handshake is under way. */
  readonly #handshakes = new UnprovenSockets();
  /** Those of them without a certificate, or beyond what their caller may have. */
  readonly #unproven = new UnprovenSockets();
  /** Of requests whose headers, or whose bodies, are here. */
  readonly #turns = new Turns();
  readonly #connections = new Map<TLSSocket, Connection>();
  readonly #bySession = new WeakMap<ServerHttp2Session, Connection>();
  /** The connection whose session Node makes in the same tick. */
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
      // Without a CA of ours Node would trust the system's: then no certificate is asked for, and everybody is anonymous.
      requestCert: options.clientAuthorities !== undefined,
      rejectUnauthorized: false,
      handshakeTimeout: options.handshakeTimeoutMs,
      sessionTimeout: sessionTimeoutSeconds,
      maxSessionMemory: Math.ceil((options.connectionBufferedBytesMax + sessionOverheadBytes) / mebibyte),
      settings: { enablePush: false },
    });
    // The HTTP/1.1 half of this server is node:http's, with its own names for its limits.
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
        // All of them: Node passes over what comes behind the thousandth, and their bytes are bounded.
        maxHeadersCount: 0,
        // At a stop each connection ends itself. Node takes one for idle whose last answer is written, though it has requests that wait.
        closeIdleConnections: () => {},
        connectionsCheckingInterval: Math.min(options.headersTimeoutMs, checkingIntervalMaxMs),
      },
    );
    this.#server.on('connection', (socket: Socket) => this.#accept(socket));
    // Before Node's own listener, which makes an HTTP/2 session with the settings in force then.
    this.#server.prependListener('secureConnection', (socket) => this.#introduce(socket));
    this.#server.on('secureConnection', takeBytesOnlyWhenAsked);
    this.#server.on('session', (session) => this.#carry(session));
    this.#server.on('sessionError', () => {});
    this.#server.on('tlsClientError', (_, socket) => socket.destroy());
    this.#server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket: Socket) => {
      const connection = this.#connections.get(socket as TLSSocket);
      if (connection !== undefined && code.startsWith('HPE_')) connection.misread(code);
      else socket.destroy();
    });
    this.#server.on('request', (request, response) =>
      this.#handle(request as unknown as IncomingMessage, response as unknown as ServerResponse),
    );
    this.#server.on('checkExpectation', (request, response) =>
      this.#handle(request as unknown as IncomingMessage, response as unknown as ServerResponse),
    );
    // Over HTTP/1.1 what follows is not HTTP.
    this.#server.on('connect', (request: IncomingMessage, response: ServerResponse | Socket) =>
      isHttp2(request) ? this.#handle(request, response as ServerResponse) : void response.destroy(),
    );
    // Node itself would throw for a stream that was reset with it, and end the process.
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

  /** After their handshake. */
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

  /** New connections are served with this pair; open ones go on. */
  show(pair: Pair): void {
    this.#pair = pair;
    this.#server.setSecureContext(this.#context());
  }

  /**
   * From now on these are trusted: by new connections, which cannot resume an earlier session. Of the open ones only those
   * stay whose caller would be the same. One that was anonymous and would have a name now ends as well, to come back with it.
   * Resolves when none is left that should not be.
   */
  trust(authorities: TrustedAuthorities): Promise<void> {
    this.#authorities = authorities;
    this.#server.setSecureContext(this.#context());
    this.#server.setTicketKeys(randomBytes(ticketKeyBytes));
    // They began under the former authorities.
    for (const socket of this.#handshakes.sockets) socket.destroy();
    return this.#endMisjudged(authorities);
  }

  async #endMisjudged(authorities: TrustedAuthorities): Promise<void> {
    let judged = 0;
    for (const [socket, connection] of this.#connections) {
      const isSame = connection.isJudgedRightBy(authorities) && isDeepStrictEqual(this.#parts.callerOf(socket), connection.caller);
      if (!isSame) connection.destroy();
      judged += 1;
      if (judged % judgedInOneTurn === 0) await turn();
    }
  }

  /** Stops listening and signals to every client that its connection accepts nothing new. */
  beginStop(): void {
    this.#stopping = true;
    this.#cancelCheck();
    this.#server.close();
    for (const connection of this.#connections.values()) connection.close();
  }

  /** Resolves when every connection is gone; those left after `graceMs` are cut. */
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

  /** The handshake is done: determines the caller, once for all requests of the connection. */
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
    // Its handshake was still under way when the others were closed.
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
    // It was reset as its handshake ended.
    if (connection === undefined) return session.destroy();
    this.#bySession.set(session, connection);
    connection.carry(session);
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connectionOf(request);
    // Gone before its request was read.
    if (connection === undefined) return void response.destroy();
    // Over HTTP/2 the settings have told it how much it may send.
    if (connection.isLimited && !hasShortHeaders(request)) return connection.destroy();
    // CONNECT has no path.
    request.url ??= '';
    connection.take(request, response);
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

  /** Many are taken back by their turns, and cost no more. */
  #begin(exchange: Exchange): void {
    if (exchange.wasTakenBack) return;
    exchange.begin();
    this.#parts.handle(exchange, undefined);
  }
}
