/**
 * HTTP/2 connections to a server that share one set of certificates. A connection carries as many
 * requests as the server allows. When all connections are full, another one is opened, as in Go's
 * clients. Watches last for minutes, so a connection whose end the server has announced (GOAWAY)
 * keeps its requests but gets no more.
 *
 * Bounds: one connection is opened at a time, within `openMsMax`. At most `sessionsMax` are open,
 * besides those whose end was announced. A connection is closed if it leaves a ping unanswered, or
 * had no request between two pings. A stream without a reader fills its own window, `windowBytes`,
 * and delays no other stream, because Node extends the connection's window as bytes arrive.
 *
 * If a write to a TLS connection fails and another follows before Node reads, Node neither writes
 * nor reads any more, and reports nothing. So a request that is unanswered for `stallMsMax` causes
 * a ping, and a connection is closed if nothing could be written for `stallMsMax` after a ping.
 */
import {
  connect as connectSession,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { untilAborted } from '../domain/base/promises.js';
import { limitInterim } from '../domain/base/interim-answers.js';
import { UnreadBody, type UnreadMemory } from './unread-body.js';

/**
 * `tls`: the client's certificate, and the authorities that verify the server's. `origin`: the
 * server's scheme, host and port.
 */
export type Http2SessionsParts = Readonly<{ origin: string; tls: ConnectionOptions; clock: Clock }>;

/** `path` includes its query. `hasBody`: the caller writes a body and ends it. */
export type Http2Request = Readonly<{
  path: string;
  headers: Readonly<OutgoingHttpHeaders>;
  hasBody?: boolean;
  /** Counts the bytes of the answer that nobody has read. */
  unread?: UnreadMemory;
  signal: AbortSignal;
}>;

/** `body` can still be read after Node has ended the stream with its connection. */
export type SentRequest = Readonly<{ stream: ClientHttp2Stream; body: UnreadBody }>;

export type Http2SessionsOptions = Readonly<{
  openMsMax: number;
  pingIntervalMs: number;
  pingMsMax: number;
  /** If this many connections are full, a further request fails. */
  sessionsMax: number;
  /**
   * How many bytes the server may send on one stream before they are read. With a round trip of 40
   * ms, 256 KiB allow 6 MB a second.
   */
  windowBytes: number;
}>;

/** client-go's values: it pings after 30 s of silence, and waits 15 s for the answer. */
const patientSessions: Http2SessionsOptions = Object.freeze({
  openMsMax: 30_000,
  pingIntervalMs: 30_000,
  pingMsMax: 15_000,
  sessionsMax: 1_000,
  windowBytes: 64 * 1024,
});
const connectionWindowBytes = 1024 * 1024;
/** The limit of requests on a connection, even if the server allows more. */
const streamsMax = 1_000;
const stallMsMax = 5_000;
/** Even a server with many names sends only a few origins. */
const originsMax = 128;
/**
 * How long a server counts as HTTP/1.1 only. After that HTTP/2 is tried again, because the HTTP/1.1
 * answer may have come from a proxy or another server.
 */
const http1MsMax = 60_000;

/**
 * `requests`: the number under way. `allowed`: their maximum. `isIdle`: there was no request at the
 * last ping or since. `ping`: sends a ping now, unless one is unanswered.
 */
type Session = { readonly socket: TLSSocket; requests: number; allowed: number; isIdle: boolean; ping: () => void };

export class Http2Sessions {
  readonly #parts: Http2SessionsParts;
  readonly #options: Http2SessionsOptions;
  readonly #sessions = new Map<ClientHttp2Session, Session>();
  #opening: Promise<void> | undefined;
  /** Aborts the connection that is being opened. */
  #late: AbortController | undefined;
  #http1UntilMs = -Infinity;
  /** Requests that have no connection yet. */
  #waiting = 0;
  #isClosed = false;

  constructor(parts: Http2SessionsParts, options: Http2SessionsOptions = patientSessions) {
    this.#parts = parts;
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /**
   * Sends a request; returns undefined if the server does not speak HTTP/2. Throws the reason why
   * no connection could be opened, or the signal's reason.
   */
  async request(asked: Http2Request): Promise<SentRequest | undefined> {
    this.#waiting += 1;
    try {
      while (this.#parts.clock.now() >= this.#http1UntilMs) {
        const free = this.#free();
        if (free !== undefined) return this.#send(free, asked);
        if (this.#openCount() >= this.#options.sessionsMax)
          throw new CacheError('the server allows no more requests on any open connection');
        this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
        await untilAborted(this.#opening, asked.signal);
      }
      return undefined;
    } finally {
      this.#waiting -= 1;
      if (this.#isClosed && this.#waiting === 0) this.#end();
    }
  }

  /**
   * Serves the requests that wait already, and no later ones. Each connection closes when its last
   * request has ended.
   */
  close(): void {
    this.#isClosed = true;
    if (this.#waiting === 0) this.#end();
  }

  #end(): void {
    this.#late?.abort(new CacheError('the connections to the server are closed'));
    // Closing a connection with a request that has not been sent yet would refuse that request.
    for (const [session, { requests }] of this.#sessions) if (requests === 0) session.close();
  }

  /**
   * Does not count connections that get no new requests: their present requests bound their number.
   */
  #openCount(): number {
    return [...this.#sessions.keys()].filter(({ closed, destroyed }) => destroyed || !closed).length;
  }

  #free(): ClientHttp2Session | undefined {
    for (const [session, { requests, allowed }] of this.#sessions)
      if (requests < allowed && !session.closed && !session.destroyed) return session;
    return undefined;
  }

  #send(session: ClientHttp2Session, { path, headers, hasBody = false, unread, signal }: Http2Request): SentRequest {
    const stream = session.request({ ...headers, [constants.HTTP2_HEADER_PATH]: path }, { endStream: !hasBody, signal });
    const body = new UnreadBody(stream, { memory: unread, signal });
    // A server may send interim responses without end, even for a stream that was reset.
    limitInterim(stream, (error) => session.destroy(error));
    const of = this.#sessions.get(session);
    if (of === undefined) return { stream, body };
    of.requests += 1;
    of.isIdle = false;
    const cancelPing = this.#parts.clock.after(stallMsMax, of.ping);
    stream.once('response', cancelPing);
    stream.once('close', () => {
      cancelPing();
      of.requests -= 1;
      if (this.#isClosed && this.#waiting === 0) this.#end();
    });
    return { stream, body };
  }

  async #open(): Promise<void> {
    const { origin, tls, clock } = this.#parts;
    const { hostname, port } = new URL(origin);
    const late = new AbortController();
    this.#late = late;
    const cancel = clock.after(this.#options.openMsMax, () =>
      late.abort(new CacheError(`the server did not answer within ${this.#options.openMsMax / 1000} s`)),
    );
    try {
      const socket = await securely({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 443), ...tls }, late.signal);
      if (socket.alpnProtocol !== 'h2') {
        this.#http1UntilMs = clock.now() + http1MsMax;
        socket.destroy();
        return;
      }
      const settings = { enablePush: false, initialWindowSize: this.#options.windowBytes };
      await this.#begin(connectSession(origin, { createConnection: () => socket, settings }), {
        socket,
        signal: late.signal,
      });
    } finally {
      cancel();
      this.#late = undefined;
    }
  }

  /** Resolves once the server has said how many requests it allows. */
  async #begin(session: ClientHttp2Session, { socket, signal }: Readonly<{ socket: TLSSocket; signal: AbortSignal }>): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      signal.addEventListener('abort', () => session.destroy(signal.reason as Error), { once: true });
      session.once('remoteSettings', () => resolve());
      session.once('close', () => reject(new CacheError('the server has closed the connection')));
      // Once the connection is open, its requests report the error.
      session.on('error', reject);
    });
    const of: Session = { socket, requests: 0, allowed: allowedBy(session), isIdle: false, ping: () => {} };
    if (of.allowed === 0) {
      session.destroy();
      throw new CacheError('the server allows no requests on a connection');
    }
    session.on('remoteSettings', () => (of.allowed = allowedBy(session)));
    limitOrigins(session);
    session.setLocalWindowSize(connectionWindowBytes);
    this.#sessions.set(session, of);
    const stopPinging = this.#keepPinging(session, of);
    socket.once('close', () => {
      stopPinging();
      this.#sessions.delete(session);
    });
  }

  /** Returns a function that stops the pings. */
  #keepPinging(session: ClientHttp2Session, of: Session): () => void {
    const { clock } = this.#parts;
    const { pingIntervalMs, pingMsMax } = this.#options;
    const { socket } = of;
    let cancel = (): void => {};
    let cancelStall = (): void => {};
    let isUnanswered = false;
    let isOver = false;
    const later = (delayMs: number, task: () => void): void => {
      if (!isOver) cancel = clock.after(delayMs, task);
    };
    const end = (why: string): void => {
      session.destroy(new CacheError(why));
      // The session leaves the socket open until Node has written everything.
      socket.destroy();
    };
    // On a slow link, the answer to the ping waits behind other bytes. A server that sends any
    // bytes is alive.
    const judgeLater = (): void => {
      const heardBytes = socket.bytesRead;
      later(pingMsMax, () => {
        if (socket.bytesRead > heardBytes) judgeLater();
        else end('the server did not answer a ping');
      });
    };
    of.ping = (): void => {
      if (isUnanswered || isOver) return;
      cancel();
      if (of.isIdle) session.close();
      of.isIdle = of.requests === 0;
      // Both ends have agreed to close. If the peer then sends nothing, the socket stays open and
      // the session reports nothing.
      if (session.destroyed) return later(pingMsMax, () => socket.destroy());
      isUnanswered = true;
      judgeLater();
      const sentBytes = socket.bytesWritten;
      cancelStall = clock.after(stallMsMax, () => {
        if (socket.bytesWritten === sentBytes) end('nothing can be written to the connection');
      });
      session.ping(() => {
        isUnanswered = false;
        cancel();
        cancelStall();
        later(pingIntervalMs, of.ping);
      });
    };
    later(pingIntervalMs, of.ping);
    return () => {
      isOver = true;
      cancel();
      cancelStall();
    };
  }
}

/** Limits the origins that a server sends, because Node keeps each of them. */
function limitOrigins(session: ClientHttp2Session): void {
  let count = 0;
  session.on('origin', (origins: readonly string[]) => {
    count += origins.length;
    if (count > originsMax) session.destroy(new CacheError(`the server sent more than ${originsMax} origins`));
  });
}

function allowedBy(session: ClientHttp2Session): number {
  return Math.min(session.remoteSettings.maxConcurrentStreams ?? streamsMax, streamsMax);
}

function securely(options: ConnectionOptions, signal: AbortSignal): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ ...options, ALPNProtocols: ['h2', 'http/1.1'] });
    signal.addEventListener('abort', () => socket.destroy(signal.reason as Error), { once: true });
    socket.once('secureConnect', () => resolve(socket));
    socket.once('close', () => reject(new CacheError('the server has closed the connection')));
    // Later errors are reported by the session.
    socket.on('error', reject);
  });
}
