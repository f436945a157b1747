/**
 * Connections to the servers behind the proxy: HTTP/2, and HTTP/1.1 to a server that supports
 * nothing else. A connection carries as many requests as its server allows. When all connections
 * are full, another one is opened, so that watches starve no other request. Requests with different
 * certificates never share a connection.
 *
 *   asked ──▶ not sent: no connection, or the server refused the stream    ──▶ NotSent
 *         └─▶ sent ──▶ the connection ends before an answer begins          ──▶ BrokenOff
 *                   └─▶ the answer begins; `isCutOff` says whether it ended early
 *
 * Nothing is sent twice. A connection whose ping is not answered ends, with all its requests.
 * Bounds: `originsMax` pairs of server and credentials; for each pair `sessionsMax` connections and
 * as many for watches, or over HTTP/1.1 `socketsMax`.
 */
import { Agent, request as requestHttp1 } from 'node:https';
import { constants, type IncomingHttpHeaders } from 'node:http2';
import type { IncomingMessage } from 'node:http';
import type { Duplex, Readable, Writable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { Http2Sessions, type SentRequest, type Http2SessionsOptions } from '../kube/http2-sessions.js';
import { UnreadBody, type UnreadMemory } from '../kube/unread-body.js';
import {
  answerMsMax,
  failed,
  limitTime,
  NotSent,
  openMsMax,
  otherProtocol,
  pingIntervalMs,
  serverOf,
  TooLong,
  type BackendCredentials,
} from './backend-requests.js';
import { headerBlockBytesMax, type HeaderLines } from './forwarded-headers.js';
import { pourBody } from './paced-copy.js';
import { requestUpgrade, type UpgradeAnswer, type UpgradeRequest } from './upgrade-request.js';
import { singly, writable } from './written-headers.js';

/** `target`: path and query. `body`: undefined if the request has none. */
export type BackendRequest = Readonly<{
  origin: string;
  method: string;
  target: string;
  headers: HeaderLines;
  body: IncomingMessage | undefined;
  /** Called with the length of each part that is sent to the backend. */
  bodyPassed: (bytes: number) => void;
  /** Whether the answer may take any time to begin, as with a watch. */
  lasts: boolean;
  /** The memory budget for answer bytes that the client has not read yet. */
  unread: UnreadMemory;
  signal: AbortSignal;
}>;

export type BackendAnswer = Readonly<{
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: Readable;
  isCutOff: () => boolean;
  /**
   * Stops a request that is still being sent. The front door calls this after the end of the
   * answer, because the backend says nothing more about the request.
   */
  endRequest: () => void;
}>;

const sessions: Http2SessionsOptions = Object.freeze({
  openMsMax,
  pingIntervalMs,
  pingMsMax: 5_000,
  sessionsMax: 64,
  windowBytes: 256 * 1024,
});
/**
 * Watches have their own connections, with smaller windows, because the clients of many watches may
 * not read.
 */
const lasting: Http2SessionsOptions = Object.freeze({ ...sessions, windowBytes: 64 * 1024 });
const originsMax = 1_000;
/**
 * Node cannot send a longer header block, and then closes the connection, which other requests
 * share. The identity headers that the proxy adds may make the block longer than it arrived.
 */
const blockBytesMax = 64 * 1024;
const socketsMax = 1_024;

type Kept = Readonly<{ sessions: Http2Sessions; lasting: Http2Sessions; agent: Agent }>;

export class Backends {
  readonly #clock: Clock;
  readonly #socketsMax: number;
  /** Keyed by origin and credentials, the least recently used first. */
  readonly #kept = new Map<string, Kept>();
  /** A number for each set of credentials, because PEM texts are too long for a key. */
  readonly #numbers = new WeakMap<BackendCredentials, number>();
  #numbered = 0;

  constructor({ clock }: { clock: Clock }, options = { socketsMax }) {
    this.#clock = clock;
    this.#socketsMax = options.socketsMax;
  }

  /** Throws TooLong, NotSent, BrokenOff, or the reason of `signal`. */
  async request(asked: BackendRequest, credentials: BackendCredentials): Promise<BackendAnswer> {
    const { method, target, headers, body, bodyPassed, lasts, unread, signal } = asked;
    const sent = { ':method': method, ':path': target, ':scheme': 'https', ...headers };
    if (headerBlockBytesMax(sent) > blockBytesMax) throw new TooLong('the headers are longer than a connection takes');
    const kept = this.#keptFor(asked.origin, credentials);
    let to: SentRequest | undefined;
    try {
      to = await (lasts ? kept.lasting : kept.sessions).request({
        path: target,
        headers: { ':method': method, ...singly(headers) },
        hasBody: body !== undefined,
        unread,
        signal,
      });
    } catch (error) {
      signal.throwIfAborted();
      throw new NotSent('the server does not answer', { cause: error });
    }
    if (to === undefined) return this.#overHttp1(asked, kept.agent);
    if (body !== undefined) pourBody(body, to.stream, this.#clock, bodyPassed);
    return answered(to, signal);
  }

  upgrade(asked: UpgradeRequest, credentials: BackendCredentials): Promise<UpgradeAnswer> {
    return requestUpgrade(asked, credentials, this.#clock);
  }

  /** Requests under way end by themselves. */
  close(): void {
    for (const kept of this.#kept.values()) retire(kept);
    this.#kept.clear();
  }

  #keptFor(origin: string, credentials: BackendCredentials): Kept {
    const name = `${this.#numberOf(credentials)} ${origin}`;
    const known = this.#kept.get(name);
    if (known !== undefined) {
      this.#kept.delete(name);
      this.#kept.set(name, known);
      return known;
    }
    const { ca, cert, key } = credentials;
    const tls: ConnectionOptions = { ca, cert, key };
    const made: Kept = {
      sessions: new Http2Sessions({ origin, tls, clock: this.#clock }, sessions),
      lasting: new Http2Sessions({ origin, tls, clock: this.#clock }, lasting),
      agent: new Agent({ keepAlive: true, maxSockets: this.#socketsMax, ...tls }),
    };
    this.#kept.set(name, made);
    const [oldest] = this.#kept;
    if (this.#kept.size > originsMax && oldest !== undefined) {
      this.#kept.delete(oldest[0]);
      retire(oldest[1]);
    }
    return made;
  }

  #numberOf(credentials: BackendCredentials): number {
    const known = this.#numbers.get(credentials);
    if (known !== undefined) return known;
    this.#numbered += 1;
    this.#numbers.set(credentials, this.#numbered);
    return this.#numbered;
  }

  #overHttp1(
    { origin, method, target, headers, body, bodyPassed, lasts, unread, signal }: BackendRequest,
    agent: Agent,
  ): Promise<BackendAnswer> {
    const { ':authority': host = '', ...others } = headers;
    return new Promise((resolve, reject) => {
      // For some methods Node writes a body without a length or chunks. The server would read such
      // a body as another request.
      const isChunked = body !== undefined && headers['content-length'] === undefined;
      const outgoing = requestHttp1({
        ...serverOf(origin),
        path: target,
        agent,
        method,
        headers: { ...writable(others), ...(host !== '' && { host: String(host) }), ...(isChunked && { 'transfer-encoding': 'chunked' }) },
      });
      let isSent = false;
      let answer: IncomingMessage | undefined;
      let hasFailed = false;
      // Reject here as well, because a request that waits for a socket emits nothing when it is
      // destroyed. `hasFailed` marks the answer as cut off: when a request is destroyed, Node drops
      // the unread part of the answer and emits `end`.
      const fail = (error: Error): void => {
        hasFailed = true;
        outgoing.destroy();
        reject(failed(isSent, error, signal));
      };
      signal.addEventListener('abort', () => fail(signal.reason as Error), { once: true });
      const begun = limitTime(outgoing, this.#clock, { withinMs: lasts ? undefined : answerMsMax, late: fail });
      outgoing.once('socket', (socket) => {
        if (socket.connecting) socket.once('secureConnect', () => (isSent = true));
        else isSent = true;
      });
      outgoing.once('response', (incoming: IncomingMessage) => {
        answer = incoming;
        begun();
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          body: new UnreadBody(incoming, { memory: unread, signal }),
          isCutOff: () => hasFailed || !incoming.complete,
          endRequest: () => endUnlessSent(outgoing),
        });
      });
      outgoing.once('upgrade', (_: IncomingMessage, socket: Duplex) => {
        socket.destroy();
        fail(new CacheError(otherProtocol));
      });
      outgoing.once('close', () => {
        if (answer === undefined) fail(new CacheError('the connection has ended without an answer'));
      });
      // A connection error after a whole answer does not matter.
      outgoing.on('error', (error) => {
        if (answer?.complete !== true) fail(error);
      });
      if (body === undefined) return void outgoing.end();
      // The server may answer before it gets the body, so send the headers at once.
      outgoing.flushHeaders();
      pourBody(body, outgoing, this.#clock, bodyPassed);
    });
  }
}

function answered({ stream, body }: SentRequest, signal: AbortSignal): Promise<BackendAnswer> {
  return new Promise((resolve, reject) => {
    const fail = (error?: unknown): void => reject(failed(stream.rstCode !== constants.NGHTTP2_REFUSED_STREAM, error, signal));
    stream.once('close', fail);
    stream.once('response', (headers: IncomingHttpHeaders & { ':status'?: number }) => {
      stream.off('close', fail);
      stream.off('error', fail);
      resolve({
        status: headers[':status'] ?? 0,
        headers,
        body,
        isCutOff: () => !body.isComplete,
        endRequest: () => endUnlessSent(stream),
      });
    });
    stream.on('error', fail);
  });
}

function endUnlessSent(request: Writable): void {
  if (!request.writableFinished) request.destroy();
}

function retire({ sessions: kept, lasting: watches, agent }: Kept): void {
  kept.close();
  watches.close();
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}
