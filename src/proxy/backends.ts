/**
 * Connections to the servers behind the proxy: HTTP/2, and HTTP/1.1 where a server speaks nothing else. A connection carries as many requests as its server
 * allows, and another is opened when all are full, so that watches starve nobody. None is used for requests of another certificate.
 *
 *   asked ──▶ not sent: no connection, or the server refused the stream    ──▶ NotSent
 *         └─▶ sent ──▶ the connection ends before an answer begins          ──▶ BrokenOff
 *                  └─▶ the answer begins; `isCutOff` says of its end whether the server made it
 *
 * Nothing is sent twice. A server that answers no ping loses its connection, and all that is on it ends.
 * Bounds: `sessionsMax` connections to a server and as many for watches, `originsMax` servers; of HTTP/1.1 `socketsMax`.
 */
import { Agent, request as requestHttp1 } from 'node:https';
import { constants, type IncomingHttpHeaders } from 'node:http2';
import type { IncomingMessage } from 'node:http';
import type { Duplex, Readable, Writable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { Http2Sessions, type Asked, type Http2SessionsOptions } from '../kube/http2-sessions.js';
import { UnreadBody, type UnreadRoom } from '../kube/unread-body.js';
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
import { askUpgrade, type UpgradeAnswer, type UpgradeRequest } from './upgrade-request.js';
import { singly, writable } from './written-headers.js';

/** `target`: path and query. `body`: undefined where there is none. */
export type BackendRequest = Readonly<{
  origin: string;
  method: string;
  target: string;
  headers: HeaderLines;
  body: IncomingMessage | undefined;
  /** Called with the length of each part of the body that goes to the backend. */
  bodyPassed: (bytes: number) => void;
  /** Whether the answer may be as long in coming as it likes. */
  lasts: boolean;
  /** For what of the answer nobody takes. */
  unread: UnreadRoom;
  signal: AbortSignal;
}>;

export type BackendAnswer = Readonly<{
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: Readable;
  isCutOff: () => boolean;
  /** Ends what is still on its way to the backend: the answer is whole, and nobody will say anything of the rest. */
  endRequest: () => void;
}>;

const sessions: Http2SessionsOptions = Object.freeze({
  openMsMax,
  pingIntervalMs,
  pingMsMax: 5_000,
  sessionsMax: 64,
  windowBytes: 256 * 1024,
});
/** Watches have connections of their own: there may be many that nobody reads. */
const lasting: Http2SessionsOptions = Object.freeze({ ...sessions, windowBytes: 64 * 1024 });
const originsMax = 1_000;
/** Node cannot send a longer block, and closes the connection then, which other requests use. What we add for who asks may make it longer than it came. */
const blockBytesMax = 64 * 1024;
const socketsMax = 1_024;

type Kept = Readonly<{ sessions: Http2Sessions; lasting: Http2Sessions; agent: Agent }>;

export class Backends {
  readonly #clock: Clock;
  readonly #socketsMax: number;
  /** By origin and credentials; the one that was used longest ago comes first. */
  readonly #kept = new Map<string, Kept>();
  /** PEM texts are long, so each set of them has a number. */
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
    let to: Asked | undefined;
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
    return askUpgrade(asked, credentials, this.#clock);
  }

  /** What is under way ends by itself. */
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
      // Node writes a body of some methods without saying where it ends, and the rest would be another request.
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
      // While it waits for a socket it says nothing of its end. Node drops what of the answer nobody has read yet, and says that it has ended.
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
          body: new UnreadBody(incoming, { room: unread, signal }),
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
      // What happens to the connection behind a whole answer is nothing to it.
      outgoing.on('error', (error) => {
        if (answer?.complete !== true) fail(error);
      });
      if (body === undefined) return void outgoing.end();
      // The server may answer before there is a body.
      outgoing.flushHeaders();
      pourBody(body, outgoing, this.#clock, bodyPassed);
    });
  }
}

function answered({ stream, body }: Asked, signal: AbortSignal): Promise<BackendAnswer> {
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
        isCutOff: () => !body.isWhole,
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
