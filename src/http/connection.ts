/**
 * One TLS connection, from its handshake to the end of its socket: its caller, read once, and its
 * exchanges.
 *
 * N1 A connection lives no longer than its peer's certificate.
 * N2 When the socket closes, all exchanges of the connection end, because Node leaves some of them
 *    without any event (below).
 * N3 Over HTTP/2, a peer that answers no ping is gone; over HTTP/1.1 the kernel's keep-alive
 *    detects that.
 * N4 A peer is cut off once its cancelled requests outnumber its answered ones by more than
 *    `cancelledMax`.
 * N5 A connection is closed after `keepAliveTimeoutMs` without a request.
 * N6 Over HTTP/1.1 one request is answered at a time. A peer that pipelines more than
 *    `WaitingRequests` allows is cut off.
 * N7 A peer that sends much besides its requests is cut off (overhead-bytes.ts). So is one whose
 *    bodies come in tiny pieces (body-pieces.ts).
 * N8 A request that arrives while the connection closes is not handled, because its client could
 *    not learn the result. Over HTTP/2, GOAWAY says so.
 * N9 An HTTP/1.1 peer that has closed its side has `sendTimeoutMs` to receive the rest.
 *
 * Missing events, seen on Node 20, and the first and last on 22 and 24 as well:
 * - After a failed write, Node's TLS layer waits for that write for ever. If the frame was no
 *   stream's data (SETTINGS, or the headers of a watch), nothing reports the failure. HTTP/2 then
 *   stops reading, so it never sees the end of the socket. Over HTTP/1.1 Node reports the peer's end
 *   if that comes before the failure, and then waits. Only destroying the TLS socket helps.
 * - After an HTTP/2 session error (DATA on a stream that has ended), the session sends GOAWAY and
 *   emits nothing more.
 * - Answers to pipelined HTTP/1.1 requests, except the first, emit no `close` when the socket
 *   closes.
 * - A reset stream with a paused body emits `aborted` and no `close`.
 */
import type { X509Certificate } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { constants, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { Budget } from '../domain/base/budget.js';
import { atExpiry, callerAt, kindOf, type Caller } from '../domain/caller.js';
import { Liveness } from '../domain/base/liveness.js';
import type { Pace } from '../domain/base/pace.js';
import type { Clock } from '../domain/ports.js';
import { Refused } from '../domain/errors.js';
import { BodyPieces, readPieces } from './body-pieces.js';
import { Exchange, type ExchangeOwner } from './exchange.js';
import type { LimitName, Peer, Quota, Quotas } from './quotas.js';
import { headerBytesOf } from './session-settings.js';
import { hasBody, misfitOf } from './transport.js';
import type { Turns } from './turns.js';
import { OverheadBytes } from './overhead-bytes.js';
import { networkOf } from './evictable-sockets.js';
import { requestBytes, WaitingRequests } from './waiting-requests.js';

export const protocols = ['HTTP/2', 'HTTP/1.1', 'websocket'] as const;
type Protocol = (typeof protocols)[number];

/** What a listener passes on to each of its connections. */
export type ConnectionContext = Readonly<{
  clock: Clock;
  quotas: Quotas;
  /** Limits the bytes of long answers in a turn of the event loop. */
  pace: Pick<Pace, 'turn'>;
  /** Called when a limit is reached; returns the error to throw. */
  refused: (limit: LimitName, peer: Peer, caller: Caller) => Error;
}>;

type ConnectionParts = ConnectionContext &
  Readonly<{
    /** Shared by all connections. */
    turns: Pick<Turns, 'turn'>;
    /** Called when it is a request's turn on its connection. */
    opened: (exchange: Exchange) => void;
  }>;

/** The authorities whose client certificates are trusted. */
export type TrustedAuthorities = Readonly<{ pem: string; vouchesFor: (certificate: X509Certificate) => boolean }>;

export type ConnectionOptions = Readonly<{
  connectionBufferedBytesMax: number;
  sendTimeoutMs: number;
  pingIntervalMs: number;
  pongTimeoutMs: number;
  keepAliveTimeoutMs: number;
  /**
   * Whether callers without a certificate may request more than health, because another server may
   * check their tokens.
   */
  servesTokens: boolean;
}>;

/** A request to change the protocol. `refusal`: why it is refused. */
export type Upgrade = Readonly<{ request: IncomingMessage; socket: Duplex; head: Buffer; refusal: Error | undefined }> &
  Pick<Connection, 'caller' | 'becomeWatch'>;

/** A client may cancel requests, but one that only cancels (rapid reset) is cut off. */
const cancelledMax = 50;
/** The time limit for sending the last frame. */
const farewellMs = 1_000;

/** A connection after its handshake. `wire`: the socket under the TLS socket. */
type Introduced = Readonly<{ socket: TLSSocket; wire: Socket; caller: Caller }>;

export class Connection implements ExchangeOwner {
  readonly caller: Caller;
  readonly peer: Peer;
  readonly #socket: TLSSocket;
  readonly #wire: Socket;
  readonly #parts: ConnectionParts;
  readonly #options: ConnectionOptions;
  readonly clock: Clock;
  readonly quota: Quota;
  readonly bufferedBytes: Budget;
  readonly sendTimeoutMs: number;
  readonly pace: Pick<Pace, 'turn'>;
  partsDelivered = 0;
  /** Cancelled requests minus answered ones; never negative. */
  #cancelled = 0;
  readonly #exchanges = new Set<Exchange>();
  readonly #waiting: WaitingRequests;
  readonly #unasked = new OverheadBytes();
  readonly #pieces: BodyPieces<IncomingMessage>;
  readonly #openedMs: number;
  #session: ServerHttp2Session | undefined;
  /** Whether the caller may have this many connections. */
  readonly isWithinQuota: boolean;
  #isClosing = false;
  #isHandedOver = false;
  #isSentAway = false;
  #isClosed = false;
  readonly #cancelExpiry: () => void;
  #cancelIdle = (): void => {};
  #cancelHalfClosed = (): void => {};
  #liveness: Liveness | undefined;

  constructor({ socket, wire, caller }: Introduced, parts: ConnectionParts, options: ConnectionOptions) {
    this.#socket = socket;
    this.#wire = wire;
    this.caller = caller;
    this.peer = peerOf(caller, socket.remoteAddress ?? '');
    this.#parts = parts;
    this.#options = options;
    this.clock = parts.clock;
    this.#openedMs = parts.clock.now();
    this.sendTimeoutMs = options.sendTimeoutMs;
    this.pace = parts.pace;
    this.quota = parts.quotas.join(this.peer);
    // The caller's budget, because the answer under way may need the connection's whole budget.
    this.#waiting = new WaitingRequests(this.quota.bufferedBytes);
    this.#pieces = new BodyPieces(this.quota.bufferedBytes);
    this.bufferedBytes = new Budget(options.connectionBufferedBytesMax, this.quota.bufferedBytes);
    this.#cancelExpiry = atExpiry(caller, parts.clock, () => this.destroy());
    // Connections without a certificate are not counted, because health is for everybody. Instead,
    // the oldest is closed for a new one.
    this.isWithinQuota = this.peer.kind === 'anonymous' || this.quota.connections.tryReserve(1);
    if (!this.isWithinQuota) this.#destroySoon();
    socket.once('end', () => this.#halfClosed());
    socket.once('close', () => this.#closed());
  }

  get protocol(): Protocol {
    if (this.#isHandedOver) return 'websocket';
    return this.#session === undefined ? 'HTTP/1.1' : 'HTTP/2';
  }

  /** Whether the caller may request only health. */
  get isLimited(): boolean {
    return this.peer.kind === 'anonymous' && !this.#options.servesTokens;
  }

  /** Whether these authorities would trust the peer's certificate exactly as the handshake did. */
  isTrustedAlikeBy(authorities: TrustedAuthorities): boolean {
    const certificate = this.#socket.getPeerX509Certificate();
    return certificate === undefined || this.#socket.authorized === authorities.vouchesFor(certificate);
  }

  /** Called if the connection speaks HTTP/2. */
  carry(session: ServerHttp2Session): void {
    this.#session = session;
    session.on('error', () => {});
    session.once('close', () => {
      if (!this.#isSentAway) this.destroy();
    });
    let receivedBytes = 0;
    const ping = (): void => {
      receivedBytes = this.#socket.bytesRead;
      if (!session.destroyed) session.ping((error) => void (error === null && liveness.received()));
    };
    // On a slow link, a ping waits behind the bytes that are on their way. A peer that sends
    // anything is alive.
    const onDead = (): void => (this.#socket.bytesRead > receivedBytes ? liveness.received() : this.destroy());
    const liveness = new Liveness(this.clock, { ping, listening: () => true, onDead }, this.#options);
    this.#liveness = liveness;
    this.#startIdling();
  }

  /**
   * Called when Node's HTTP/1.1 parser fails. Answers 400 or 431. If an earlier request is still
   * unanswered, only closes, because the client would read this as the answer to that request.
   */
  parserFailed(code: string): void {
    if (this.#exchanges.size > 0 || this.#isHandedOver || !this.#socket.writable) return this.destroy();
    const status = code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
    this.#isClosing = true;
    // Ignore all further bytes.
    this.#socket.pause();
    this.#socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    this.#destroySoon();
  }

  receive(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isClosed) return;
    this.#unasked.request(headerBytesOf(request));
    if (hasBody(request)) readPieces(request, (bytes) => this.#takePiece(request, bytes));
    // Stop reading, because further requests would only wait in memory.
    if (this.#session === undefined && this.#isClosing) return void this.#socket.pause();
    if (this.#session !== undefined || this.#exchanges.size === 0) return this.#open(request, response);
    if (!this.#waiting.tryAdd(request, response)) this.#cutOff();
  }

  get callerNow(): Caller {
    return callerAt(this.caller, this.clock.wallMs());
  }

  get validUntilMs(): number | undefined {
    return this.caller.validUntilMs;
  }

  turn(): Promise<void> {
    return this.#parts.turns.turn(this.peer.id);
  }

  refused(limit: LimitName): Error {
    return this.#parts.refused(limit, this.peer, this.caller);
  }

  /** Cuts the connection off if its peer sends much that is no part of a request. */
  checkTraffic(): void {
    if (this.#isClosed) return;
    const { bytesRead, bytesWritten } = this.#socket;
    const [wireBytes, openMs, isHttp] = [this.#wire.bytesRead, this.clock.now() - this.#openedMs, !this.#isHandedOver];
    if (this.#unasked.isTooMuch({ wireBytes, bytesRead, bytesWritten, openMs, isHttp })) this.#cutOff();
  }

  /**
   * If the peer receives nothing and other exchanges of the connection wait for memory, the whole
   * connection ends: cutting its exchanges one by one would be too slow.
   */
  stalled(exchange: Exchange, anythingTaken: boolean): void {
    if (!anythingTaken && [...this.#exchanges].some(({ memory }) => memory.isAwaited)) this.destroy();
    else exchange.cut();
  }

  ended(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
    this.#pieces.ended(exchange.request);
    this.#cancelled = Math.max(0, this.#cancelled + (exchange.wasCancelled ? 1 : -1));
    if (this.#cancelled > cancelledMax && !this.#isSentAway) return this.#sendAway();
    if (this.#exchanges.size > 0 || this.#isClosed) return;
    const next = this.#waiting.next();
    if (next !== undefined) return this.#open(next.request, next.response);
    // A closing connection must not be used again, for example after a watch that ended because the
    // server stops.
    if (this.#isClosing) this.#leave();
    else if (this.#session !== undefined) this.#startIdling();
  }

  /**
   * Reserves memory for a request until its turn, and returns a function that releases it. Ends the
   * connection if the caller has no memory left.
   */
  tryWait(request: IncomingMessage): (() => void) | undefined {
    const waitingBytes = this.quota.waitingBytes;
    const bytes = requestBytes + headerBytesOf(request);
    if (waitingBytes.tryReserve(bytes)) return () => waitingBytes.release(bytes);
    this.#cutOff('waitingBytes');
    return undefined;
  }

  /** Why the request must be refused; undefined if it may be handled. */
  refusal(request: IncomingMessage): Error | undefined {
    if (!this.isWithinQuota) return this.refused('connections');
    const misfit = misfitOf(request);
    return misfit && new Refused(misfit);
  }

  /**
   * Closes after the refusal of a request. Over HTTP/2 the connection stays open after a malformed
   * request, because its other requests may be valid.
   */
  closeWithRefusal(): void {
    if (this.#session === undefined || !this.isWithinQuota) this.close();
  }

  /**
   * Not while a request is under way: the answer to the upgrade would precede or split the answer
   * to that request.
   */
  get mayBeHandedOver(): boolean {
    return this.#exchanges.size === 0 && !this.#isClosing;
  }

  /** Counts the connection as a watch until it ends. Throws Refused(429). */
  becomeWatch(): void {
    if (!this.quota.watches.tryReserve(1)) throw this.refused('watches');
    this.#socket.once('close', () => this.quota.watches.release(1));
  }

  /** From now on the connection is a websocket, whose own protocol ends it. */
  handOver(): void {
    this.#isHandedOver = true;
    this.#cancelExpiry();
  }

  /** Accepts no further requests, and closes once the earlier ones are answered. */
  close(): void {
    if (this.#isHandedOver) return;
    this.#isClosing = true;
    if (this.#session !== undefined) this.#session.close();
    else this.#announceEnd();
    if (this.#exchanges.size === 0) this.#leave();
  }

  /**
   * Sets `Connection: close` on the last answer, unless that answer's headers are sent. On an
   * earlier answer, the header would make Node end the connection.
   */
  #announceEnd(): void {
    const [underWay] = this.#exchanges;
    const last = this.#waiting.lastResponse ?? underWay?.response;
    if (last?.headersSent === false) last.setHeader('connection', 'close');
  }

  #takePiece(request: IncomingMessage, bytes: number): boolean {
    if (this.#isClosed) return false;
    this.#unasked.body(bytes);
    const isTaken = this.#pieces.tryReserve(request, bytes);
    if (!isTaken) this.#cutOff();
    return isTaken;
  }

  #open(request: IncomingMessage, response: ServerResponse): void {
    this.#cancelIdle();
    const exchange = new Exchange(request, response, this);
    this.#exchanges.add(exchange);
    this.#parts.opened(exchange);
  }

  #cutOff(limit: LimitName = 'requests'): void {
    this.refused(limit);
    this.destroy();
  }

  destroy(): void {
    // Destroy the session first. Otherwise nghttp2 would parse received bytes for streams that Node
    // does not create any more, which ends the process.
    if (this.#session?.destroyed === false) this.#session.destroy();
    // The session alone would keep the socket open and wait for a peer that may be dead.
    this.#socket.destroy();
    this.#closed();
  }

  /** Closes with ENHANCE_YOUR_CALM, which names the reason. */
  #sendAway(): void {
    if (this.#session === undefined || this.#session.destroyed) return this.destroy();
    this.#isSentAway = true;
    this.#session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    this.#session.destroy();
    this.#destroySoon();
  }

  /** Closes an idle connection, without waiting for a peer that does not close its side. */
  #leave(): void {
    if (this.#session === undefined) this.#socket.end();
    this.#destroySoon();
  }

  #destroySoon(): void {
    this.#cancelIdle();
    this.#cancelIdle = this.clock.after(farewellMs, () => this.destroy());
  }

  /** N9: Node closes the server's side too, which may wait for a failed write for ever. */
  #halfClosed(): void {
    if (this.#session !== undefined || this.#isHandedOver || this.#isClosed) return;
    this.#cancelHalfClosed = this.clock.after(this.sendTimeoutMs, () => this.destroy());
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelExpiry();
    this.#cancelHalfClosed();
    this.#liveness?.stop();
    if (this.#session?.destroyed === false) this.#session.destroy();
    for (const exchange of this.#exchanges) exchange.end();
    this.#waiting.clear();
    this.#pieces.close();
    this.#cancelIdle();
    if (this.isWithinQuota && this.peer.kind !== 'anonymous') this.quota.connections.release(1);
    this.#parts.quotas.leave(this.peer);
  }

  #startIdling(): void {
    if (this.#isClosed) return;
    this.#cancelIdle();
    this.#cancelIdle = this.clock.after(this.#options.keepAliveTimeoutMs, () => this.close());
  }
}

/** The id is the user, or the address if there is no certificate. */
function peerOf(caller: Caller, address: string): Peer {
  const kind = kindOf(caller);
  return { kind, id: kind === 'anonymous' ? `address ${networkOf(address)}` : `${kind} ${caller.user}` };
}
