/**
 * One TLS connection, from its handshake to the end of its socket: who is at the other end, read once, and the exchanges it carries.
 *
 * N1 It lives no longer than its peer's certificate.
 * N2 When its socket is gone, so are all its exchanges: Node leaves some of them without any event (below).
 * N3 A peer that answers no ping over HTTP/2 is gone; over HTTP/1.1 the kernel's keep-alive finds that out.
 * N4 A peer that takes back over `takenBackMax` requests more than it lets the server answer is cut off.
 * N5 It is closed when it has stood idle for `keepAliveTimeoutMs`.
 * N6 Over HTTP/1.1 one request is answered at a time. A peer that has more behind it than `WaitingRequests` takes is cut off.
 * N7 A peer that sends much beside its requests is cut off (unasked-bytes.ts), and so is one whose bodies come in crumbs (body-pieces.ts).
 * N8 A request that comes while the connection closes is not handled: nobody could learn what became of it. Over HTTP/2, GOAWAY tells the peer so.
 *
 * Events that do not come, seen on Node 20, and the first and last on 22 and 24 as well:
 * - After a failed write Node's TLS layer waits for it for ever. If the frame belonged to no stream's data (SETTINGS, or the headers of a watch), nobody
 *   learns of it. HTTP/2 then stops reading, so it never sees the end of the socket. Only destroying the TLS socket ends it.
 * - An HTTP/2 session that gives up (DATA on a stream that has ended) sends GOAWAY and falls silent.
 * - Answers to pipelined HTTP/1.1 requests, but for the first, emit no `close` when the socket goes.
 * - A reset stream with a paused body emits `aborted` and no `close`.
 */
import type { X509Certificate } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { constants, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { Budget } from '../domain/budget.js';
import { atExpiry, callerAt, kindOf, type Caller } from '../domain/caller.js';
import { Liveness } from '../domain/liveness.js';
import type { Pace } from '../domain/pace.js';
import type { Clock } from '../domain/ports.js';
import { Refused } from '../domain/errors.js';
import { BodyPieces, takePieces } from './body-pieces.js';
import { Exchange, type ExchangeOwner } from './exchange.js';
import type { LimitName, Peer, Quota, Quotas } from './quotas.js';
import { headerBytesOf } from './session-settings.js';
import { hasBody, misfitOf } from './transport.js';
import type { Turns } from './turns.js';
import { UnaskedBytes } from './unasked-bytes.js';
import { networkOf } from './unproven-sockets.js';
import { requestBytes, WaitingRequests } from './waiting-requests.js';

/** What is spoken on a connection. */
export const protocols = ['HTTP/2', 'HTTP/1.1', 'websocket'] as const;
type Protocol = (typeof protocols)[number];

export type ConnectionParts = Readonly<{
  clock: Clock;
  quotas: Quotas;
  /** What is written of long answers in a turn of the event loop. */
  pace: Pick<Pace, 'turn'>;
  /** Of all connections together. */
  turns: Pick<Turns, 'turn'>;
  /** Called when a limit is reached; returns what to throw. */
  refused: (limit: LimitName, peer: Peer, caller: Caller) => Error;
  /** Called when a request's turn on its connection has come. */
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
  /** Whether callers without a certificate may ask for more than health, because they may have tokens that somebody else checks. */
  servesTokens: boolean;
}>;

/** A request for another protocol. `refusal`: why it is refused. */
export type Upgrade = Readonly<{ request: IncomingMessage; socket: Duplex; head: Buffer; refusal: Error | undefined }> &
  Pick<Connection, 'caller' | 'becomeWatch'>;

/** A client may take requests back; one that asks only to take back (rapid reset) is cut off. */
const takenBackMax = 50;
/** How long the last frame may take to leave. */
const farewellMs = 1_000;

/** What is known of a connection once its handshake is done. `wire`: the socket under its TLS. */
type Introduced = Readonly<{ socket: TLSSocket; wire: Socket; caller: Caller }>;

export class Connection implements ExchangeOwner {
  readonly caller: Caller;
  readonly peer: Peer;
  readonly #socket: TLSSocket;
  /** The socket under its TLS. */
  readonly #wire: Socket;
  readonly #parts: ConnectionParts;
  readonly #options: ConnectionOptions;
  readonly clock: Clock;
  readonly quota: Quota;
  readonly bufferedBytes: Budget;
  readonly sendTimeoutMs: number;
  readonly pace: Pick<Pace, 'turn'>;
  partsTaken = 0;
  /** How many more requests the peer has taken back than it let the server answer. */
  #takenBack = 0;
  readonly #exchanges = new Set<Exchange>();
  readonly #waiting: WaitingRequests;
  readonly #unasked = new UnaskedBytes();
  readonly #pieces: BodyPieces<IncomingMessage>;
  readonly #openedMs: number;
  #session: ServerHttp2Session | undefined;
  /** Whether it is within what its caller may open. */
  readonly isWithinQuota: boolean;
  #isClosing = false;
  #isHandedOver = false;
  #isSentAway = false;
  #isClosed = false;
  readonly #cancelExpiry: () => void;
  #cancelIdle = (): void => {};
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
    // Not room of the connection, which the answer under way may need as a whole.
    this.#waiting = new WaitingRequests(this.quota.bufferedBytes);
    this.#pieces = new BodyPieces(this.quota.bufferedBytes);
    this.bufferedBytes = new Budget(options.connectionBufferedBytesMax, this.quota.bufferedBytes);
    this.#cancelExpiry = atExpiry(caller, parts.clock, () => this.destroy());
    // A caller without a certificate makes room for others, and may always ask for health.
    this.isWithinQuota = this.peer.kind === 'anonymous' || this.quota.connections.tryTake(1);
    if (!this.isWithinQuota) this.#destroySoon();
    socket.once('close', () => this.#closed());
  }

  get protocol(): Protocol {
    if (this.#isHandedOver) return 'websocket';
    return this.#session === undefined ? 'HTTP/1.1' : 'HTTP/2';
  }

  /** Whether its caller may ask for nothing but health. */
  get isLimited(): boolean {
    return this.peer.kind === 'anonymous' && !this.#options.servesTokens;
  }

  /** Whether these authorities would say of its peer what the handshake said. */
  isJudgedRightBy(authorities: TrustedAuthorities): boolean {
    const certificate = this.#socket.getPeerX509Certificate();
    return certificate === undefined || this.#socket.authorized === authorities.vouchesFor(certificate);
  }

  /** It speaks HTTP/2. */
  carry(session: ServerHttp2Session): void {
    this.#session = session;
    session.on('error', () => {});
    session.once('close', () => {
      if (!this.#isSentAway) this.destroy();
    });
    let heardBytes = 0;
    const ask = (): void => {
      heardBytes = this.#socket.bytesRead;
      if (!session.destroyed) session.ping((error) => void (error === null && liveness.heard()));
    };
    // On a slow link a ping waits behind what is on its way; a peer that reads that is there.
    const dead = (): void => (this.#socket.bytesRead > heardBytes ? liveness.heard() : this.destroy());
    const liveness = new Liveness(this.clock, { ask, listening: () => true, dead }, this.#options);
    this.#liveness = liveness;
    this.#startIdling();
  }

  /** Node's parser of HTTP/1.1 has found what is no request. That is said, unless an earlier request is due an answer, for which it would be taken. */
  misread(code: string): void {
    if (this.#exchanges.size > 0 || this.#isHandedOver || !this.#socket.writable) return this.destroy();
    const status = code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
    this.#isClosing = true;
    // What follows is not looked at.
    this.#socket.pause();
    this.#socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    this.#destroySoon();
  }

  /** A request has come in. */
  take(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isClosed) return;
    this.#unasked.request(headerBytesOf(request));
    if (hasBody(request)) takePieces(request, (bytes) => this.#takePiece(request, bytes));
    // What follows it would only wait in memory.
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

  /** Ends it if its peer sends much that is no part of a request. */
  checkTraffic(): void {
    if (this.#isClosed) return;
    const { bytesRead, bytesWritten } = this.#socket;
    const [wireBytes, openMs, isHttp] = [this.#wire.bytesRead, this.clock.now() - this.#openedMs, !this.#isHandedOver];
    if (this.#unasked.isTooMuch({ wireBytes, bytesRead, bytesWritten, openMs, isHttp })) this.#cutOff();
  }

  /** What the exchange holds in memory keeps the rest of its connection waiting: cutting one after the other would take as long as there are. */
  stalled(exchange: Exchange, anythingTaken: boolean): void {
    if (!anythingTaken && [...this.#exchanges].some(({ room }) => room.isAwaited)) this.destroy();
    else exchange.cut();
  }

  ended(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
    this.#pieces.ended(exchange.request);
    this.#takenBack = Math.max(0, this.#takenBack + (exchange.wasTakenBack ? 1 : -1));
    if (this.#takenBack > takenBackMax && !this.#isSentAway) return this.#sendAway();
    if (this.#exchanges.size > 0 || this.#isClosed) return;
    const next = this.#waiting.next();
    if (next !== undefined) return this.#open(next.request, next.response);
    // A watch ended because the server stops: its connection must not be used again.
    if (this.#isClosing) this.#leave();
    else if (this.#session !== undefined) this.#startIdling();
  }

  /** Takes room for a request until its turn comes, and says how it is given back. Where its caller has none left, the connection is ended. */
  tryWait(request: IncomingMessage): (() => void) | undefined {
    const room = this.quota.waitingBytes;
    const bytes = requestBytes + headerBytesOf(request);
    if (room.tryTake(bytes)) return () => room.give(bytes);
    this.#cutOff('waitingBytes');
    return undefined;
  }

  /** Why it may not ask for that. */
  refusal(request: IncomingMessage): Error | undefined {
    if (!this.isWithinQuota) return this.refused('connections');
    const misfit = misfitOf(request);
    return misfit && new Refused(misfit);
  }

  /** Its last answer is a refusal of that. Over HTTP/2 a request that does not fit says nothing of the others. */
  closeWithRefusal(): void {
    if (this.#session === undefined || !this.isWithinQuota) this.close();
  }

  /** Not while a request is under way: the upgrade would be answered before it, or into it. */
  get mayBeHandedOver(): boolean {
    return this.#exchanges.size === 0 && !this.#isClosing;
  }

  /** It goes on as what lasts, and counts as a watch until it ends. Throws Refused(429). */
  becomeWatch(): void {
    if (!this.quota.watches.tryTake(1)) throw this.refused('watches');
    this.#socket.once('close', () => this.quota.watches.give(1));
  }

  /** It is a websocket from now on, whose own protocol handles its end. */
  handOver(): void {
    this.#isHandedOver = true;
    this.#cancelExpiry();
  }

  /** Accepts nothing new; closes once what has come is answered. */
  close(): void {
    if (this.#isHandedOver) return;
    this.#isClosing = true;
    if (this.#session !== undefined) this.#session.close();
    else this.#announceEnd();
    if (this.#exchanges.size === 0) this.#leave();
  }

  /** The last answer says so, unless it has begun. After an earlier one Node would end the connection. */
  #announceEnd(): void {
    const [underWay] = this.#exchanges;
    const last = this.#waiting.lastResponse ?? underWay?.response;
    if (last?.headersSent === false) last.setHeader('connection', 'close');
  }

  #takePiece(request: IncomingMessage, bytes: number): boolean {
    if (this.#isClosed) return false;
    this.#unasked.body(bytes);
    const isTaken = this.#pieces.tryTake(request, bytes);
    if (!isTaken) this.#cutOff();
    return isTaken;
  }

  #open(request: IncomingMessage, response: ServerResponse): void {
    this.#cancelIdle();
    const exchange = new Exchange(request, response, this);
    this.#exchanges.add(exchange);
    this.#parts.opened(exchange);
  }

  /** Its peer costs more than a peer may. */
  #cutOff(limit: LimitName = 'requests'): void {
    this.refused(limit);
    this.destroy();
  }

  /** Ends it, and whatever it carries. */
  destroy(): void {
    // The session first: were the socket gone, nghttp2 would read on in what has come, for streams that Node no longer makes, and end the process.
    if (this.#session?.destroyed === false) this.#session.destroy();
    // The session alone would wait for a peer that may be dead, with the socket open.
    this.#socket.destroy();
    this.#closed();
  }

  /** Sends the reason before it closes: ENHANCE_YOUR_CALM. */
  #sendAway(): void {
    if (this.#session === undefined || this.#session.destroyed) return this.destroy();
    this.#isSentAway = true;
    this.#session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    this.#session.destroy();
    this.#destroySoon();
  }

  /** Nothing is under way any more. Does not wait for a peer that does not close its side. */
  #leave(): void {
    if (this.#session === undefined) this.#socket.end();
    this.#destroySoon();
  }

  #destroySoon(): void {
    this.#cancelIdle();
    this.#cancelIdle = this.clock.after(farewellMs, () => this.destroy());
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelExpiry();
    this.#liveness?.stop();
    if (this.#session?.destroyed === false) this.#session.destroy();
    for (const exchange of this.#exchanges) exchange.end();
    this.#waiting.clear();
    this.#pieces.close();
    this.#cancelIdle();
    if (this.isWithinQuota && this.peer.kind !== 'anonymous') this.quota.connections.give(1);
    this.#parts.quotas.leave(this.peer);
  }

  #startIdling(): void {
    if (this.#isClosed) return;
    this.#cancelIdle();
    this.#cancelIdle = this.clock.after(this.#options.keepAliveTimeoutMs, () => this.close());
  }
}

/** A user; before there is one, an address. */
function peerOf(caller: Caller, address: string): Peer {
  const kind = kindOf(caller);
  return { kind, id: kind === 'anonymous' ? `address ${networkOf(address)}` : `${kind} ${caller.user}` };
}
