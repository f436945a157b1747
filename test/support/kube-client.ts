/**
 * A small Kubernetes client for tests: raw requests that show status, headers and text, JSON verbs
 * on top of them, and a watch as an async iterable of events. `text` is the text that came over the
 * wire.
 *
 * Over HTTP/1.1 it has a connection for each request in flight. Over HTTP/2 all requests share one
 * connection, as in kcp. Without `http2`, TEST_HTTP decides which it speaks (`http-of-file.ts`).
 * A watch has no buffer of its own: if the caller does not read, the socket fills, as with a slow
 * watcher.
 */
import { once } from 'node:events';
import { connect, constants, type ClientHttp2Session } from 'node:http2';
import { Agent, request } from 'node:https';
import type { Readable } from 'node:stream';
import { createSecureContext, type SecureContext } from 'node:tls';
import { spokenHttp } from './http-of-file.js';

const requestMsMax = 30_000;
const connectMsMax = 5_000;
const goStreamWindowBytes = 4 * 1024 * 1024;
const goSessionWindowBytes = 1024 * 1024 * 1024;

/** By certificate, because making a context for each connection would take a millisecond. */
const contexts = new Map<string, SecureContext>();

function contextOf(cert: string | undefined, key: string | undefined): SecureContext {
  const known = contexts.get(cert ?? '');
  if (known !== undefined) return known;
  const made = createSecureContext({ ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) });
  contexts.set(cert ?? '', made);
  return made;
}

export type KubeClientOptions = Readonly<{
  url: string;
  certificate?: string;
  key?: string;
  /** A prefix of every path, for example `/services/cache/shards/amber/clusters/acme`. */
  prefix?: string;
  http2?: boolean;
  /**
   * Uses the HTTP/2 windows of Go's transport, as kcp's informers do. With Node's own, 64 KiB a
   * stream, a client that reads late soon stops a server.
   */
  goWindows?: boolean;
}>;

export type RequestOptions = Readonly<{
  headers?: Readonly<Record<string, string | string[]>>;
  /** Text and bytes are sent unchanged; anything else is serialised. Undefined sends no body. */
  body?: unknown;
  timeoutMs?: number;
  signal?: AbortSignal;
}>;

export type Answer = Readonly<{ status: number; headers: Readonly<Record<string, string>>; text: string }>;

/** Only the members that tests use; the object has all of them. */
export type KubeObject = Readonly<{
  kind?: string;
  apiVersion?: string;
  metadata: Readonly<{
    name?: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    generation?: number;
    creationTimestamp?: string;
    continue?: string;
    remainingItemCount?: number;
    labels?: Readonly<Record<string, string>>;
    annotations?: Readonly<Record<string, string>>;
    finalizers?: readonly string[];
    managedFields?: readonly unknown[];
  }>;
  [member: string]: unknown;
}>;

export type KubeList = KubeObject & Readonly<{ items: readonly KubeObject[] }>;

export type KubeStatus = KubeObject &
  Readonly<{ status?: string; reason?: string; message?: string; code?: number; details?: Readonly<Record<string, unknown>> }>;

export type WatchEvent = Readonly<{ type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'; object: KubeObject; text: string }>;

export type WatchOptions = Readonly<{
  opened?: () => void;
  query?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}>;

/** A JSON verb got a status that is no success. */
export class KubeError extends Error {
  readonly answer: Answer;

  constructor(what: string, answer: Answer) {
    super(`${what}: ${answer.status} ${answer.text.slice(0, 500)}`);
    this.name = 'KubeError';
    this.answer = answer;
  }

  get status(): number {
    return this.answer.status;
  }

  get reason(): string | undefined {
    return (parse(this.answer.text) as KubeStatus | undefined)?.reason;
  }
}

type Opened = Readonly<{ status: number; headers: Readonly<Record<string, string>>; stream: Readable; abort(): void }>;

export class KubeClient {
  readonly #url: URL;
  readonly #prefix: string;
  readonly #tls: Readonly<{ rejectUnauthorized: false; secureContext: SecureContext }>;
  readonly #agent: Agent;
  readonly #http2: boolean;
  readonly #goWindows: boolean;
  #session: ClientHttp2Session | undefined;

  constructor({ url, certificate, key, prefix = '', http2 = spokenHttp() === '2', goWindows = false }: KubeClientOptions) {
    this.#url = new URL(url);
    this.#prefix = prefix;
    this.#http2 = http2;
    this.#goWindows = goWindows;
    this.#tls = { rejectUnauthorized: false, secureContext: contextOf(certificate, key) };
    this.#agent = new Agent({ ...this.#tls, keepAlive: true });
  }

  /** Sends one request; resolves with the whole answer, whatever its status. */
  async raw(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const timeout = AbortSignal.timeout(options.timeoutMs ?? requestMsMax);
    const signal = options.signal === undefined ? timeout : AbortSignal.any([options.signal, timeout]);
    try {
      const { status, headers, stream } = await this.#open(method, path, { ...options, signal });
      return { status, headers, text: await readText(stream) };
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    }
  }

  async get(path: string, options?: RequestOptions): Promise<KubeObject> {
    return await this.#json('GET', path, options);
  }

  async list(path: string, options?: RequestOptions): Promise<KubeList> {
    return (await this.#json('GET', path, options)) as KubeList;
  }

  async create(path: string, object: unknown, options?: RequestOptions): Promise<KubeObject> {
    return await this.#json('POST', path, { ...options, body: object });
  }

  async replace(path: string, object: unknown, options?: RequestOptions): Promise<KubeObject> {
    return await this.#json('PUT', path, { ...options, body: object });
  }

  async mergePatch(path: string, patch: unknown, options?: RequestOptions): Promise<KubeObject> {
    return await this.#json('PATCH', path, {
      ...options,
      body: patch,
      headers: { 'content-type': 'application/merge-patch+json', ...options?.headers },
    });
  }

  async delete(path: string, options?: RequestOptions): Promise<KubeObject> {
    return await this.#json('DELETE', path, options);
  }

  /**
   * Yields events until the server ends the stream, the signal fires (no error then) or the caller
   * breaks out. Throws KubeError unless the status is 200, and any error that ended the connection.
   */
  async *watch(path: string, { opened: onOpened, query = {}, headers = {}, signal }: WatchOptions = {}): AsyncGenerator<WatchEvent> {
    const target = watchTarget(path, query);
    const opened = await this.#open('GET', target, { headers, ...(signal === undefined ? {} : { signal }) }).catch((error: unknown) => {
      if (signal?.aborted === true) return undefined;
      throw error;
    });
    if (opened === undefined) return;
    try {
      if (opened.status !== 200)
        throw new KubeError(`WATCH ${target}`, { status: opened.status, headers: opened.headers, text: await readText(opened.stream) });
      onOpened?.();
      for await (const line of lines(opened.stream)) {
        const event = JSON.parse(line) as Omit<WatchEvent, 'text'>;
        yield { ...event, text: line };
      }
    } catch (error) {
      if (signal?.aborted !== true) throw error;
    } finally {
      opened.abort();
    }
  }

  close(): void {
    this.#agent.destroy();
    this.#session?.destroy();
    this.#session = undefined;
  }

  async #json(method: string, path: string, options?: RequestOptions): Promise<KubeObject> {
    const answer = await this.raw(method, path, options);
    if (answer.status < 200 || answer.status > 299) throw new KubeError(`${method} ${path}`, answer);
    return JSON.parse(answer.text) as KubeObject;
  }

  async #open(method: string, path: string, { headers = {}, body, signal }: RequestOptions): Promise<Opened> {
    const bytes =
      body === undefined ? undefined : Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    const all = {
      accept: 'application/json',
      ...(bytes === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(bytes.length) }),
      ...headers,
    };
    return await (this.#http2 ? this.#openHttp2 : this.#openHttp1).call(this, method, this.#prefix + path, all, bytes, signal);
  }

  #openHttp1(
    method: string,
    path: string,
    headers: Record<string, string | string[]>,
    bytes: Buffer | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Opened> {
    return new Promise((resolve, reject) => {
      const outgoing = request({
        host: this.#url.hostname,
        port: this.#url.port,
        method,
        path,
        headers,
        agent: this.#agent,
      });
      outgoing.on('error', reject);
      outgoing.on(
        'close',
        onAbort(signal, () => outgoing.destroy()),
      );
      outgoing.on('response', (incoming) => {
        incoming.on('error', unread);
        resolve({ status: incoming.statusCode ?? 0, headers: flat(incoming.headers), stream: incoming, abort: () => outgoing.destroy() });
      });
      outgoing.end(bytes);
    });
  }

  async #openHttp2(
    method: string,
    path: string,
    headers: Record<string, string | string[]>,
    bytes: Buffer | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Opened> {
    const session = await this.#connected();
    // Without an explicit endStream, Node ends the request of a DELETE before its body.
    const stream = session.request({ ':method': method, ':path': path, ...headers }, { endStream: bytes === undefined });
    stream.on('error', unread);
    stream.on(
      'close',
      onAbort(signal, () => stream.close(constants.NGHTTP2_CANCEL)),
    );
    if (bytes !== undefined) stream.end(bytes);
    const received = await new Promise<Record<string, string | string[] | number>>((resolve, reject) => {
      stream.once('response', (headers) => resolve(headers as Record<string, string | string[] | number>));
      stream.once('error', reject);
      // When a server is killed, its streams close without an error.
      stream.once('close', () => reject(new Error('the stream ended before the answer')));
    });
    return { status: Number(received[':status']), headers: flat(received), stream, abort: () => stream.close() };
  }

  async #connected(): Promise<ClientHttp2Session> {
    if (this.#session !== undefined && !this.#session.closed && !this.#session.destroyed) return this.#session;
    const session = connect(this.#url, {
      ...this.#tls,
      ...(this.#goWindows ? { settings: { initialWindowSize: goStreamWindowBytes } } : {}),
    });
    this.#session = session;
    session.on('error', () => session.destroy());
    await once(session, 'connect', { signal: AbortSignal.timeout(connectMsMax) });
    if (this.#goWindows) session.setLocalWindowSize(goSessionWindowBytes);
    return session;
  }
}

/**
 * Calls `end` when the signal fires; returns a function that removes the listener. Node's own
 * `signal` would destroy the request with an error. If an HTTP/1.1 answer ends at that moment,
 * while its socket returns to the agent, nobody listens for that error, and the process ends.
 */
function onAbort(signal: AbortSignal | undefined, end: () => void): () => void {
  if (signal?.aborted === true) end();
  signal?.addEventListener('abort', end, { once: true });
  return () => signal?.removeEventListener('abort', end);
}

/** An abort is an error only for a caller that waits for an answer or reads one. */
function unread(): void {}

/** Leaves a recorded path that already says watch as it is. */
function watchTarget(path: string, query: Readonly<Record<string, string>>): string {
  if (/[?&]watch=/.test(path)) return path;
  return `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams({ watch: 'true', ...query }).toString()}`;
}

/** The JSON value of a text, or undefined when the text is not JSON. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function readText(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * The non-empty lines of a stream. A caller that does not read stops the stream by its
 * backpressure.
 */
async function* lines(stream: Readable): AsyncGenerator<string> {
  let rest = '';
  stream.setEncoding('utf8');
  for await (const chunk of stream) {
    const parts = (rest + (chunk as string)).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) if (part.trim() !== '') yield part;
  }
  if (rest.trim() !== '') yield rest;
}

function flat(headers: Readonly<Record<string, string | string[] | number | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : String(value)]],
    ),
  );
}
