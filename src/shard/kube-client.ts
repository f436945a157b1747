/**
 * Sends requests to a shard over HTTPS, and gives the answer as it arrives. Connections are kept and used again; a watch has one to itself.
 *
 * Bounds: `answerMsMax` and `silenceMsMax`, a request's own, without a status or a byte while we want one; a refusal is read up to `refusalBytesMax`. What we do
 * not read stays in the socket, so a slow reader slows the shard and costs no memory. TCP's own probes find a peer that is
 * gone silently, long before the silence is over.
 */
import { request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { textAt } from '../domain/text-at.js';
import { KeptConnections } from './kept-connections.js';
import type { Credentials, ShardAccess } from './shard-access.js';

/**
 * The shard answered with something else than 200. `reason` is '' when that was no Status. `continueToken`: with which a list whose token
 * expired may go on at a newer revision; '' if there is none. `retryAfterMs`: 0 if the shard asks for no wait.
 */
export class ShardRefusal extends Error {
  readonly status: number;
  readonly reason: string;
  readonly continueToken: string;
  readonly retryAfterMs: number;

  constructor(status: number, reason: string, message: string, { continueToken = '', retryAfterMs = 0 } = {}) {
    super(message);
    this.name = 'ShardRefusal';
    this.status = status;
    this.reason = reason;
    this.continueToken = continueToken;
    this.retryAfterMs = retryAfterMs;
  }
}

/** `path` has its query. `answerMsMax`: how long the status may take. `silenceMsMax`: how long each part of the body may take. */
export type KubeRequest = Readonly<{ path: string; answerMsMax: number; silenceMsMax: number; signal: AbortSignal }>;

const refusalBytesMax = 16 * 1024;
const probeAfterMs = 30_000;

export class KubeClient {
  readonly #access: ShardAccess;
  readonly #clock: Clock;
  readonly #connections: KeptConnections;

  constructor({ access, clock }: { access: ShardAccess; clock: Clock }) {
    this.#access = access;
    this.#clock = clock;
    this.#connections = new KeptConnections({ access }, { probeAfterMs });
  }

  /** Resolves when a 200 has come, with its body, which must be read or returned. Throws ShardRefusal for any other answer. */
  async open(asked: KubeRequest): Promise<AsyncGenerator<Uint8Array, void>> {
    const credentials = await this.#access.credentials(asked.signal);
    const answer = await this.#send(asked, credentials);
    if (answer.statusCode === 401) credentials.drop?.();
    answer.socket.setKeepAlive(true, probeAfterMs);
    const chunks = this.#chunks(answer, asked.silenceMsMax);
    if (answer.statusCode === 200) return chunks;
    throw refusalOf(answer.statusCode ?? 0, await beginningOf(chunks), answer.headers['retry-after']);
  }

  /** Ends the connections that are kept; those in use end with their request's signal. */
  close(): void {
    this.#connections.close();
  }

  #send({ path, answerMsMax, signal }: KubeRequest, credentials: Credentials): Promise<IncomingMessage> {
    const { authorization } = credentials;
    return new Promise((resolve, reject) => {
      const outgoing = request(`${this.#access.server}${path}`, {
        agent: this.#connections.agentFor(credentials),
        signal,
        headers: { accept: 'application/json', ...(authorization !== undefined && { authorization }) },
      });
      const cancel = this.#clock.after(answerMsMax, () => outgoing.destroy(new CacheError('the shard does not answer')));
      outgoing.once('response', (answer) => {
        cancel();
        resolve(answer);
      });
      outgoing.on('error', (error) => {
        cancel();
        reject(error);
      });
      outgoing.end();
    });
  }

  async *#chunks(answer: IncomingMessage, silenceMsMax: number): AsyncGenerator<Uint8Array, void> {
    const arriving: AsyncIterator<Uint8Array> = answer[Symbol.asyncIterator]();
    try {
      for (;;) {
        const cancel = this.#clock.after(silenceMsMax, () => answer.destroy(new CacheError('the shard has gone silent')));
        const { done, value } = await arriving.next().finally(cancel);
        if (done === true) return;
        yield value;
      }
    } finally {
      answer.destroy();
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

/** A Status, from an answer or from an ERROR event; any other text becomes the message itself. `retryAfter`: the answer's header, in seconds. */
export function refusalOf(status: number, text: string, retryAfter = ''): ShardRefusal {
  const asked = /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : 0;
  try {
    const { code, reason, message, metadata, details } = JSON.parse(text) as Partial<Record<string, unknown>>;
    const said = (details as { retryAfterSeconds?: unknown } | null | undefined)?.retryAfterSeconds;
    return new ShardRefusal(
      status === 0 && typeof code === 'number' ? code : status,
      typeof reason === 'string' ? reason : '',
      typeof message === 'string' ? message : text.slice(0, 200),
      {
        continueToken: textAt(metadata, 'continue') ?? '',
        retryAfterMs: 1_000 * Math.max(asked, typeof said === 'number' && said > 0 ? said : 0),
      },
    );
  } catch {
    return new ShardRefusal(status, '', text.trim().slice(0, 200), { retryAfterMs: 1_000 * asked });
  }
}
