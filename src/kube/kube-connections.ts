/**
 * Connections to a server that are kept and used again: HTTP/2, or HTTP/1.1 if a proxy speaks
 * nothing else. The server authenticates a connection when it is opened. So a connection is used
 * only by requests with the certificates that it was made with. Connections with other certificates
 * are closed as soon as they are idle; their watches continue until they end.
 */
import { Agent, request } from 'node:https';
import { constants, type IncomingHttpHeaders } from 'node:http2';
import type { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { Http2Sessions, type SentRequest } from './http2-sessions.js';
import { limitInterim } from '../domain/base/interim-answers.js';
import type { Credentials, KubeAccess } from './kube-access.js';
import { UnreadBody } from './unread-body.js';

/** `path` includes its query. */
export type GetRequest = Readonly<{ path: string; signal: AbortSignal }>;

/**
 * `body` must be read or destroyed. `isCutOff`: whether the body ended before it was complete; an
 * HTTP/2 stream reports no error then. A stream that is reset without a code cannot be
 * distinguished from a complete one.
 */
export type KubeAnswer = Readonly<{
  status: number;
  headers: Readonly<Record<string, unknown>>;
  body: Readable;
  isCutOff: () => boolean;
}>;

type Kept = Readonly<{ certificates: string; sessions: Http2Sessions; agent: Agent }>;
type Headers = Readonly<Record<string, string>>;

/** HTTP/1.1: after this long without a byte, TCP probes whether the peer is alive. */
const probeAfterMs = 30_000;
/** How often a refused request is sent again. */
const refusalsMax = 3;

export class KubeConnections {
  readonly #access: KubeAccess;
  readonly #clock: Clock;
  readonly #userAgent: string;
  #kept: Kept | undefined;

  constructor({ access, clock, userAgent }: { access: KubeAccess; clock: Clock; userAgent: string }) {
    this.#access = access;
    this.#clock = clock;
    this.#userAgent = userAgent;
  }

  /** Resolves once the answer begins. Throws if none does. */
  async request(asked: GetRequest, credentials: Credentials): Promise<KubeAnswer> {
    const { authorization } = credentials;
    const headers: Headers = {
      accept: 'application/json',
      'user-agent': this.#userAgent,
      ...(authorization !== undefined && { authorization }),
    };
    const { sessions, agent } = this.#keptFor(credentials);
    const { origin, pathname, search } = new URL(`${this.#access.server}${asked.path}`);
    const { signal } = asked;
    for (let refusals = 0; ; refusals += 1) {
      const sent = await sessions.request({ path: `${pathname}${search}`, headers, signal });
      if (sent === undefined) return overHttp1(`${origin}${pathname}${search}`, { agent, headers, signal });
      try {
        return await answered(sent);
      } catch (error) {
        // The server was ending the connection and refused the request without beginning it. So the
        // request is sent again on another connection.
        if (sent.stream.rstCode !== constants.NGHTTP2_REFUSED_STREAM || refusals === refusalsMax) throw error;
      }
    }
  }

  /** Closes idle connections. A connection in use closes when its last request has ended. */
  close(): void {
    if (this.#kept !== undefined) retire(this.#kept);
  }

  #keptFor({ ca, certificate, key }: Credentials): Kept {
    const certificates = JSON.stringify([ca, certificate, key]);
    if (this.#kept?.certificates === certificates) return this.#kept;
    if (this.#kept !== undefined) retire(this.#kept);
    const { server, insecure, serverName } = this.#access;
    const tls: ConnectionOptions = {
      rejectUnauthorized: !insecure,
      servername: serverName,
      ca,
      cert: certificate,
      key,
    };
    const agent = new Agent({ keepAlive: true, keepAliveMsecs: probeAfterMs, ...tls });
    this.#kept = { certificates, sessions: new Http2Sessions({ origin: new URL(server).origin, tls, clock: this.#clock }), agent };
    return this.#kept;
  }
}

function retire({ sessions, agent }: Kept): void {
  sessions.close();
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

function answered({ stream, body }: SentRequest): Promise<KubeAnswer> {
  return new Promise((resolve, reject) => {
    stream.once('response', (headers: IncomingHttpHeaders & { ':status'?: number }) =>
      resolve({ status: headers[':status'] ?? 0, headers, body, isCutOff: () => !body.isComplete }),
    );
    stream.once('close', () => reject(new CacheError('the server has closed the request')));
    // After the answer has begun, the body reports the error.
    stream.on('error', reject);
  });
}

function overHttp1(url: string, options: Readonly<{ agent: Agent; headers: Headers; signal: AbortSignal }>): Promise<KubeAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, options);
    outgoing.once('response', (answer) => {
      const body = new UnreadBody(answer, { signal: options.signal });
      answer.socket.setKeepAlive(true, probeAfterMs);
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body, isCutOff: () => !answer.complete });
    });
    limitInterim(outgoing, (error) => outgoing.destroy(error));
    outgoing.on('error', reject);
    outgoing.end();
  });
}
