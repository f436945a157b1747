/**
 * An HTTP/2 client that can break every rule: it writes frames by hand (RFC 9113) and reads those
 * of the server. So a test can give no window, stop reading, reset a request at once, flood, or
 * send half a header.
 *
 *   open ── preface, SETTINGS ──▶    request() ── HEADERS [CONTINUATION…] ──▶  data() ── DATA ──▶
 *        ◀─ SETTINGS, answered ──    stream.answer ◀─ HEADERS, DATA, RST_STREAM, as they arrive
 *
 * By default it follows the rules: it acknowledges settings and pings, and returns as window what
 * it has read. It keeps up to `keptBytesMax` of each answer's body; of what exceeds that, only the
 * length.
 */
import { once } from 'node:events';
import type { TLSSocket } from 'node:tls';
import { decodeFields, encodeFields, type Field } from './hpack.js';
import { endConnection, openTls, type Ending, type Place, type RawTls } from './raw-tls.js';

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const flags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8 } as const;
export const errorCodes = {
  noError: 0,
  protocol: 1,
  flowControl: 3,
  streamClosed: 5,
  refusedStream: 7,
  cancel: 8,
  enhanceYourCalm: 11,
} as const;

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const settingIds = { headerTableSize: 1, enablePush: 2, streamsMax: 3, initialWindow: 4, frameBytesMax: 5, headerListBytesMax: 6 } as const;
const frameBytesMax = 16_384;
const headBytes = 9;
const keptBytesMax = 1024 * 1024;
const defaultWindow = 65_535;

export type RawHttp2Options = Place &
  Readonly<{
    /** How many bytes the server may send on each stream before it is given more window. */
    windowBytes?: number;
    /** Returns no window, and acknowledges no pings and no settings. */
    silent?: boolean;
  }>;

/** What has arrived on one stream so far. */
class RawStream {
  readonly id: number;
  /** The frames in order of arrival, so that an end of the stream differs from a reset. */
  readonly came: ('headers' | 'data' | 'end' | 'reset')[] = [];
  status = 0;
  headers: Readonly<Record<string, string>> = {};
  bytes = 0;
  resetCode: number | undefined;
  readonly #kept: Buffer[] = [];

  constructor(id: number) {
    this.id = id;
  }

  get text(): string {
    return Buffer.concat(this.#kept).toString('utf8');
  }

  /** Whether the whole answer has arrived, to its end of stream, without a reset before that. */
  get isWhole(): boolean {
    return this.came.includes('end');
  }

  get isOver(): boolean {
    return this.came.includes('end') || this.came.includes('reset');
  }

  take(bytes: Buffer): void {
    this.bytes += bytes.length;
    if (this.bytes <= keptBytesMax) this.#kept.push(Buffer.from(bytes));
  }
}

function frameBytes(type: number, frameFlags: number, id: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(frameFlags, 4);
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

export class RawHttp2 {
  readonly socket: TLSSocket;
  readonly #connection: RawTls;
  readonly streams = new Map<number, RawStream>();
  readonly #silent: boolean;
  #goaway: Readonly<{ code: number; lastStream: number }> | undefined;
  #isClosed = false;
  #nextId = 1;
  #unread = Buffer.alloc(0);
  #headerBlock: { id: number; ends: boolean; parts: Buffer[] } | undefined;
  #serverSettings: Readonly<Record<number, number>> = {};
  #pings = 0;
  #connectionWindow = defaultWindow;
  readonly #windows = new Map<number, number>();
  #wake: (() => void)[] = [];

  private constructor(connection: RawTls, silent: boolean) {
    this.#connection = connection;
    const socket = connection.tls;
    this.socket = socket;
    this.#silent = silent;
    socket.on('data', (bytes) => this.#read(bytes));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#isClosed = true;
      this.#changed();
    });
  }

  /**
   * Opens a connection and sends preface and settings, without waiting for the server's settings.
   */
  static async open({ windowBytes = defaultWindow, silent = false, ...place }: RawHttp2Options): Promise<RawHttp2> {
    const connection = await openTls(place, { ALPNProtocols: ['h2'] });
    const client = new RawHttp2(connection, silent);
    client.socket.write(preface);
    client.settings([
      [settingIds.headerTableSize, 0],
      [settingIds.enablePush, 0],
      [settingIds.initialWindow, windowBytes],
    ]);
    return client;
  }

  get goaway(): Readonly<{ code: number; lastStream: number }> | undefined {
    return this.#goaway;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get pings(): number {
    return this.#pings;
  }

  /** How many streams the server accepts at once; undefined until its settings have arrived. */
  get streamsMax(): number | undefined {
    return this.#serverSettings[settingIds.streamsMax];
  }

  get hasServerSettings(): boolean {
    return Object.keys(this.#serverSettings).length > 0;
  }

  frame(type: number, frameFlags: number, id: number, payload: Buffer = Buffer.alloc(0)): void {
    this.frames([[type, frameFlags, id, payload]]);
  }

  /** Sends frames in one TLS record, so that the server reads them at once. */
  frames(each: readonly (readonly [type: number, flags: number, id: number, payload: Buffer])[]): void {
    if (this.#isClosed || this.socket.destroyed) return;
    this.socket.write(Buffer.concat(each.map((one) => frameBytes(...one))));
  }

  settings(values: readonly (readonly [id: number, value: number])[]): void {
    const payload = Buffer.alloc(values.length * 6);
    for (const [at, [id, value]] of values.entries()) {
      payload.writeUInt16BE(id, at * 6);
      payload.writeUInt32BE(value, at * 6 + 2);
    }
    this.frame(frameTypes.settings, 0, 0, payload);
  }

  ping(): void {
    this.frame(frameTypes.ping, 0, 0, Buffer.alloc(8, 7));
  }

  windowUpdate(id: number, bytes: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(bytes);
    this.frame(frameTypes.windowUpdate, 0, id, payload);
  }

  reset(id: number, code: number = errorCodes.cancel): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(code);
    this.frame(frameTypes.reset, 0, id, payload);
  }

  /**
   * Sends a new request, whose headers take as many frames as they need. With `ends: false` a body
   * follows.
   */
  request(
    method: string,
    path: string,
    { headers = {}, ends = true }: Readonly<{ headers?: Readonly<Record<string, string>>; ends?: boolean }> = {},
  ): RawStream {
    const stream = this.begin();
    const fields: Field[] = [
      [':method', method],
      [':scheme', 'https'],
      [':authority', 'localhost'],
      [':path', path],
      ...Object.entries(headers),
    ];
    this.headers(stream.id, encodeFields(fields), { ends });
    return stream;
  }

  /** Makes the next stream, without sending anything on it. */
  begin(): RawStream {
    const stream = new RawStream(this.#nextId);
    this.streams.set(stream.id, stream);
    this.#nextId += 2;
    return stream;
  }

  /**
   * Sends HEADERS and as many CONTINUATIONs as the block needs. Without `endsHeaders` the block
   * stays open.
   */
  headers(id: number, block: Buffer, { ends, endsHeaders = true }: Readonly<{ ends: boolean; endsHeaders?: boolean }>): void {
    const pieces = Array.from({ length: Math.max(1, Math.ceil(block.length / frameBytesMax)) }, (_, at) =>
      block.subarray(at * frameBytesMax, (at + 1) * frameBytesMax),
    );
    for (const [at, piece] of pieces.entries()) {
      const last = endsHeaders && at === pieces.length - 1 ? flags.endHeaders : 0;
      if (at === 0) this.frame(frameTypes.headers, last | (ends ? flags.endStream : 0), id, piece);
      else this.frame(frameTypes.continuation, last, id, piece);
    }
  }

  /** Sends one DATA frame, even beyond the windows. */
  data(id: number, bytes: Buffer, ends = false): void {
    this.#connectionWindow -= bytes.length;
    this.#windows.set(id, this.#windowOf(id) - bytes.length);
    this.frame(frameTypes.data, ends ? flags.endStream : 0, id, bytes);
  }

  /**
   * Sends a body frame by frame, within the windows. Resolves with true once all of it is sent,
   * with false if the stream or the connection ended first.
   */
  async body(stream: RawStream, bytes: Buffer, { ends = true, stopsWhenOver = true } = {}): Promise<boolean> {
    let at = 0;
    while (at < bytes.length) {
      if (this.#isClosed || (stopsWhenOver ? stream.isOver : stream.came.includes('reset'))) return false;
      const room = Math.min(this.#connectionWindow, this.#windowOf(stream.id), frameBytesMax, bytes.length - at);
      if (room <= 0) {
        await this.#change();
        continue;
      }
      this.data(stream.id, bytes.subarray(at, at + room), ends && at + room === bytes.length);
      at += room;
      if (this.socket.writableNeedDrain) await Promise.race([once(this.socket, 'drain').catch(() => {}), this.#change()]);
    }
    return true;
  }

  /**
   * Resolves when the condition holds; rejects when it does not in time. Checks it whenever
   * something arrives.
   */
  async until(condition: () => boolean, what: string, withinMs = 10_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!condition()) {
      if (performance.now() > deadline) throw new Error(`${what}: not in ${withinMs} ms`);
      await this.#change();
    }
  }

  /** Resolves with the stream once it has ended or was reset. */
  async answered(stream: RawStream, withinMs = 10_000): Promise<RawStream> {
    await this.until(() => stream.isOver || this.#isClosed, `an answer on stream ${stream.id}`, withinMs);
    return stream;
  }

  /** Sends a request without a body; resolves with its stream once that is over. */
  async ask(method: string, path: string, headers: Readonly<Record<string, string>> = {}): Promise<RawStream> {
    return await this.answered(this.request(method, path, { headers }));
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

  #windowOf(id: number): number {
    return this.#windows.get(id) ?? this.#serverSettings[settingIds.initialWindow] ?? defaultWindow;
  }

  /** Resolves when something arrives, or after 50 ms. */
  async #change(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, 50);
      this.#wake.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #changed(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }

  #read(bytes: Buffer): void {
    let rest = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    while (rest.length >= headBytes) {
      const end = headBytes + rest.readUIntBE(0, 3);
      if (rest.length < end) break;
      this.#take(rest.readUInt8(3), rest.readUInt8(4), rest.readUInt32BE(5) & 0x7fffffff, rest.subarray(headBytes, end));
      rest = rest.subarray(end);
    }
    this.#unread = Buffer.from(rest);
    this.#changed();
  }

  #take(type: number, frameFlags: number, id: number, payload: Buffer): void {
    const stream = this.streams.get(id);
    switch (type) {
      case frameTypes.data:
        stream?.came.push('data');
        stream?.take(payload);
        if (!this.#silent && payload.length > 0) {
          this.windowUpdate(0, payload.length);
          if ((frameFlags & flags.endStream) === 0) this.windowUpdate(id, payload.length);
        }
        if ((frameFlags & flags.endStream) !== 0) stream?.came.push('end');
        return;
      case frameTypes.headers:
        this.#headerBlock = { id, ends: (frameFlags & flags.endStream) !== 0, parts: [Buffer.from(payload)] };
        if ((frameFlags & flags.endHeaders) !== 0) this.#endHeaders();
        return;
      case frameTypes.continuation:
        this.#headerBlock?.parts.push(Buffer.from(payload));
        if ((frameFlags & flags.endHeaders) !== 0) this.#endHeaders();
        return;
      case frameTypes.reset:
        stream?.came.push('reset');
        if (stream !== undefined) stream.resetCode = payload.readUInt32BE(0);
        return;
      case frameTypes.settings:
        if ((frameFlags & flags.ack) === 0) this.#takeSettings(payload);
        return;
      case frameTypes.ping:
        if ((frameFlags & flags.ack) !== 0) return;
        this.#pings += 1;
        if (!this.#silent) this.frame(frameTypes.ping, flags.ack, 0, Buffer.from(payload));
        return;
      case frameTypes.goaway:
        this.#goaway = { lastStream: payload.readUInt32BE(0), code: payload.readUInt32BE(4) };
        return;
      case frameTypes.windowUpdate: {
        const more = payload.readUInt32BE(0);
        if (id === 0) this.#connectionWindow += more;
        else this.#windows.set(id, this.#windowOf(id) + more);
        return;
      }
      default:
    }
  }

  #takeSettings(payload: Buffer): void {
    const before = this.#serverSettings[settingIds.initialWindow] ?? defaultWindow;
    const settings: Record<number, number> = { ...this.#serverSettings };
    for (let at = 0; at + 6 <= payload.length; at += 6) settings[payload.readUInt16BE(at)] = payload.readUInt32BE(at + 2);
    this.#serverSettings = settings;
    const moved = (settings[settingIds.initialWindow] ?? defaultWindow) - before;
    for (const [id, window] of this.#windows) this.#windows.set(id, window + moved);
    if (!this.#silent) this.frame(frameTypes.settings, flags.ack, 0);
  }

  #endHeaders(): void {
    const block = this.#headerBlock;
    this.#headerBlock = undefined;
    const stream = this.streams.get(block?.id ?? 0);
    if (block === undefined || stream === undefined) return;
    const headers = Object.fromEntries(decodeFields(Buffer.concat(block.parts)));
    const status = headers[':status'];
    stream.came.push('headers');
    if (status !== undefined) {
      stream.status = Number(status);
      stream.headers = headers;
    }
    if (block.ends) stream.came.push('end');
  }
}
