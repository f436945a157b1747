/**
 * A slice whose logical clusters are read separately, because ClusterCachedResources of several
 * logical clusters may declare one identity. Each logical cluster is synced, retried and followed
 * independently.
 *
 *  begin  clusterBegin a  …  clusterEnd a  …  clusterEnd b  end
 *      `end` follows once each logical cluster has been read completely
 *  begin  clusterBegin a  …  clusterEnd a  clusterKeep b  end
 *      after `keepAfterMs` the slice ends although b cannot be read: the cache keeps b's objects
 *  clusterBegin b  …  clusterEnd b
 *      the source of b must list again, or is replaced by another
 *  clusterBegin a  clusterEnd a
 *      a is not read any more: the cache removes its objects
 *
 * Bounds: one batch of each logical cluster; `unreadMax`.
 */
import type { ClusterName } from '../domain/cluster.js';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { Notifier } from '../sender/notifier.js';
import type { Outgoing, SliceSource } from '../sender/source.js';

type Batch = readonly Outgoing[];

/** The reading of one logical cluster. `isRead`: whether its last sync was read completely. */
type Reading = {
  readonly cluster: ClusterName;
  readonly source: SliceSource;
  readonly batches: AsyncIterator<Batch>;
  readonly abort: AbortController;
  isRead: boolean;
};

type Arrived = Readonly<{ reading: Reading; step: Promise<IteratorResult<Batch>>; sinceMs: number }>;

/** A starting shard rejects requests for types that it will serve, but for a shorter time. */
const keepAfterMs = 60_000;
/**
 * With more unread logical clusters than this, no `end` is sent, because a cache bounds how many
 * a connection syncs or keeps.
 */
const unreadMax = 10_000;

type ClusterPartsTools = Readonly<{
  clock: Clock;
  /** Whether the present sources match the shard's declarations, as far as known. */
  isDeclared: () => boolean;
}>;

export class PerClusterSource implements SliceSource {
  readonly #tools: ClusterPartsTools;
  readonly #sources = new Map<ClusterName, SliceSource>();
  /** Logical clusters with a pending `setSource` or `keepSource`. */
  readonly #expected = new Set<ClusterName>();
  readonly #notifier = new Notifier();
  /** The readings under way, while the slice is open. */
  readonly #readings = new Map<ClusterName, Reading>();
  readonly #stopping = new Set<Promise<unknown>>();
  /** Logical clusters whose reading may have an outdated source. */
  readonly #changed = new Set<ClusterName>();
  /** Logical clusters of which no source has been read completely since `open`. */
  readonly #unread = new Set<ClusterName>();
  /** Logical clusters whose sync has begun and not ended. */
  readonly #begun = new Set<ClusterName>();
  /** Logical clusters for which `clusterKeep` was sent and no sync has begun since. */
  readonly #kept = new Set<ClusterName>();
  #arrived: Arrived[] = [];

  constructor(tools: ClusterPartsTools) {
    this.#tools = tools;
  }

  /** Whether each logical cluster was read completely, and its source is connected. */
  get connected(): boolean {
    if (this.#expected.size > 0 || !this.#tools.isDeclared()) return false;
    for (const [cluster, source] of this.#sources) {
      const reading = this.#readings.get(cluster);
      if (reading?.source !== source || !reading.isRead || !source.connected) return false;
    }
    return true;
  }

  get waitingSinceMs(): number | undefined {
    return this.#arrived[0]?.sinceMs;
  }

  /** Announces a change of a source. Until `setSource` or `keepSource`, the slice is incomplete. */
  announce(cluster: ClusterName): void {
    this.#expected.add(cluster);
  }

  /** Keeps the present source; without one, the logical cluster is not read. */
  keepSource(cluster: ClusterName): void {
    this.#expected.delete(cluster);
    if (!this.#sources.has(cluster)) this.#changed.add(cluster);
    this.#notifier.notify();
  }

  /** Sets the source of the logical cluster; undefined ends its reading. */
  setSource(cluster: ClusterName, source: SliceSource | undefined): void {
    this.#expected.delete(cluster);
    if (source === undefined) this.#sources.delete(cluster);
    else this.#sources.set(cluster, source);
    this.#changed.add(cluster);
    this.#notifier.notify();
  }

  async *open(signal: AbortSignal): AsyncGenerator<Batch, void> {
    for (const cluster of this.#sources.keys()) {
      this.#changed.add(cluster);
      this.#unread.add(cluster);
    }
    const end = { isLate: false, isGiven: false };
    const cancel = this.#tools.clock.after(keepAfterMs, () => {
      end.isLate = true;
      this.#notifier.notify();
    });
    const isDue = (): boolean => !end.isGiven && end.isLate && this.#unread.size + this.#expected.size <= unreadMax;
    try {
      yield [{ kind: 'begin', revision: '' }];
      while (!signal.aborted) {
        const seen = this.#notifier.notified;
        const gone = this.#matchSources();
        if (gone.length > 0) yield gone;
        yield* this.#take(isDue);
        if (this.#changed.size === 0 && (isDue() || (!end.isGiven && this.#isReadOnce))) {
          end.isGiven = true;
          yield this.#end();
        }
        if (this.#arrived.length === 0) await this.#notifier.after(seen, signal);
      }
    } finally {
      cancel();
      for (const reading of this.#readings.values()) this.#stop(reading);
      await Promise.all(this.#stopping);
      this.#arrived = [];
      this.#unread.clear();
      this.#begun.clear();
      this.#kept.clear();
    }
  }

  /** Logical clusters that may hold objects, and of which nothing was read. */
  #unreadable(): readonly ClusterName[] {
    const isHere = (cluster: ClusterName): boolean => this.#begun.has(cluster) || this.#readings.get(cluster)?.isRead === true;
    return [...new Set([...this.#unread, ...this.#expected])].filter((cluster) => !isHere(cluster));
  }

  #end(): Batch {
    for (const cluster of this.#unreadable()) this.#kept.add(cluster);
    return [...[...this.#kept].map((cluster): Outgoing => ({ kind: 'clusterKeep', cluster })), { kind: 'end', revision: '' }];
  }

  /**
   * Once a logical cluster was read, further changes of its source do not delay `end`. Otherwise
   * continuous changes would block it forever.
   */
  get #isReadOnce(): boolean {
    if (this.#unread.size > 0) return false;
    for (const cluster of this.#expected) if (!this.#readings.has(cluster)) return false;
    return true;
  }

  /**
   * Starts and stops readings so that they match the present sources. Returns the mutations that
   * remove the objects of logical clusters that are not read any more.
   */
  #matchSources(): Batch {
    const gone: Outgoing[] = [];
    for (const cluster of this.#changed) {
      const [reading, source] = [this.#readings.get(cluster), this.#sources.get(cluster)];
      if (reading !== undefined && reading.source !== source) this.#stop(reading);
      if (source !== undefined && reading?.source !== source) this.#begin(cluster, source, reading !== undefined);
      if (source !== undefined) continue;
      this.#unread.delete(cluster);
      this.#begun.delete(cluster);
      if (reading !== undefined || this.#kept.delete(cluster))
        gone.push({ kind: 'clusterBegin', cluster }, { kind: 'clusterEnd', cluster });
    }
    this.#changed.clear();
    return gone;
  }

  #begin(cluster: ClusterName, source: SliceSource, wasThere: boolean): void {
    const abort = new AbortController();
    const reading: Reading = { cluster, source, batches: source.open(abort.signal)[Symbol.asyncIterator](), abort, isRead: false };
    this.#readings.set(cluster, reading);
    if (!wasThere) this.#unread.add(cluster);
    this.#ask(reading);
  }

  /** Yields the batches that have arrived, until the sources change or `isDue`. */
  async *#take(isDue: () => boolean): AsyncGenerator<Batch, void> {
    for (let next = this.#arrived.shift(); next !== undefined; next = this.#arrived.shift()) {
      const { reading, step } = next;
      const { cluster } = reading;
      const { done, value: batch } = await step;
      if (this.#readings.get(cluster) !== reading) continue;
      if (done === true) throw new CacheError(`the reading of the logical cluster ${cluster} has ended`);
      this.#record(reading, batch);
      for (const { kind } of batch) {
        if (kind === 'begin') {
          this.#begun.add(cluster);
          this.#kept.delete(cluster);
        } else if (kind === 'end') this.#begun.delete(cluster);
      }
      yield batch.map((outgoing) => ofCluster(cluster, outgoing));
      this.#ask(reading);
      if (this.#changed.size > 0 || isDue()) return;
    }
  }

  #record(reading: Reading, batch: Batch): void {
    for (const { kind } of batch) {
      if (kind === 'begin') reading.isRead = false;
      if (kind !== 'end') continue;
      reading.isRead = true;
      this.#unread.delete(reading.cluster);
    }
  }

  #ask(reading: Reading): void {
    const step = reading.batches.next();
    const arrive = (): void => {
      this.#arrived.push({ reading, step, sinceMs: this.#tools.clock.now() });
      this.#notifier.notify();
    };
    step.then(arrive, arrive);
  }

  #stop({ cluster, abort, batches }: Reading): void {
    this.#readings.delete(cluster);
    abort.abort();
    const stopping = Promise.resolve(batches.return?.()).finally(() => this.#stopping.delete(stopping));
    this.#stopping.add(stopping);
  }
}

function ofCluster(cluster: ClusterName, outgoing: Outgoing): Outgoing {
  if (outgoing.kind === 'begin') return { kind: 'clusterBegin', cluster };
  return outgoing.kind === 'end' ? { kind: 'clusterEnd', cluster } : outgoing;
}
