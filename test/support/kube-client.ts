/**
 * A small Kubernetes client for tests: raw access to status, headers and text, JSON verbs on top of it, and a watch as an
 * async iterable of events. It decodes nothing the test did not ask for; `text` is what came over the wire.
 *
 * Over HTTP/1.1 it has a connection per request in flight; over HTTP/2 everything is on one connection, as kcp does.
 * A test that does not choose with `http2` speaks what TEST_HTTP says (`choose-http.ts`). A watch has no buffer of its own: a caller that does not read stops the socket, which is how a slow watcher is played.
 */
import { once } from 'node:events';
import { connect, constants, type ClientHttp2Session } from 'node:http2';
import { Agent, request } from 'node:https';
import type { Readable } from 'node:stream';
import { createSecureContext, type SecureContext } from 'node:tls';

const requestMsMax = 30_000;
const connectMsMax = 5_000;
const goStreamWindowBytes = 4 * 1024 * 1024;
const goSessionWindowBytes = 1024 * 1024 * 1024;

/** By certificate: to make one for each connection takes a millisecond. */
const contexts = new Map<string, SecureContext>();

function contextOf(cert: string | undefined, key: string | undefined): SecureContext {
  const known = contexts.get(cert ?? '');
  if (known !== undefined) return known;
  const made = createSecureContext({ ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) });
  contexts.set(cert ?? '', made);
  return made;
}

/** What a client speaks by default. */
const speaksHttp2 = process.env['TEST_HTTP'] === '2';

export type KubeClientOptions = Readonly<{
  url: string;
  certificate?: string;
  key?: string;
  /** Put in front of every path, for example `/services/cache/shards/amber/clusters/acme`. */
  prefix?: string;
  http2?: boolean;
  /** HTTP/2 windows of Go's transport, as kcp's informers have. With Node's own, 64 KiB a stream, a client that does not read soon stops a server. */
  goWindows?: boolean;
}>;

export type RequestOptions = Readonly<{
  headers?: Readonly<Record<string, string | string[]>>;
  /** Text and bytes go as they are; anything else is serialised. Undefined sends no body. */
  body?: unknown;
  timeoutMs?: number;
  signal?: AbortSignal;
}>;

export type Answer = Readonly<{ status: number; headers: Readonly<Record<string, string>>; text: string }>;

/** The members that tests use; everything else is there too. */
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
  /** Called once the server has answered the watch. */
  opened?: () => void;
  query?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}>;

/** An answer that is no success, to a JSON verb. */
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

  constructor({ url, certificate, key, prefix = '', http2 = speaksHttp2, goWindows = false }: KubeClientOptions) {
    this.#url = new URL(url);
    this.#prefix = prefix;
    this.#http2 = http2;
    this.#goWindows = goWindows;
    this.#tls = { rejectUnauthorized: false, secureContext: contextOf(certificate, key) };
    this.#agent = new Agent({ ...this.#tls, keepAlive: true });
  }

  /** One request, answered whole, whatever its status. */
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
   * Events until the server ends the stream, the signal fires (no error then) or the caller breaks out. Throws KubeError
   * unless the status is 200, and whatever error ended the connection.
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
    // If the end is not passed on explicitly, Node ends the request of a DELETE before its body.
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
      // A server that is killed closes its streams without an error.
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
 * Ends a request when the signal fires; answers what forgets the signal again. Node's own `signal` destroys the request with an error, which a socket
 * of HTTP/1.1 emits to nobody if its answer ends in that moment and it is on its way back to the agent: the process ends.
 */
function onAbort(signal: AbortSignal | undefined, end: () => void): () => void {
  if (signal?.aborted === true) end();
  signal?.addEventListener('abort', end, { once: true });
  return () => signal?.removeEventListener('abort', end);
}

/** Whoever waits for an answer or reads gets the error that ends it; an abort while nobody does is no error. */
function unread(): void {}

/** A recorded path that says watch already stays as it is. */
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

/** The lines of a stream without the empty ones. A caller that waits stops the reading through the stream's own backpressure. */
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
