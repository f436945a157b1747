/**
 * HTTP/2 connections to a server, made with one set of certificates. A connection carries as many requests as the server allows; a further one is opened
 * when all are full, as Go's clients do it. Watches last for minutes, so a connection whose end the server has announced (GOAWAY) keeps
 * its own and gets no more.
 *
 * Bounds: one connection is being opened at a time, `openMsMax` long, and `sessionsMax` are open beside those whose end was announced. One that leaves a ping unanswered is ended, and so is one that had no request
 * between two pings. A stream that nobody reads fills its own window, `windowBytes`, and delays no other: Node gives back the connection's as bytes come.
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
import { untilAborted } from '../domain/until-aborted.js';
import { limitInterim } from '../domain/interim-answers.js';
import { UnreadBody, type UnreadRoom } from './unread-body.js';

/** `tls`: certificates, and what the server's is checked against. `origin`: its scheme, host and port. */
export type Http2SessionsParts = Readonly<{ origin: string; tls: ConnectionOptions; clock: Clock }>;

/** `path` has its query. `hasBody`: whoever asks writes one, and ends it. */
export type Http2Request = Readonly<{
  path: string;
  headers: Readonly<OutgoingHttpHeaders>;
  hasBody?: boolean;
  /** For what of the answer nobody takes. */
  unread?: UnreadRoom;
  signal: AbortSignal;
}>;

/** `body`: of the answer. The stream, which Node ends with its connection, may have gone before it. */
export type Asked = Readonly<{ stream: ClientHttp2Stream; body: UnreadBody }>;

export type Http2SessionsOptions = Readonly<{
  /** How long opening a connection may take. */
  openMsMax: number;
  /** How often a connection is asked whether it lives, and how long the answer may take. */
  pingIntervalMs: number;
  pingMsMax: number;
  /** With as many that take requests, one that finds no room fails. */
  sessionsMax: number;
  /** What may be on its way on one stream at once: of a server that answers after 40 ms, 256 KiB are 6 MB a second. */
  windowBytes: number;
}>;

/** As client-go, which asks a connection that was silent for 30 s whether it lives, and gives it 15 s. */
const patientSessions: Http2SessionsOptions = Object.freeze({
  openMsMax: 30_000,
  pingIntervalMs: 30_000,
  pingMsMax: 15_000,
  sessionsMax: 1_000,
  windowBytes: 64 * 1024,
});
/** Of all streams of a connection together. */
const connectionWindowBytes = 1024 * 1024;
/** Even where the server allows more. */
const streamsMax = 1_000;
/** Servers that serve many names name a few. */
const originsMax = 128;
/** A server, or what is before it, that speaks HTTP/1.1 alone is asked again then: it may have been another one. */
const http1MsMax = 60_000;

/** `requests`: under way. `allowed`: how many may be. `isIdle`: it had none since the last ping. */
type Session = { readonly socket: TLSSocket; requests: number; allowed: number; isIdle: boolean };

export class Http2Sessions {
  readonly #parts: Http2SessionsParts;
  readonly #options: Http2SessionsOptions;
  readonly #sessions = new Map<ClientHttp2Session, Session>();
  #opening: Promise<void> | undefined;
  /** Ends what is being opened. */
  #late: AbortController | undefined;
  /** Until when the server is taken to speak HTTP/1.1 alone. */
  #http1UntilMs = -Infinity;
  /** Requests that have no connection yet. */
  #waiting = 0;
  #isClosed = false;

  constructor(parts: Http2SessionsParts, options: Http2SessionsOptions = patientSessions) {
    this.#parts = parts;
    this.#options = options;
  }

  /** Connections that are open. */
  get size(): number {
    return this.#sessions.size;
  }

  /** A request that was sent; undefined when the server speaks no HTTP/2. Throws what kept a connection from being opened, or the signal's reason. */
  async request(asked: Http2Request): Promise<Asked | undefined> {
    this.#waiting += 1;
    try {
      while (this.#parts.clock.now() >= this.#http1UntilMs) {
        const free = this.#free();
        if (free !== undefined) return this.#send(free, asked);
        if (this.#openCount() >= this.#options.sessionsMax) throw new CacheError('every connection to the server is full');
        this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
        await untilAborted(this.#opening, asked.signal);
      }
      return undefined;
    } finally {
      this.#waiting -= 1;
      if (this.#isClosed && this.#waiting === 0) this.#end();
    }
  }

  /** Serves the requests that wait, and no more. Each connection is closed when its last request has ended. */
  close(): void {
    this.#isClosed = true;
    if (this.#waiting === 0) this.#end();
  }

  #end(): void {
    this.#late?.abort(new CacheError('the connections to the server are closed'));
    // One that is closed beside a request that is not on its way yet would refuse it.
    for (const [session, { requests }] of this.#sessions) if (requests === 0) session.close();
  }

  /** One that only waits for the end of its requests is bounded by these. */
  #openCount(): number {
    return [...this.#sessions.keys()].filter(({ closed, destroyed }) => destroyed || !closed).length;
  }

  #free(): ClientHttp2Session | undefined {
    for (const [session, { requests, allowed }] of this.#sessions)
      if (requests < allowed && !session.closed && !session.destroyed) return session;
    return undefined;
  }

  #send(session: ClientHttp2Session, { path, headers, hasBody = false, unread, signal }: Http2Request): Asked {
    const stream = session.request({ ...headers, [constants.HTTP2_HEADER_PATH]: path }, { endStream: !hasBody, signal });
    const body = new UnreadBody(stream, { room: unread, signal });
    // What has been reset may be answered on and on.
    limitInterim(stream, (error) => session.destroy(error));
    const of = this.#sessions.get(session);
    if (of === undefined) return { stream, body };
    of.requests += 1;
    of.isIdle = false;
    stream.once('close', () => {
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
    const cancel = clock.after(this.#options.openMsMax, () => late.abort(new CacheError('the server does not answer')));
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
      // Of a connection that is open, the requests say what has ended it.
      session.on('error', reject);
    });
    const of: Session = { socket, requests: 0, allowed: allowedBy(session), isIdle: false };
    if (of.allowed === 0) {
      session.destroy();
      throw new CacheError('the server allows no requests on a connection');
    }
    session.on('remoteSettings', () => (of.allowed = allowedBy(session)));
    limitOrigins(session);
    session.setLocalWindowSize(connectionWindowBytes);
    this.#sessions.set(session, of);
    const stopPinging = this.#ping(session, of);
    socket.once('close', () => {
      stopPinging();
      this.#sessions.delete(session);
    });
  }

  /** Returns what stops it. */
  #ping(session: ClientHttp2Session, of: Session): () => void {
    const { clock } = this.#parts;
    const { pingIntervalMs, pingMsMax } = this.#options;
    let cancel = (): void => {};
    let isOver = false;
    const later = (delayMs: number, task: () => void): void => {
      if (!isOver) cancel = clock.after(delayMs, task);
    };
    // On a slow link the answer waits behind what is on its way; a server that sends that is there.
    const judgeLater = (): void => {
      const heardBytes = of.socket.bytesRead;
      later(pingMsMax, () => {
        if (of.socket.bytesRead > heardBytes) judgeLater();
        else session.destroy(new CacheError('the server answers no ping'));
      });
    };
    const ask = (): void => {
      if (of.isIdle) session.close();
      of.isIdle = of.requests === 0;
      // The two ends have agreed on its end, but a peer that has fallen silent since leaves the socket open, and the session says nothing.
      if (session.destroyed) return later(pingMsMax, () => of.socket.destroy());
      judgeLater();
      session.ping(() => {
        cancel();
        later(pingIntervalMs, ask);
      });
    };
    later(pingIntervalMs, ask);
    return () => {
      isOver = true;
      cancel();
    };
  }
}

/** Node keeps each origin that a server names as its own. */
function limitOrigins(session: ClientHttp2Session): void {
  let count = 0;
  session.on('origin', (origins: readonly string[]) => {
    count += origins.length;
    if (count > originsMax) session.destroy(new CacheError('the server names origins without end'));
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
    // What breaks it later is its session's.
    socket.on('error', reject);
  });
}
