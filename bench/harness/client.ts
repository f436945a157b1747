/**
 * The client for every figure and ceiling that is measured in JavaScript: Node's own, over TLS,
 * HTTP/1.1 or HTTP/2.
 *
 * HTTP/2 windows are those of Go's transport (4 MiB for a stream, 1 GiB for a connection). Node's
 * 64 KiB would measure round trips. Only the caller limits connections: over HTTP/1.1, n streams or
 * n writers use n of them.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type ClientHttp2Session } from 'node:http2';
import { Agent, request } from 'node:https';
import type { Readable } from 'node:stream';

const streamWindowBytes = 4 * 1024 * 1024;
const sessionWindowBytes = 1024 * 1024 * 1024;
const connectMsMax = 10_000;

export type Protocol = 'HTTP/1.1' | 'HTTP/2';

/** The measured server, and the client certificate for it. */
export type Target = Readonly<{ port: number; certificate: string; key: string }>;

export type Answer = Readonly<{
  status: number;
  /**
   * Passes every chunk to `take` until the end. If `take` throws, reading ends and the promise
   * rejects.
   */
  read(take: (chunk: Buffer) => void): Promise<void>;
}>;

export class Client {
  readonly #target: Target;
  readonly #protocol: Protocol;
  readonly #agent: Agent;
  #session: Promise<ClientHttp2Session> | undefined;
  #closed = false;

  constructor(target: Target, protocol: Protocol) {
    this.#target = target;
    this.#protocol = protocol;
    this.#agent = new Agent({ keepAlive: true, scheduling: 'fifo', rejectUnauthorized: false, cert: target.certificate, key: target.key });
  }

  get(path: string): Promise<Answer> {
    return this.#protocol === 'HTTP/1.1' ? this.#askHttp1('GET', path) : this.#askHttp2('GET', path);
  }

  /** Sends one write and reads the whole answer. */
  async write(method: 'POST' | 'PUT', path: string, body: string): Promise<Readonly<{ status: number; body: Buffer }>> {
    const bytes = Buffer.from(body);
    const { status, read } = await (this.#protocol === 'HTTP/1.1'
      ? this.#askHttp1(method, path, bytes)
      : this.#askHttp2(method, path, bytes));
    const chunks: Buffer[] = [];
    await read((chunk) => void chunks.push(chunk));
    return { status, body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) };
  }

  /** Closes every connection at once. An answer that is being read ends without an error. */
  close(): void {
    this.#closed = true;
    this.#agent.destroy();
    this.#session?.then(
      (session) => session.destroy(),
      () => {},
    );
  }

  async #askHttp1(method: string, path: string, body?: Buffer): Promise<Answer> {
    const incoming = await this.#open(method, path, body);
    return { status: incoming.statusCode ?? 0, read: (take) => this.#untilClosed(readAll(incoming, take)) };
  }

  async #askHttp2(method: string, path: string, body?: Buffer): Promise<Answer> {
    const session = await (this.#session ??= openSession(this.#target));
    const written = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length };
    const stream = session.request({ ':method': method, ':path': path, accept: 'application/json', ...written });
    stream.end(body);
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    return { status: Number(headers[':status']), read: (take) => this.#untilClosed(readAll(stream, take)) };
  }

  #open(method: string, path: string, body: Buffer | undefined): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const written = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(body.length) };
      const outgoing = request({
        host: '127.0.0.1',
        port: this.#target.port,
        method,
        path,
        agent: this.#agent,
        headers: { accept: 'application/json', ...written },
      });
      outgoing.on('error', reject);
      outgoing.on('response', (incoming) => {
        // The reader gets the error. An answer without a reader must not end the process when its
        // connection fails.
        incoming.on('error', () => {});
        resolve(incoming);
      });
      outgoing.end(body);
    });
  }

  async #untilClosed(reading: Promise<void>): Promise<void> {
    await reading.catch((error: unknown) => {
      if (!this.#closed) throw error;
    });
  }
}

async function openSession({ port, certificate, key }: Target): Promise<ClientHttp2Session> {
  const session = connect(`https://127.0.0.1:${port}`, {
    rejectUnauthorized: false,
    cert: certificate,
    key,
    settings: { initialWindowSize: streamWindowBytes, enablePush: false },
  });
  session.on('error', () => session.destroy());
  await once(session, 'connect', { signal: AbortSignal.timeout(connectMsMax) });
  session.setLocalWindowSize(sessionWindowBytes);
  return session;
}

function readAll(stream: Readable, take: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.on('data', (chunk: Buffer) => {
      try {
        take(chunk);
      } catch (error) {
        stream.destroy();
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    stream.on('end', resolve);
    stream.on('error', reject);
    stream.on('close', () => reject(new Error('the connection was lost')));
  });
}
