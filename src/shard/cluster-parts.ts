/**
 * A slice of which each logical cluster is read by itself: ClusterCachedResources of several may declare one identity. Each is synced, fails and is
 * followed alone, whatever becomes of the others.
 *
 *   begin  clusterBegin a  …  clusterEnd a  …  clusterEnd b  end     `end` once each was read to its end
 *   begin  clusterBegin a  …  clusterEnd a  clusterKeep b  end        after a while, though b cannot be read: then b alone is left as it is
 *   clusterBegin b  …  clusterEnd b                                   one that has lost its place, or is read from another source
 *   clusterBegin a  clusterEnd a                                      one that is not read any more: its objects leave
 *
 * Bounds: one batch of each logical cluster; `keptMax`.
 */
import type { ClusterName } from '../domain/cluster.js';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { Notifier } from '../sender/notifier.js';
import type { Outgoing, SliceSource } from '../sender/source.js';

type Batch = readonly Outgoing[];

/** Of one logical cluster. `isRead`: whether the sync that it began last was read to its end. */
type Reading = {
  readonly cluster: ClusterName;
  readonly source: SliceSource;
  readonly batches: AsyncIterator<Batch>;
  readonly abort: AbortController;
  isRead: boolean;
};

type Arrived = Readonly<{ reading: Reading; step: Promise<IteratorResult<Batch>>; sinceMs: number }>;

/** Longer than a shard that starts refuses what it will serve. */
const keepAfterMs = 60_000;
/** With more that were not read the slice has no end yet: a cache takes only so many in a connection. */
const keptMax = 10_000;

type ClusterPartsTools = Readonly<{
  clock: Clock;
  /** Whether the sources are those that the shard declares, as far as one can know now. */
  isDeclared: () => boolean;
}>;

export class ClusterParts implements SliceSource {
  readonly #tools: ClusterPartsTools;
  readonly #sources = new Map<ClusterName, SliceSource>();
  /** Those about to be set anew, or kept. */
  readonly #expected = new Set<ClusterName>();
  readonly #notifier = new Notifier();
  /** Those under way, while it is open. */
  readonly #readings = new Map<ClusterName, Reading>();
  readonly #stopping = new Set<Promise<unknown>>();
  /** Logical clusters whose reading may not be that of their source. */
  readonly #changed = new Set<ClusterName>();
  /** Those that no source was read of to its end since it was opened. */
  readonly #unread = new Set<ClusterName>();
  /** Those that have begun, and not ended. */
  readonly #begun = new Set<ClusterName>();
  /** Those that were said to be kept, and have not begun since. */
  readonly #kept = new Set<ClusterName>();
  #arrived: Arrived[] = [];

  constructor(tools: ClusterPartsTools) {
    this.#tools = tools;
  }

  /** Whether each logical cluster was read to its end, and is followed. */
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

  /** What the logical cluster is read from is about to be set or kept: until then not all of the slice is read. */
  expect(cluster: ClusterName): void {
    this.#expected.add(cluster);
  }

  /** It is read as before, or not, if no source of it was set. */
  keep(cluster: ClusterName): void {
    this.#expected.delete(cluster);
    if (!this.#sources.has(cluster)) this.#changed.add(cluster);
    this.#notifier.notify();
  }

  /** What the logical cluster is read from now on; undefined: it is not read any more. */
  set(cluster: ClusterName, source: SliceSource | undefined): void {
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
    const isDue = (): boolean => !end.isGiven && end.isLate && this.#unread.size + this.#expected.size <= keptMax;
    try {
      yield [{ kind: 'begin', revision: '' }];
      while (!signal.aborted) {
        const seen = this.#notifier.notified;
        const gone = this.#settle();
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

  /** Those that may have something of which nothing was read. */
  #unreadable(): readonly ClusterName[] {
    const isHere = (cluster: ClusterName): boolean => this.#begun.has(cluster) || this.#readings.get(cluster)?.isRead === true;
    return [...new Set([...this.#unread, ...this.#expected])].filter((cluster) => !isHere(cluster));
  }

  #end(): Batch {
    for (const cluster of this.#unreadable()) this.#kept.add(cluster);
    return [...[...this.#kept].map((cluster): Outgoing => ({ kind: 'clusterKeep', cluster })), { kind: 'end', revision: '' }];
  }

  /** An edit of what was read once does not count: the slice would wait for ever for one who edits without end. */
  get #isReadOnce(): boolean {
    if (this.#unread.size > 0) return false;
    for (const cluster of this.#expected) if (!this.#readings.has(cluster)) return false;
    return true;
  }

  /** Reads from the present sources, and from no other; gives what is to be sent of logical clusters that are not read any more. */
  #settle(): Batch {
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

  /** What has arrived, until a change of the sources has to count, or `isDue`. */
  async *#take(isDue: () => boolean): AsyncGenerator<Batch, void> {
    for (let next = this.#arrived.shift(); next !== undefined; next = this.#arrived.shift()) {
      const { reading, step } = next;
      const { cluster } = reading;
      const { done, value: batch } = await step;
      if (this.#readings.get(cluster) !== reading) continue;
      if (done === true) throw new CacheError(`the reading of the logical cluster ${cluster} has ended`);
      this.#note(reading, batch);
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

  #note(reading: Reading, batch: Batch): void {
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
