/** A pusher that sends exactly what a test wants, and nothing by itself. */
import { systemClock } from '../../src/clock.js';
import { connectSocket, defaultConnectOptions } from '../../src/frames/connect-socket.js';
import type { Frame, FrameOf, PushedObject, SliceFreshness } from '../../src/frames/frame.js';
import type { FrameSocket } from '../../src/frames/frame-socket.js';
import { connectPath } from '../../src/frames/socket-options.js';
import { formatSlice, type Slice } from '../../src/domain/slice.js';
import { shardName } from './objects.js';
import { aProcess } from './pushes.js';

export type PusherCertificate = Readonly<{ certificate: string; key: string }>;

/** A server to push into; `certificate` is the server's own. */
export type PushTarget = Readonly<{ url: string; certificate: string; master: PusherCertificate }>;

type Hello = Readonly<{
  name?: string;
  term?: number;
  named?: number;
  process?: string;
  takesOver?: boolean;
  position?: string | undefined;
}>;

export class RawPusher {
  readonly socket: FrameSocket;
  readonly #frames: AsyncIterator<Frame>;
  readonly #whole: SliceFreshness[] = [];
  #next = 1;
  position: string | undefined;
  term = 0;
  /** The slices that the cache has said this term has synced. */
  readonly synced: Slice[] = [];
  /** The slices that it has named or begun, by their text. */
  #named = new Map<string, Slice>();

  private constructor(socket: FrameSocket) {
    this.socket = socket;
    this.#frames = socket.frames()[Symbol.asyncIterator]();
  }

  /** Rejects with UpgradeRefused when the server refuses the upgrade. */
  static async connect(server: PushTarget, { certificate, key }: PusherCertificate = server.master): Promise<RawPusher> {
    const signal = new AbortController().signal;
    const identity = { ca: server.certificate, certificate, key };
    return new RawPusher(
      await connectSocket(`${server.url}${connectPath}`, identity, { clock: systemClock, signal }, defaultConnectOptions),
    );
  }

  /** Connects, sends hello, and resolves once welcomed. */
  static async open(server: PushTarget, { as = server.master, ...hello }: { as?: PusherCertificate } & Hello = {}): Promise<RawPusher> {
    const pusher = await RawPusher.connect(server, as);
    pusher.hello(hello);
    await pusher.expect('welcome');
    return pusher;
  }

  /**
   * `term`: the term that it gets, without waiting, if the cache knows only lower ones; the hello
   * names the one before it. It is fenced if the cache knows that one with another process.
   * `named`: the term that the hello names; 0 for a new process.
   */
  hello({ name = 'amber', term = 1_000, named = term - 1, process = aProcess(term), takesOver = false, position }: Hello = {}): void {
    const granted = { credit: undefined, limits: undefined, ...(position === undefined ? {} : { position }) };
    const who = { role: 'shard', name, process, term: named, takesOver } as const;
    this.socket.send({ kind: 'hello', protocol: 1, ...who, route: [], agent: 'raw', ...granted });
  }

  /**
   * Names these slices as all that its shard has; withdraws the other ones that it named or began.
   */
  types(slices: readonly Slice[]): void {
    const has = new Map(slices.map((slice) => [formatSlice(slice), slice]));
    const withdrawn = [...this.#named].flatMap(([name, slice]) => (has.has(name) ? [] : [slice]));
    this.socket.send({ kind: 'types', slices: slices.filter((slice) => !this.#named.has(formatSlice(slice))), withdrawn, isAll: true });
    this.#named = has;
  }

  /** Each method from here to `end` returns the number of its last mutation. */
  begin(slice: Slice): number {
    this.#named.set(formatSlice(slice), slice);
    this.socket.send({ kind: 'begin', sequence: this.#next, slice, revision: '' });
    return this.#count(1);
  }

  put(slice: Slice, objects: readonly PushedObject[], version = 'v1alpha2'): number {
    this.socket.send({ kind: 'put', sequence: this.#next, slice, version, objects });
    return this.#count(objects.length);
  }

  delete(slice: Slice, names: readonly string[], cluster = 'acme'): number {
    this.socket.send({ kind: 'delete', sequence: this.#next, slice, keys: names.map((name) => ({ cluster, namespace: '', name })) });
    return this.#count(names.length);
  }

  /** `filterHash`: only a link has one. */
  end(slice: Slice, count: number, filterHash = ''): number {
    this.socket.send({ kind: 'end', sequence: this.#next, slice, revision: '', count, filterHash });
    return this.#count(1);
  }

  /** Syncs a slice in full; resolves once the cache has acknowledged it. */
  async sync(slice: Slice, objects: readonly PushedObject[], version?: string): Promise<void> {
    this.begin(slice);
    if (objects.length > 0) this.put(slice, objects, version);
    await this.acknowledged(this.end(slice, objects.length));
  }

  /**
   * Reports the slice, and each that was synced like this, as connected and whole. Then it syncs
   * the slice; resolves once the cache has acknowledged it.
   */
  async syncWhole(slice: Slice, objects: readonly PushedObject[], version?: string): Promise<void> {
    this.#whole.push({ slice, connected: true, synced: true, lagMs: 0, whole: true });
    this.socket.send({ kind: 'status', freshness: [...this.#whole], withdrawn: [] });
    await this.sync(slice, objects, version);
  }

  /** Sends a frame that counts as one mutation; returns its number. */
  numbered(frame: (sequence: number) => Frame): number {
    this.socket.send(frame(this.#next));
    return this.#count(1);
  }

  skip(count: number): void {
    this.#next += count;
  }

  /** Resolves once the number is acknowledged, with the other frames that arrived before. */
  async acknowledged(sequence: number): Promise<readonly Frame[]> {
    const others: Frame[] = [];
    for (;;) {
      const frame = await this.next();
      if (frame.kind === 'ack' && frame.sequence >= sequence) return others;
      if (frame.kind === 'bye') throw new Error(`bye ${frame.reason}: ${frame.message}`);
      if (frame.kind !== 'ack') others.push(frame);
    }
  }

  async next(): Promise<Frame> {
    const { value, done } = await this.#frames.next();
    if (done === true) throw new Error('the connection has ended');
    if (value.kind === 'ack') this.position = value.position;
    if (value.kind === 'welcome') this.term = value.term;
    if (value.kind === 'synced') this.synced.push(...value.slices);
    return value;
  }

  async expect<Kind extends Frame['kind']>(kind: Kind): Promise<FrameOf<Kind>> {
    for (;;) {
      const frame = await this.next();
      if (frame.kind === kind) return frame as FrameOf<Kind>;
      if (frame.kind === 'bye') throw new Error(`bye ${frame.reason}: ${frame.message}`);
    }
  }

  async farewell(): Promise<string> {
    for (;;) {
      const frame = await this.next();
      if (frame.kind === 'bye') return frame.reason;
    }
  }

  #count(mutations: number): number {
    this.#next += mutations;
    return this.#next - 1;
  }
}

export function sliceOf(resource: string, { shard = 'amber', group = 'apis.kcp.io', identity = '' } = {}): Slice {
  return { shard: shardName(shard), resource: { group, resource, identity } };
}

/** An APIExport as a shard pushes it; `more` are members of the whole object. */
export function pushedExport(
  name: string,
  { cluster = 'acme', ...more }: Readonly<Record<string, unknown>> & { cluster?: string } = {},
): PushedObject {
  return pushedObject(
    { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name, uid: `uid-of-${name}` }, ...more },
    cluster,
  );
}

export function pushedObject(
  object: Readonly<{ metadata?: Readonly<{ name?: string; namespace?: string; [member: string]: unknown }>; [member: string]: unknown }>,
  cluster = 'acme',
): PushedObject {
  const { name = '', namespace = '' } = object.metadata ?? {};
  return { cluster, namespace, name, sourceVersion: '1', body: new TextEncoder().encode(JSON.stringify(object)) };
}
