/**
 * Sends requests to one cache over HTTPS, with a client certificate, and reuses connections.
 *
 * Q1 Every request ends with an answer, a CacheFault, or the reason of its aborted signal.
 * Q2 The cache may close a kept connection just as a request reuses it. A read is then sent once
 *    more, on a new connection.
 *
 * Bounds: `timeoutMs` from the call to the last byte, including the wait for a connection;
 * `answerBytesMax`, beyond which an answer is not read; `connectionsMax`. At most `questionsMax`
 * requests are under way or wait for a connection; one more is refused at once (`busy`).
 */
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { GatheredBytes } from '../domain/base/gathered-bytes.js';
import type { Clock } from '../domain/ports.js';
import type { ClientIdentity } from '../frames/connect-socket.js';
import { CacheFault } from './cache-fault.js';
import type { HttpAnswer } from './read-answer.js';

export type CacheConnectionBounds = Readonly<{
  timeoutMs: number;
  answerBytesMax: number;
  connectionsMax: number;
  questionsMax: number;
}>;

/** `cache`: the cache's URL, such as `https://localhost:6443`. */
export type CacheConnectionOptions = CacheConnectionBounds & Readonly<{ cache: string }>;

export type CacheMethod = 'GET' | 'POST' | 'DELETE';

export type ConnectionParts = Readonly<{ clock: Clock; identity: () => ClientIdentity }>;

const probeAfterMs = 30_000;
const retryAfterSecondsPattern = /^\d{1,6}$/;

export class CacheConnection {
  readonly #clock: Clock;
  readonly #identity: () => ClientIdentity;
  readonly #options: CacheConnectionOptions;
  readonly #origin: string;
  readonly #agent: Agent;
  readonly #underWay = new Set<AbortController>();
  #isClosed = false;

  /**
   * Calls `identity` for each request, so that a renewed certificate is used. Throws an Error if
   * `cache` is no https URL.
   */
  constructor({ clock, identity }: ConnectionParts, options: CacheConnectionOptions) {
    const { protocol, origin } = new URL(options.cache);
    if (protocol !== 'https:') throw new Error(`${options.cache} is not an https URL`);
    this.#clock = clock;
    this.#identity = identity;
    this.#options = options;
    this.#origin = origin;
    this.#agent = new Agent({ keepAlive: true, keepAliveMsecs: probeAfterMs, maxSockets: options.connectionsMax, scheduling: 'lifo' });
  }

  /**
   * Sends a request without a body. `target`: a path with its query. Throws CacheFault, or the
   * reason of an aborted `signal`.
   */
  async ask(target: string, signal?: AbortSignal, method: CacheMethod = 'GET'): Promise<HttpAnswer> {
    signal?.throwIfAborted();
    const { timeoutMs, questionsMax } = this.#options;
    if (this.#isClosed) throw closed();
    if (this.#underWay.size >= questionsMax)
      throw new CacheFault('busy', `${questionsMax} questions to ${this.#origin} are under way already`);

    const ending = new AbortController();
    const end = (): void => ending.abort(signal?.reason);
    const late = `${this.#origin} did not answer within ${timeoutMs / 1000} s`;
    const cancel = this.#clock.after(timeoutMs, () => ending.abort(new CacheFault('overdue', late)));
    signal?.addEventListener('abort', end, { once: true });
    this.#underWay.add(ending);
    try {
      return await this.#exchange(method, target, ending.signal);
    } catch (cause) {
      throw ending.signal.aborted ? ending.signal.reason : this.#faultOf(cause);
    } finally {
      this.#underWay.delete(ending);
      signal?.removeEventListener('abort', end);
      cancel();
    }
  }

  /** Ends the requests under way and closes the kept connections. */
  close(): void {
    this.#isClosed = true;
    for (const ending of this.#underWay) ending.abort(closed());
    this.#agent.destroy();
  }

  async #exchange(method: CacheMethod, target: string, signal: AbortSignal): Promise<HttpAnswer> {
    try {
      return await this.#send(method, target, signal, this.#agent);
    } catch (error) {
      if (!(error instanceof LeftUnanswered) || method !== 'GET' || signal.aborted) throw error;
      return this.#send(method, target, signal, false);
    }
  }

  #send(method: CacheMethod, target: string, signal: AbortSignal, agent: Agent | false): Promise<HttpAnswer> {
    const { ca, certificate, key, serverName } = this.#identity();
    return new Promise((resolve, reject) => {
      const asking = request(this.#origin + target, {
        method,
        agent,
        signal,
        cert: certificate,
        key,
        ...(ca === undefined ? {} : { ca }),
        ...(serverName === undefined ? {} : { servername: serverName }),
        rejectUnauthorized: true,
        minVersion: 'TLSv1.2',
        headers: { accept: 'application/json' },
      });
      let isAnswered = false;
      asking.once('response', (response) => {
        isAnswered = true;
        this.#read(response).then(resolve, reject);
      });
      asking.on('error', (cause) => reject(asking.reusedSocket && !isAnswered ? new LeftUnanswered({ cause }) : cause));
      asking.end();
    });
  }

  async #read(response: IncomingMessage): Promise<HttpAnswer> {
    const { answerBytesMax } = this.#options;
    const body = new GatheredBytes();
    for await (const chunk of arriving(response)) {
      body.add(chunk);
      // Throwing leaves the loop, which closes the connection, so the rest is not read.
      if (body.bytes > answerBytesMax)
        throw new CacheFault('too-long', `the answer of ${this.#origin} is longer than ${answerBytesMax} bytes`);
    }
    return { status: response.statusCode ?? 0, text: body.takeJoined().toString(), retryAfterMs: retryAfterMs(response) };
  }

  #faultOf(cause: unknown): CacheFault {
    if (cause instanceof CacheFault) return cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    return new CacheFault('unreachable', `${this.#origin} cannot be read: ${why}`, { cause });
  }
}

/** A kept connection ended before the first byte of an answer. */
class LeftUnanswered extends Error {
  constructor(options: { cause: Error }) {
    super(options.cause.message, options);
  }
}

function arriving(response: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return response;
}

function closed(): CacheFault {
  return new CacheFault('closed', 'the reader is closed');
}

function retryAfterMs({ headers }: IncomingMessage): number | undefined {
  const seconds = headers['retry-after'];
  return seconds !== undefined && retryAfterSecondsPattern.test(seconds) ? Number(seconds) * 1000 : undefined;
}
