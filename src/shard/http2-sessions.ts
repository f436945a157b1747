/**
 * HTTP/2 connections to a shard, made with one set of certificates. A connection carries as many requests as the shard allows; a further one is opened
 * when all are full, as Go's clients do it. Watches last for minutes, so a connection whose end the shard has announced (GOAWAY) keeps
 * its own and gets no more.
 *
 * Bounds: one connection is being opened at a time, `openMsMax` long; one that leaves a ping unanswered is ended. A stream that nobody reads fills its
 * own window, 64 KiB, and delays no other.
 */
import { connect as connectSession, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { untilAborted } from '../domain/until-aborted.js';

/** `tls`: certificates, and what the shard's is checked against. `origin`: its scheme, host and port. */
export type Http2SessionsParts = Readonly<{ origin: string; tls: ConnectionOptions; clock: Clock }>;

/** `path` has its query. */
export type Http2Request = Readonly<{ path: string; headers: Readonly<Record<string, string>>; signal: AbortSignal }>;

const openMsMax = 30_000;
/** As client-go, which asks a connection that was silent for 30 s whether it lives, and gives it 15 s. */
const pingIntervalMs = 30_000;
const pingMsMax = 15_000;
/** Of all streams of a connection together. */
const connectionWindowBytes = 1024 * 1024;
/** Even where the shard allows more. */
const streamsMax = 1_000;

export class Http2Sessions {
  readonly #parts: Http2SessionsParts;
  /** How many requests each has. */
  readonly #sessions = new Map<ClientHttp2Session, number>();
  #opening: Promise<void> | undefined;
  #speaksHttp1 = false;
  #isClosed = false;

  constructor(parts: Http2SessionsParts) {
    this.#parts = parts;
  }

  /** A request that was sent; undefined when the shard speaks no HTTP/2. Throws what kept a connection from being opened, or the signal's reason. */
  async request(asked: Http2Request): Promise<ClientHttp2Stream | undefined> {
    while (!this.#speaksHttp1) {
      const free = [...this.#sessions].find(([session, requests]) => hasRoom(session, requests));
      if (free !== undefined) return this.#send(free[0], asked);
      if (this.#isClosed) throw new CacheError('the connections to the shard are closed');
      this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
      await untilAborted(this.#opening, asked.signal);
    }
    return undefined;
  }

  /** No more connections are made. Each that is open is closed when its last request has ended. */
  close(): void {
    this.#isClosed = true;
    for (const session of this.#sessions.keys()) session.close();
  }

  #send(session: ClientHttp2Session, { path, headers, signal }: Http2Request): ClientHttp2Stream {
    const stream = session.request({ ...headers, [constants.HTTP2_HEADER_PATH]: path }, { endStream: true, signal });
    this.#sessions.set(session, (this.#sessions.get(session) ?? 0) + 1);
    stream.once('close', () => {
      const requests = this.#sessions.get(session);
      if (requests !== undefined) this.#sessions.set(session, requests - 1);
    });
    return stream;
  }

  async #open(): Promise<void> {
    const { origin, tls, clock } = this.#parts;
    const { hostname, port } = new URL(origin);
    const late = new AbortController();
    const cancel = clock.after(openMsMax, () => late.abort(new CacheError('the shard does not answer')));
    try {
      const socket = await securely({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 443), ...tls }, late.signal);
      if (socket.alpnProtocol !== 'h2') {
        this.#speaksHttp1 = true;
        socket.destroy();
        return;
      }
      await this.#begin(connectSession(origin, { createConnection: () => socket, settings: { enablePush: false } }), late.signal);
    } finally {
      cancel();
    }
  }

  /** Resolves once the shard has said how many requests it allows. */
  async #begin(session: ClientHttp2Session, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      signal.addEventListener('abort', () => session.destroy(signal.reason as Error), { once: true });
      session.once('remoteSettings', () => resolve());
      session.once('close', () => reject(new CacheError('the shard has closed the connection')));
      // Of a connection that is open, the requests say what has ended it.
      session.on('error', reject);
    });
    if (this.#isClosed) return session.close();
    session.setLocalWindowSize(connectionWindowBytes);
    this.#sessions.set(session, 0);
    const stopPinging = this.#ping(session);
    session.once('close', () => {
      stopPinging();
      this.#sessions.delete(session);
    });
  }

  /** Returns what stops it. */
  #ping(session: ClientHttp2Session): () => void {
    const { clock } = this.#parts;
    let cancel = (): void => {};
    const ask = (): void => {
      cancel = clock.after(pingMsMax, () => session.destroy(new CacheError('the shard answers no ping')));
      session.ping(() => {
        cancel();
        if (!session.destroyed) cancel = clock.after(pingIntervalMs, ask);
      });
    };
    cancel = clock.after(pingIntervalMs, ask);
    return () => cancel();
  }
}

function hasRoom(session: ClientHttp2Session, requests: number): boolean {
  const allowed = session.remoteSettings.maxConcurrentStreams ?? streamsMax;
  return !session.closed && !session.destroyed && requests < Math.min(allowed, streamsMax);
}

function securely(options: ConnectionOptions, signal: AbortSignal): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ ...options, ALPNProtocols: ['h2', 'http/1.1'] });
    signal.addEventListener('abort', () => socket.destroy(signal.reason as Error), { once: true });
    socket.once('secureConnect', () => resolve(socket));
    socket.once('close', () => reject(new CacheError('the shard has closed the connection')));
    // What breaks it later is its session's.
    socket.on('error', reject);
  });
}
