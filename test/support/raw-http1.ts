/**
 * An HTTP/1.1 client that writes given bytes onto a TLS connection. It reads the answers one by
 * one, each with how much of it has arrived. So a test can send half a request, two in one write,
 * or one without an end, and check whether the whole refusal arrived.
 */
import { once } from 'node:events';
import type { TLSSocket } from 'node:tls';
import { endConnection, openTls, type Ending, type Place, type RawTls } from './raw-tls.js';

/** The most bytes kept that do not yet make a whole answer. */
const keptBytesMax = 8 * 1024 * 1024;

export type RawAnswer = Readonly<{ status: number; headers: Readonly<Record<string, string>>; text: string }>;

export class RawHttp1 {
  readonly socket: TLSSocket;
  readonly #connection: RawTls;
  /**
   * Answers that have arrived whole, without those with a 1xx status, which only `interim` counts.
   */
  readonly answers: RawAnswer[] = [];
  interim = 0;
  #unread = Buffer.alloc(0);
  #isClosed = false;
  #wake: (() => void)[] = [];

  private constructor(connection: RawTls) {
    this.#connection = connection;
    const socket = connection.tls;
    this.socket = socket;
    socket.on('data', (bytes: Buffer) => {
      this.#unread = Buffer.concat([this.#unread, bytes]);
      if (this.#unread.length > keptBytesMax) throw new Error('more came than this client keeps');
      this.#read();
      this.#changed();
    });
    socket.on('error', () => {});
    for (const event of ['end', 'close'])
      socket.on(event, () => {
        this.#isClosed = true;
        this.#changed();
      });
  }

  static async open(place: Place): Promise<RawHttp1> {
    const connection = await openTls(place, { ALPNProtocols: ['http/1.1'] });
    return new RawHttp1(connection);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The received bytes that do not yet make a whole answer. */
  get unread(): string {
    return this.#unread.toString('latin1');
  }

  send(bytes: string | Buffer): void {
    if (!this.socket.destroyed && this.socket.writable) this.socket.write(bytes);
  }

  /** Resolves when TCP accepts more, or the connection has ended. */
  async drained(): Promise<void> {
    if (this.socket.writableNeedDrain && !this.#isClosed)
      await Promise.race([once(this.socket, 'drain').catch(() => {}), this.until(() => this.#isClosed, 'room for more')]);
  }

  /** Sends the head of a request, with its empty line. */
  head(method: string, path: string, headers: Readonly<Record<string, string>> = {}): void {
    const lines = Object.entries({ host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    this.send(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  }

  /** Resolves when the condition holds; rejects when it does not in time. */
  async until(condition: () => boolean, what: string, withinMs = 10_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!condition()) {
      if (performance.now() > deadline) throw new Error(`${what}: not in ${withinMs} ms`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 50);
        this.#wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** The answer with that number, from 0; undefined when the connection ended without it. */
  async answer(index: number, withinMs = 10_000): Promise<RawAnswer | undefined> {
    await this.until(() => this.answers.length > index || this.#isClosed, `answer ${index}`, withinMs);
    return this.answers[index];
  }

  /** Sends a request without a body; resolves with its answer. */
  async ask(method: string, path: string, headers: Readonly<Record<string, string>> = {}): Promise<RawAnswer | undefined> {
    const index = this.answers.length;
    this.head(method, path, headers);
    return await this.answer(index);
  }

  /** Reads nothing more, so TCP stops the server from sending. */
  stopReading(): void {
    this.socket.pause();
  }

  end(ending: Ending): void {
    endConnection(this.#connection, ending);
  }

  destroy(): void {
    this.end('fin');
  }

  #changed(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }

  #read(): void {
    for (let one = readAnswer(this.#unread); one !== undefined; one = readAnswer(this.#unread)) {
      this.#unread = this.#unread.subarray(one.length);
      if (one.answer.status < 200) this.interim += 1;
      else this.answers.push(one.answer);
    }
  }
}

function readAnswer(bytes: Buffer): Readonly<{ answer: RawAnswer; length: number }> | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0);
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const start = headEnd + 4;
  if (headers['transfer-encoding'] === 'chunked') return readChunks(bytes, start, { status, headers });
  const end = start + (status < 200 || status === 204 || status === 304 ? 0 : Number(headers['content-length'] ?? 0));
  return bytes.length < end ? undefined : { answer: { status, headers, text: bytes.subarray(start, end).toString('utf8') }, length: end };
}

function readChunks(
  bytes: Buffer,
  start: number,
  head: Pick<RawAnswer, 'status' | 'headers'>,
): Readonly<{ answer: RawAnswer; length: number }> | undefined {
  const chunks: Buffer[] = [];
  for (let at = start; ;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const length = Number.parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16);
    const end = lineEnd + 2 + length + 2;
    if (bytes.length < end) return undefined;
    if (length === 0) return { answer: { ...head, text: Buffer.concat(chunks).toString('utf8') }, length: end };
    chunks.push(bytes.subarray(lineEnd + 2, end - 2));
    at = end;
  }
}
