/**
 * The other end of a link for a benchmark. It sends the frames of a cache, opens as many slices as
 * asked or receives what the server sends, and keeps to the credit. It stores nothing and takes
 * almost no time, so the measured time is the server's.
 */
import { once } from 'node:events';
import { systemClock } from '../../src/clock.js';
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import { parseShardName, type ShardName } from '../../src/domain/shard.js';
import { formatSlice, type Slice } from '../../src/domain/slice.js';
import { connectSocket, defaultConnectOptions } from '../../src/frames/connect-socket.js';
import type { FrameSocket } from '../../src/frames/frame-socket.js';
import { protocolVersion, type Frame, type FrameOf, type InventorySlice } from '../../src/frames/frame.js';
import type { TestAuthority } from '../../test/support/test-authority.js';
import { connectPath } from '../../src/frames/socket-options.js';

const credit = { mutations: 16_384, bytes: 64 * 1024 * 1024 };
const limits = { frameBytesMax: 4 * 1024 * 1024, frameMutationsMax: 512, bodyBytesMax: 3 * 1024 * 1024 };
/** How many mutations one acknowledgement covers. */
const acknowledgedEvery = 256;

/** All objects are named `one` and are in the logical cluster `cluster`, by default `acme`. */
export type OfSlice = Readonly<{
  slice: Slice;
  objects: readonly Readonly<{ namespace: string; text: string }>[];
  version: string;
  cluster?: string;
}>;

/**
 * `count` slices of built-in types, `kcpTypes.length` for each shard, with one small object each.
 */
export function manySlices(count: number): readonly OfSlice[] {
  return Array.from({ length: count }, (_, i) => {
    const type = kcpTypes[i % kcpTypes.length]!;
    const shard = parseShardName(`shard-${Math.floor(i / kcpTypes.length)}`)!;
    const apiVersion = `${type.group}/${type.storageVersion}`;
    const namespace = type.namespaced ? 'default' : '';
    const metadata = { name: 'one', uid: `uid-${i}`, ...(type.namespaced && { namespace }) };
    const { group, resource, identity, kind, storageVersion: version } = type;
    return {
      slice: { shard, resource: { group, resource, identity } },
      version,
      objects: [{ namespace, text: JSON.stringify({ apiVersion, kind, metadata }) }],
    };
  });
}

export type Memory = Readonly<{ position: string; held: readonly InventorySlice[] }>;

type Server = Readonly<{ port: number; certificate: string; authority: TestAuthority }>;

export class BareCache {
  readonly #socket: FrameSocket;
  readonly #name: string;
  #next = 1;
  #acknowledged = 0;
  #credit: Readonly<{ mutations: number; bytes: number }> = { mutations: 0, bytes: 0 };
  #taken = 0;
  #received = 0;
  #ends = 0;
  #refused = 0;
  #changes = 0;
  #position = '';
  readonly #held = new Map<string, InventorySlice>();
  readonly #terms = new Map<ShardName, number>();
  readonly #chosen = new Set<ShardName>();
  #moved = new AbortController();
  #isOver = false;
  #hasPolicy = false;
  /** The number of the heartbeat that is not answered yet; 0 for none. */
  #heartbeat = 0;
  /** The reason and message with which the server left. */
  #bye = '';
  /** Resolves when the connection is over. */
  readonly reading: Promise<void>;

  private constructor(socket: FrameSocket, name: string) {
    this.#socket = socket;
    this.#name = name;
    this.reading = this.#read();
  }

  /**
   * Opens a link as the child `name`. Resolves when the server has welcomed it; no policies are
   * exchanged yet. Without `own` it shows a newly issued certificate.
   */
  static async open(server: Server, name: string, own?: Readonly<{ certificate: string; key: string }>): Promise<BareCache> {
    const { certificate, key } = own ?? server.authority.issue({ user: name, groups: ['strata'], uris: [`strata://cache/${name}`] });
    const identity = { ca: server.certificate, certificate, key };
    const signal = new AbortController().signal;
    const url = `https://127.0.0.1:${server.port}${connectPath}`;
    const socket = await connectSocket(url, identity, { clock: systemClock, signal }, defaultConnectOptions);
    const cache = new BareCache(socket, name);
    const role = {
      role: 'cache',
      name,
      process: '',
      term: 1,
      takesOver: false,
      route: [`id-of-${name}`],
      slices: [],
      agent: 'strata-bench',
    } as const;
    socket.send({ kind: 'hello', protocol: protocolVersion, ...role, credit, limits });
    await cache.#until(() => cache.#credit.mutations > 0);
    return cache;
  }

  get ends(): number {
    return this.#ends;
  }

  get refused(): number {
    return this.#refused;
  }

  /** Sends the rules of this end: `up` for what goes up from here, `down` for what comes down. */
  policy(up: string, down: string): void {
    this.#socket.send({ kind: 'policy', up, down });
    this.#hasPolicy = true;
    this.#answer();
  }

  /** Reports what `memory` holds; by default nothing. */
  resume({ position, held }: Memory = { position: '', held: [] }): void {
    this.#socket.send({ kind: 'resume', position, held, isLast: true });
  }

  /** The held slices and the position, as it reports them when it reconnects. */
  get memory(): Memory {
    return { position: this.#position, held: [...this.#held.values()] };
  }

  /** The number of objects and deletes that have arrived. */
  get changes(): number {
    return this.#changes;
  }

  async changed(count: number): Promise<void> {
    await this.#until(() => this.#changes >= count);
  }

  /**
   * Claims the shards of these slices. Resolves when the server has chosen this cache for all of
   * them.
   */
  async claim(slices: readonly OfSlice[]): Promise<void> {
    const shards = new Set(slices.map(({ slice }) => slice.shard));
    const origin = `id-of-${this.#name}`;
    const claim = {
      kind: 'claim',
      term: 1_000,
      process: 'bench',
      removed: false,
      origin,
      path: [origin],
      reached: true,
      held: true,
    } as const;
    for (const shard of shards) this.#socket.send({ ...claim, shard, isYours: false });
    await this.#until(() => [...shards].every((shard) => this.#chosen.has(shard)));
  }

  /** Reports the pusher of each slice as connected and not behind. */
  async report(slices: readonly OfSlice[], connected = true): Promise<void> {
    for (let at = 0; at < slices.length; at += 1_000) {
      const freshness = slices.slice(at, at + 1_000).map(({ slice }) => ({ slice, connected, synced: true, lagMs: 0, whole: true }));
      await this.#send((sequence) => ({ kind: 'report', sequence, freshness, heartbeat: 0, isAll: false, isComplete: true }));
    }
    await this.#send((sequence) => ({ kind: 'report', sequence, freshness: [], heartbeat: 0, isAll: true, isComplete: true }));
  }

  /** Sends a heartbeat once a second, as a cache does, until the connection ends. */
  sendHeartbeats(): void {
    let number = 0;
    const asking = setInterval(() => this.#socket.send({ kind: 'heartbeat', number: (number += 1) }), 1_000);
    void this.reading.finally(() => clearInterval(asking));
  }

  /** Begins the slices. Resolves with the milliseconds until the last begin is durable. */
  async begin(slices: readonly OfSlice[]): Promise<number> {
    const startedAt = performance.now();
    for (const { slice } of slices) await this.#send((sequence) => ({ kind: 'begin', sequence, slice, revision: '1' }));
    await this.#until(() => this.#acknowledged >= this.#next - 1);
    return performance.now() - startedAt;
  }

  /**
   * Sends the objects and the ends of slices that have begun. Resolves with the milliseconds until
   * all of them are durable.
   */
  async send(slices: readonly OfSlice[]): Promise<number> {
    const startedAt = performance.now();
    for (const { slice, version, objects, cluster = 'acme' } of slices) {
      const pushed = objects.map(({ namespace, text }) => ({
        cluster,
        namespace,
        name: 'one',
        sourceVersion: '1',
        body: Buffer.from(text),
      }));
      await this.#send((sequence) => ({ kind: 'put', sequence, slice, version, objects: pushed }));
      await this.#send((sequence) => ({ kind: 'end', sequence, slice, revision: '1', count: objects.length, filterHash: 'e' }));
    }
    await this.#until(() => this.#acknowledged >= this.#next - 1);
    return performance.now() - startedAt;
  }

  async ended(count: number): Promise<void> {
    await this.#until(() => this.#ends >= count);
  }

  terminate(): void {
    this.#socket.terminate();
  }

  async close(): Promise<void> {
    this.#socket.close('shutdown', 'it is over');
    await this.#socket.closed;
    await this.reading;
  }

  async #send(frame: (sequence: number) => Frame): Promise<void> {
    // All frames here are small and have one mutation.
    if (this.#next - 1 - this.#acknowledged >= Math.min(this.#credit.mutations, this.#credit.bytes / 1_024))
      await this.#until(() => this.#next - 1 - this.#acknowledged < Math.min(this.#credit.mutations, this.#credit.bytes / 1_024) / 2);
    this.#socket.send(frame(this.#next));
    this.#next += 1;
    await this.#socket.drained();
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.#isOver) throw new Error(`the connection of ${this.#name} has ended: ${this.#bye}`);
      if (this.#moved.signal.aborted) this.#moved = new AbortController();
      await once(this.#moved.signal, 'abort');
    }
  }

  async #read(): Promise<void> {
    for await (const frame of this.#socket.frames()) {
      this.#take(frame);
      this.#moved.abort();
    }
    this.#isOver = true;
    this.#moved.abort();
  }

  #take(frame: Frame): void {
    if (frame.kind === 'welcome') this.#credit = frame.credit;
    if (frame.kind === 'ack') [this.#acknowledged, this.#credit] = [frame.sequence, frame.credit];
    if (frame.kind === 'bye') this.#bye = `${frame.reason} ${frame.message}`;
    if (frame.kind === 'refuse') this.#refused += 1;
    if (frame.kind === 'begin' && frame.compares === true)
      this.#socket.send({ kind: 'summary', slice: frame.slice, sequence: frame.sequence, digests: new Uint8Array() });
    if (frame.kind === 'end') this.#hold(frame);
    if (frame.kind === 'put') this.#changes += frame.objects.length;
    if (frame.kind === 'delete') this.#changes += frame.keys.length;
    if ('position' in frame && frame.position !== undefined && frame.kind !== 'ack') this.#position = frame.position;
    if (frame.kind === 'claim') this.#choose(frame);
    if (frame.kind === 'heartbeat') this.#heartbeat = frame.number;
    this.#answer();
    if (!('sequence' in frame) || frame.kind === 'ack' || frame.kind === 'refuse') return;
    const mutations = frame.kind === 'put' ? frame.objects.length : frame.kind === 'delete' ? frame.keys.length : 1;
    this.#taken = frame.sequence + mutations - 1;
    if (this.#received + acknowledgedEvery <= this.#taken) this.#acknowledge();
    else setImmediate(() => this.#acknowledge());
  }

  /** A report must not precede the policy. */
  #answer(): void {
    const heartbeat = this.#heartbeat;
    if (!this.#hasPolicy || heartbeat === 0) return;
    this.#heartbeat = 0;
    void this.#send((sequence) => ({ kind: 'report', sequence, freshness: [], heartbeat, isAll: false, isComplete: true })).catch(() => {});
  }

  #hold({ slice, filterHash }: FrameOf<'end'>): void {
    this.#ends += 1;
    this.#held.set(formatSlice(slice), { slice, filterHash, syncedTerm: this.#terms.get(slice.shard) ?? 0 });
  }

  /** Chooses the server for every shard whose claim does not lead through this cache. */
  #choose(claim: FrameOf<'claim'>): void {
    this.#terms.set(claim.shard, claim.term);
    if (claim.isYours) this.#chosen.add(claim.shard);
    else if (!claim.path.includes(`id-of-${this.#name}`))
      this.#socket.send({ ...claim, path: [...claim.path, `id-of-${this.#name}`], isYours: true });
  }

  #acknowledge(): void {
    if (this.#received === this.#taken) return;
    this.#received = this.#taken;
    this.#socket.send({ kind: 'ack', sequence: this.#taken, credit });
  }
}
