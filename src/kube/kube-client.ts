/**
 * Sends requests to a server over HTTPS, and streams the answers.
 *
 * Bounds: a request's `answerMsMax` for the status, and its `silenceMsMax` for each part of the
 * body that the reader waits for. A refusal is read up to `refusalBytesMax`. Unread bytes fill the
 * window of their stream, so a slow reader slows the server.
 */
import type { LogFields } from '../diagnostics/log.js';
import { certificateFaultOf, explainCertificateFault } from '../domain/base/certificate-fault.js';
import { CacheError } from '../domain/errors.js';
import { GatheredBytes } from '../domain/base/gathered-bytes.js';
import type { Clock } from '../domain/ports.js';
import { textAt } from '../domain/base/members.js';
import type { KubeAccess } from './kube-access.js';
import { KubeConnections, type KubeAnswer } from './kube-connections.js';

/**
 * The server answered with a status other than 200. `reason`: '' if the body was no Status.
 * `continueToken`: continues, at a newer revision, a list whose token expired; '' if the server
 * sent none. `retryAfterMs`: 0 if the server requires no wait.
 */
export class KubeRefusal extends Error {
  readonly status: number;
  readonly reason: string;
  readonly continueToken: string;
  readonly retryAfterMs: number;

  constructor(status: number, reason: string, message: string, { continueToken = '', retryAfterMs = 0 } = {}) {
    super(message);
    this.name = 'KubeRefusal';
    this.status = status;
    this.reason = reason;
    this.continueToken = continueToken;
    this.retryAfterMs = retryAfterMs;
  }
}

/** `inspect`: gets the headers of every answer, and throws if the answer must not be read. */
export type KubeClientParts = Readonly<{
  access: KubeAccess;
  clock: Clock;
  userAgent: string;
  inspect?: (headers: KubeAnswer['headers']) => void;
}>;

/** `path` includes its query. */
export type KubeRequest = Readonly<{ path: string; answerMsMax: number; silenceMsMax: number; signal: AbortSignal }>;

const refusalBytesMax = 16 * 1024;

export class KubeClient {
  readonly #access: KubeAccess;
  readonly #clock: Clock;
  readonly #connections: KubeConnections;
  readonly #inspect: (headers: KubeAnswer['headers']) => void;

  /** `userAgent`: identifies the requests in the server's audit log and metrics. */
  constructor({ access, clock, userAgent, inspect = () => {} }: KubeClientParts) {
    this.#access = access;
    this.#clock = clock;
    this.#inspect = inspect;
    this.#connections = new KubeConnections({ access, clock, userAgent });
  }

  /**
   * Resolves with the body of a 200, which must be read or returned. Throws KubeRefusal for any
   * other answer.
   */
  async open(asked: KubeRequest): Promise<AsyncGenerator<Uint8Array, void>> {
    const credentials = await this.#access.credentials(asked.signal);
    const answer = await this.#answered(asked, (path, signal) => this.#connections.request({ path, signal }, credentials));
    const { status, headers, body } = answer;
    try {
      this.#inspect(headers);
    } catch (error) {
      body.destroy();
      throw error;
    }
    if (status === 401) credentials.drop?.();
    const chunks = this.#chunks(answer, asked.silenceMsMax);
    if (status === 200) return chunks;
    throw refusalOf(status, await beginningOf(chunks), String(headers['retry-after'] ?? ''));
  }

  /**
   * The whole body of a 200 as text; undefined if it is longer than `bytesMax`. Throws as `open`
   * does.
   */
  async read(asked: KubeRequest, bytesMax: number): Promise<string | undefined> {
    const body = new GatheredBytes();
    for await (const chunk of await this.open(asked)) {
      body.add(chunk);
      if (body.bytes > bytesMax) return undefined;
    }
    return body.takeJoined().toString('utf8');
  }

  close(): void {
    this.#connections.close();
  }

  /** Limits the time until the answer begins. The request's signal also ends the body. */
  async #answered(
    { path, answerMsMax, signal }: KubeRequest,
    ask: (path: string, signal: AbortSignal) => Promise<KubeAnswer>,
  ): Promise<KubeAnswer> {
    signal.throwIfAborted();
    const over = new AbortController();
    const end = (): void => over.abort(signal.reason);
    signal.addEventListener('abort', end);
    const cancel = this.#clock.after(answerMsMax, () =>
      over.abort(new CacheError(`the server did not answer within ${answerMsMax / 1000} s`)),
    );
    try {
      const answer = await ask(path, over.signal);
      answer.body.once('close', () => signal.removeEventListener('abort', end));
      return answer;
    } catch (error) {
      signal.removeEventListener('abort', end);
      throw over.signal.aborted ? over.signal.reason : this.#explained(error);
    } finally {
      cancel();
    }
  }

  /**
   * Node's message about a certificate names neither the server nor the source of the CA, so it is
   * replaced.
   */
  #explained(error: unknown): unknown {
    const fault = certificateFaultOf(error);
    const { server, source, caSource } = this.#access;
    if (fault === undefined || source === undefined) return error;
    const trusted = caSource?.() === undefined ? `Node trusts; ${source} names no CA` : `a CA in ${caSource()} signed`;
    return new CacheError(explainCertificateFault(fault, { server, trusted, wallMs: this.#clock.wallMs() }), { cause: error });
  }

  async *#chunks({ body, isCutOff }: KubeAnswer, silenceMsMax: number): AsyncGenerator<Uint8Array, void> {
    const arriving: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
    try {
      for (;;) {
        const cancel = this.#clock.after(silenceMsMax, () =>
          body.destroy(new CacheError(`the server sent nothing for ${silenceMsMax / 1000} s`)),
        );
        const { done, value } = await arriving.next().finally(cancel);
        if (done === true && isCutOff()) throw new CacheError('the answer of the server broke off');
        if (done === true) return;
        yield value;
      }
    } finally {
      body.destroy();
    }
  }
}

async function beginningOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) {
    text += Buffer.from(chunk).toString('utf8');
    if (text.length > refusalBytesMax) break;
  }
  return text;
}

/**
 * Parses the Status in an answer or an ERROR event; any other text becomes the message itself.
 * `retryAfter`: the header, in seconds.
 */
export function refusalOf(status: number, text: string, retryAfter = ''): KubeRefusal {
  const asked = /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : 0;
  try {
    const { code, reason, message, metadata, details } = JSON.parse(text) as Partial<Record<string, unknown>>;
    const said = (details as { retryAfterSeconds?: unknown } | null | undefined)?.retryAfterSeconds;
    return new KubeRefusal(
      status === 0 && typeof code === 'number' ? code : status,
      typeof reason === 'string' ? reason : '',
      typeof message === 'string' ? message : text.slice(0, 200),
      {
        continueToken: textAt(metadata, 'continue') ?? '',
        retryAfterMs: 1_000 * Math.max(asked, typeof said === 'number' && said > 0 ? said : 0),
      },
    );
  } catch {
    return new KubeRefusal(status, '', text.trim().slice(0, 200), { retryAfterMs: 1_000 * asked });
  }
}

/**
 * The log fields of a failed read. An error of a server, a network or a file becomes one sentence
 * without a stack. A stack would not show the cause, and eighteen readers fail at once. Any other
 * error is a bug of this software, and keeps its stack.
 */
export function failureFields(error: unknown): LogFields {
  if (error instanceof KubeRefusal)
    return { why: error.message, status: error.status, ...(error.reason !== '' && { reason: error.reason }) };
  return isOfOutside(error) ? { why: withCauses(error) } : { error };
}

/**
 * Node sets `code` on errors of the network and of files, but also on wrong arguments, which are
 * bugs.
 */
function isOfOutside(error: unknown): error is Error {
  if (error instanceof TypeError || error instanceof RangeError) return false;
  return error instanceof Error && (error instanceof CacheError || typeof Reflect.get(error, 'code') === 'string');
}

function withCauses({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${withCauses(cause)}` : message;
}
