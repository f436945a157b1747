/**
 * The receiving side in memory, reduced to its rules. Frames that arrive wait until the test
 * commits them; a dropped connection loses those that wait. `violations` collects every rule that a
 * sender breaks.
 */
import { deferred, type Deferred } from '../../../src/domain/base/promises.js';
import { formatSlice, type Slice } from '../../../src/domain/slice.js';
import { byeReasons, type ByeReason } from '../../../src/frames/bye.js';
import { frameBounds } from '../../../src/frames/frame-bounds.js';
import type { FrameConnection } from '../../../src/frames/frame-connection.js';
import type { Credit, Frame, FrameLimits, FrameOf, PushedKey } from '../../../src/frames/frame.js';

type Mutations = FrameOf<'put' | 'delete' | 'begin' | 'end' | 'clusterBegin' | 'clusterEnd' | 'clusterKeep'>;

const mutations: ReadonlySet<string> = new Set<Mutations['kind']>([
  'put',
  'delete',
  'begin',
  'end',
  'clusterBegin',
  'clusterEnd',
  'clusterKeep',
]);
type Waiting = Readonly<{ frame: Mutations; ignored: boolean }> | Readonly<{ invalidate: string }>;
type Sync = { unmarked: Set<string> };

const generous: Credit = { mutations: 1000, bytes: 1_000_000 };

export class FakeCache {
  readonly cacheId: string;
  epoch = 1;
  /** Counts durable mutations over all connections; this is the number in a position. */
  durable = 0;
  credit: Credit = generous;
  limits: FrameLimits = { frameBytesMax: 100_000, frameMutationsMax: 100, bodyBytesMax: 10_000 };
  protocol = 1;
  welcomes = true;
  /** The error with which a connection fails; undefined: it succeeds. */
  refusal: Error | undefined;
  /** The reason to refuse an object; undefined accepts it. */
  refuses: (key: PushedKey) => string | undefined = () => undefined;
  /** Whether it refuses every `begin`, as if the slices' types were unknown to it. */
  refusesBegin = false;
  beginRefusal = 'Forbidden';

  readonly objects = new Map<string, Map<string, string>>();
  readonly synced = new Set<string>();
  readonly received: Frame[] = [];
  /** The slices of its shard, once a `types` frame has said that it names all of them. */
  named: readonly string[] | undefined;
  readonly violations: string[] = [];
  readonly tried: string[] = [];
  connection: FakeConnection | undefined;

  constructor(cacheId = 'cache-a') {
    this.cacheId = cacheId;
  }

  readonly connect = async (url: string): Promise<FrameConnection> => {
    this.tried.push(url);
    if (this.refusal !== undefined) throw this.refusal;
    this.connection?.end(1006);
    this.connection = new FakeConnection(this);
    return this.connection;
  };

  /** The objects that it holds of a slice, by cluster|namespace|name. */
  held(slice: Slice): Readonly<Record<string, string>> {
    return Object.fromEntries([...(this.objects.get(formatSlice(slice)) ?? [])].toSorted());
  }

  /**
   * The kinds of the received frames, without `status` and `types`, which say nothing about
   * objects.
   */
  kinds(): readonly string[] {
    return this.received.map(({ kind }) => kind).filter((kind) => kind !== 'status' && kind !== 'types');
  }

  /** Makes the next frames durable and acknowledges them. */
  commit(frames = Infinity, { acknowledged = true } = {}): void {
    this.connection?.commit(frames, acknowledged);
  }

  drop(code = 1006): void {
    this.connection?.end(code);
  }

  /** Loses its disk, or rolls it back: a new epoch begins. */
  forget(): void {
    this.drop();
    this.epoch += 1;
    this.objects.clear();
    this.synced.clear();
  }

  resync(slice: Slice): void {
    this.connection?.invalidate(slice, 'lost');
  }

  bye(reason: ByeReason, retryAfterMs?: number): void {
    this.connection?.say({ kind: 'bye', reason, message: `because ${reason}`, retryAfterMs });
    this.connection?.end(byeReasons[reason].code);
  }
}

class FakeConnection implements FrameConnection {
  readonly peer = 'fake';
  readonly #cache: FakeCache;
  readonly #closed = deferred<Readonly<{ code: number }>>();
  #isOpen = true;
  #out: Frame[] = [];
  #arrival: Deferred<void> = deferred();
  #stalled: Frame[] | undefined;
  #drained: Deferred<void> = deferred();

  #next = 1;
  /** Mutations up to these numbers are durable, and are acknowledged. */
  #durable = 0;
  #acknowledged = 0;
  #waiting: Waiting[] = [];
  #credit: Credit;
  readonly #begun = new Map<string, number>();
  readonly #syncs = new Map<string, Sync>();
  /**
   * By slice and logical cluster: how many objects were put since its sync began, and which held
   * objects were not.
   */
  readonly #begunClusters = new Map<string, Map<string, number>>();
  readonly #clusterSyncs = new Map<string, Map<string, Set<string>>>();
  readonly #stale = new Set<string>();
  readonly #named = new Set<string>();

  constructor(cache: FakeCache) {
    this.#cache = cache;
    this.#credit = cache.credit;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get closed(): Promise<Readonly<{ code: number }>> {
    return this.#closed.promise;
  }

  get bufferedBytes(): number {
    return (this.#stalled?.length ?? 0) * 1000;
  }

  get unacknowledged(): Credit {
    const frames = this.#waiting.flatMap((each) => ('frame' in each ? [sizeOf(each.frame)] : []));
    return frames.reduce((sum, { mutations, bytes }) => ({ mutations: sum.mutations + mutations, bytes: sum.bytes + bytes }), {
      mutations: 0,
      bytes: 0,
    });
  }

  silentSinceMs(): undefined {
    return undefined;
  }

  drained(): Promise<void> {
    return this.#isOpen && this.bufferedBytes > 0 ? this.#drained.promise : Promise.resolve();
  }

  /** Makes the network accept nothing until `flow`. */
  stall(): void {
    this.#stalled ??= [];
  }

  flow(): void {
    const frames = this.#stalled ?? [];
    this.#stalled = undefined;
    for (const frame of frames) this.#receive(frame);
    this.#drained.resolve();
    this.#drained = deferred();
  }

  send(frame: Frame): void {
    if (!this.#isOpen) return;
    if (this.#stalled !== undefined) this.#stalled.push(frame);
    else this.#receive(frame);
  }

  async *frames(): AsyncGenerator<Frame> {
    while (this.#isOpen || this.#out.length > 0) {
      const frame = this.#out.shift();
      if (frame !== undefined) yield frame;
      else {
        await this.#arrival.promise;
        this.#arrival = deferred();
      }
    }
  }

  close(reason: ByeReason, message: string, retryAfterMs?: number): void {
    this.send({ kind: 'bye', reason, message, retryAfterMs });
    this.#out = [];
    this.end(byeReasons[reason].code);
  }

  terminate(): void {
    this.end(1006);
  }

  end(code: number): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#waiting = [];
    this.#closed.resolve({ code });
    this.#drained.resolve();
    this.#arrival.resolve();
  }

  say(frame: Frame): void {
    if (!this.#isOpen) return;
    this.#out.push(frame);
    this.#arrival.resolve();
  }

  invalidate(slice: Slice, reason: string): void {
    this.#waiting.push({ invalidate: formatSlice(slice) });
    this.#stale.add(formatSlice(slice));
    this.#begun.delete(formatSlice(slice));
    this.say({ kind: 'resync', slice, reason });
  }

  commit(frames: number, acknowledged: boolean): void {
    for (let left = frames; left > 0 && this.#waiting.length > 0; left -= 1) {
      const each = this.#waiting.shift();
      if (each === undefined) break;
      if ('invalidate' in each) this.#cache.synced.delete(each.invalidate);
      else {
        if (!each.ignored) this.#apply(each.frame);
        this.#durable = each.frame.sequence + sizeOf(each.frame).mutations - 1;
        this.#cache.durable += 1;
      }
    }
    this.#credit = this.#cache.credit;
    if (!acknowledged || this.#durable === this.#acknowledged) return;
    this.#acknowledged = this.#durable;
    this.say({ kind: 'ack', sequence: this.#durable, credit: this.#credit, position: `${this.#cache.epoch}${this.#cache.durable}` });
  }

  #receive(frame: Frame): void {
    this.#cache.received.push(frame);
    if ('slices' in frame && frame.slices.length > frameBounds.namesPerFrame)
      this.#cache.violations.push(`${frame.kind} names too many slices`);
    if (frame.kind === 'hello') return this.#welcome();
    if (frame.kind === 'types') return this.#name(frame);
    if (frame.kind === 'status' || frame.kind === 'bye') return;
    if (isMutations(frame)) return this.#take(frame);
    this.#cache.violations.push(`${frame.kind} came from a shard`);
  }

  #welcome(): void {
    const { cacheId, epoch, synced, credit, limits, protocol, welcomes } = this.#cache;
    if (!welcomes) return;
    this.say({ kind: 'synced', slices: [...synced].map(parseSlice) });
    this.say({ kind: 'welcome', protocol, cacheId, epoch, term: 5, credit, limits });
    for (const name of synced) this.#begun.set(name, 0);
  }

  #name({ slices, withdrawn, isAll }: FrameOf<'types'>): void {
    for (const name of withdrawn.map(formatSlice)) this.#named.delete(name);
    for (const name of slices.map(formatSlice)) this.#named.add(name);
    this.#cache.named = isAll ? [...this.#named].toSorted() : undefined;
  }

  #take(frame: Mutations): void {
    const { violations, limits } = this.#cache;
    const name = formatSlice(frame.slice);
    if (frame.kind === 'begin' && !this.#named.has(name)) violations.push(`${name} began before it was named`);
    const { mutations, bytes } = sizeOf(frame);
    if (frame.sequence !== this.#next) violations.push(`${frame.sequence} came instead of ${this.#next}`);
    this.#next = frame.sequence + mutations;
    if (mutations > limits.frameMutationsMax) violations.push(`${mutations} mutations in a frame`);
    const sent = this.unacknowledged;
    if (sent.mutations + mutations > this.#credit.mutations) violations.push('more mutations than there was credit for');
    if (sent.bytes + bytes > this.#credit.bytes && (sent.mutations > 0 || mutations > 1))
      violations.push('more bytes than there was credit for');

    if (frame.kind === 'begin') this.#stale.delete(name);
    const ignored = this.#stale.has(name);
    if (!ignored) this.#check(frame, name);
    this.#refuse(frame);
    this.#waiting.push({ frame, ignored });
  }

  #check(frame: Mutations, name: string): void {
    const { violations } = this.#cache;
    const put = this.#begun.get(name);
    const clusters = this.#begunClusters.get(name) ?? new Map<string, number>();
    this.#begunClusters.set(name, clusters);
    if (frame.kind === 'begin') {
      this.#begun.set(name, 0);
      clusters.clear();
    } else if (put === undefined) violations.push(`${frame.kind} came for ${name} before its begin`);
    else if (frame.kind === 'put') {
      this.#begun.set(name, put + frame.objects.length);
      for (const { cluster } of frame.objects) if (clusters.has(cluster)) clusters.set(cluster, (clusters.get(cluster) ?? 0) + 1);
    } else if (frame.kind === 'end' && frame.count !== put) violations.push(`end counts ${frame.count}, ${put} came`);
    else if (frame.kind === 'clusterBegin') clusters.set(frame.cluster, 0);
    else if (frame.kind === 'clusterKeep' && clusters.has(frame.cluster)) violations.push(`${frame.cluster} is under way, and to be kept`);
    else if (frame.kind === 'clusterEnd') {
      if (clusters.get(frame.cluster) !== frame.count)
        violations.push(`clusterEnd counts ${frame.count}, ${clusters.get(frame.cluster)} came`);
      clusters.delete(frame.cluster);
    }
  }

  #refuse(frame: Mutations): void {
    if (frame.kind === 'begin' && this.#cache.refusesBegin)
      this.say({ kind: 'refuse', sequence: frame.sequence, reason: this.#cache.beginRefusal, message: 'not now' });
    const keys = frame.kind === 'put' ? frame.objects : frame.kind === 'delete' ? frame.keys : [];
    keys.forEach((key, index) => {
      const reason = this.#cache.refuses(key);
      if (reason !== undefined) this.say({ kind: 'refuse', sequence: frame.sequence + index, reason, message: 'not this one' });
    });
  }

  #apply(frame: Mutations): void {
    const name = formatSlice(frame.slice);
    const objects = this.#cache.objects.get(name) ?? new Map<string, string>();
    this.#cache.objects.set(name, objects);
    const sync = this.#syncs.get(name);
    switch (frame.kind) {
      case 'begin':
        this.#syncs.set(name, { unmarked: new Set(objects.keys()) });
        this.#clusterSyncs.delete(name);
        this.#cache.synced.delete(name);
        return;
      case 'clusterBegin': {
        const ofCluster = [...objects.keys()].filter((key) => key.startsWith(`${frame.cluster}|`));
        this.#clusterSyncs.set(
          name,
          (this.#clusterSyncs.get(name) ?? new Map<string, Set<string>>()).set(frame.cluster, new Set(ofCluster)),
        );
        return;
      }
      case 'clusterKeep':
        this.#clusterSyncs.set(name, (this.#clusterSyncs.get(name) ?? new Map<string, Set<string>>()).set(frame.cluster, new Set()));
        return;
      case 'clusterEnd':
        for (const key of this.#clusterSyncs.get(name)?.get(frame.cluster) ?? []) objects.delete(key);
        this.#clusterSyncs.get(name)?.delete(frame.cluster);
        return;
      case 'put':
        for (const object of frame.objects) {
          if (this.#cache.refuses(object) !== undefined) continue;
          for (const unmarked of [sync?.unmarked, this.#clusterSyncs.get(name)?.get(object.cluster)]) unmarked?.delete(keyText(object));
          if (object.body !== undefined) objects.set(keyText(object), Buffer.from(object.body).toString());
        }
        return;
      case 'delete':
        for (const key of frame.keys) objects.delete(keyText(key));
        return;
      case 'end':
        for (const key of sync?.unmarked ?? [])
          if (this.#clusterSyncs.get(name)?.has(key.slice(0, key.indexOf('|'))) !== true) objects.delete(key);
        this.#syncs.delete(name);
        if (!this.#cache.refusesBegin) this.#cache.synced.add(name);
    }
  }
}

function isMutations(frame: Frame): frame is Mutations {
  return mutations.has(frame.kind);
}

function sizeOf(frame: Mutations): Credit {
  if (frame.kind === 'put')
    return { mutations: frame.objects.length, bytes: frame.objects.reduce((sum, { body }) => sum + (body?.length ?? 0), 0) };
  return { mutations: frame.kind === 'delete' ? frame.keys.length : 1, bytes: 0 };
}

export function keyText({ cluster, namespace, name }: PushedKey): string {
  return `${cluster}|${namespace}|${name}`;
}

function parseSlice(text: string): Slice {
  const [shard, resource = ''] = text.split('|');
  const [, plural = '', group = '', identity = ''] = /^([^.]*)\.(.*):(.*)$/.exec(resource) ?? [];
  return { shard: shard as Slice['shard'], resource: { group, resource: plural, identity } };
}
