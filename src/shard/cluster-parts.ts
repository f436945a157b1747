/**
 * A slice of which each logical cluster is read by itself: ClusterCachedResources of several may declare one identity. Each is synced, fails and is
 * followed alone, whatever becomes of the others.
 *
 *   begin  clusterBegin a  …  clusterEnd a  …  clusterEnd b  end     `end` once each was read to its end
 *   clusterBegin b  …  clusterEnd b                                   one that has lost its place, or is read from another source
 *   clusterBegin a  clusterEnd a                                      one that is not read any more: its objects leave
 *
 * Bounds: one batch of each logical cluster.
 */
import type { ClusterName } from '../domain/cluster.js';
import { CacheError } from '../domain/errors.js';
import { Notifier } from '../sender/notifier.js';
import type { Outgoing, SliceSource } from '../sender/source.js';

type Batch = readonly Outgoing[];

/** Of one logical cluster. `isRead`: whether the sync that it began last was read to its end; `wasRead`: whether one was. */
type Reading = {
  readonly cluster: ClusterName;
  readonly source: SliceSource;
  readonly batches: AsyncIterator<Batch>;
  readonly abort: AbortController;
  isRead: boolean;
  wasRead: boolean;
};

type Arrived = Readonly<{ reading: Reading; step: Promise<IteratorResult<Batch>> }>;

export class ClusterParts implements SliceSource {
  readonly #sources = new Map<ClusterName, SliceSource>();
  /** Those about to be set anew, or kept. */
  readonly #expected = new Set<ClusterName>();
  readonly #notifier = new Notifier();
  /** Those under way, while it is open. */
  readonly #readings = new Map<ClusterName, Reading>();
  readonly #stopping = new Set<Promise<unknown>>();
  #arrived: Arrived[] = [];

  /** Whether each logical cluster was read to its end, and is followed. */
  get connected(): boolean {
    if (this.#expected.size > 0) return false;
    for (const [cluster, source] of this.#sources) {
      const reading = this.#readings.get(cluster);
      if (reading?.source !== source || !reading.isRead || !source.connected) return false;
    }
    return true;
  }

  /** What the logical cluster is read from is about to be set or kept: until then not all of the slice is read. */
  expect(cluster: ClusterName): void {
    this.#expected.add(cluster);
  }

  /** It is read as before. */
  keep(cluster: ClusterName): void {
    this.#expected.delete(cluster);
    this.#notifier.notify();
  }

  /** What the logical cluster is read from now on; undefined: it is not read any more. */
  set(cluster: ClusterName, source: SliceSource | undefined): void {
    this.#expected.delete(cluster);
    if (source === undefined) this.#sources.delete(cluster);
    else this.#sources.set(cluster, source);
    this.#notifier.notify();
  }

  async *open(signal: AbortSignal): AsyncGenerator<Batch, void> {
    try {
      yield [{ kind: 'begin', revision: '' }];
      for (let isEnded = false; !signal.aborted;) {
        const seen = this.#notifier.notified;
        yield* this.#settle();
        yield* this.#take();
        if (!isEnded && this.#wasAllRead) {
          isEnded = true;
          yield [{ kind: 'end', revision: '' }];
        }
        await this.#notifier.after(seen, signal);
      }
    } finally {
      for (const reading of this.#readings.values()) this.#stop(reading);
      await Promise.all(this.#stopping);
      this.#arrived = [];
    }
  }

  get #wasAllRead(): boolean {
    if (this.#expected.size > 0) return false;
    for (const cluster of this.#sources.keys()) if (this.#readings.get(cluster)?.wasRead !== true) return false;
    return true;
  }

  /** Reads from the present sources, and from no other. */
  *#settle(): Generator<Batch, void> {
    for (const reading of this.#readings.values()) {
      const { cluster, source } = reading;
      const wanted = this.#sources.get(cluster);
      if (source === wanted) continue;
      this.#stop(reading);
      if (wanted !== undefined) continue;
      yield [
        { kind: 'clusterBegin', cluster },
        { kind: 'clusterEnd', cluster },
      ];
    }
    for (const [cluster, source] of this.#sources) {
      if (this.#readings.has(cluster)) continue;
      const abort = new AbortController();
      const batches = source.open(abort.signal)[Symbol.asyncIterator]();
      const reading: Reading = { cluster, source, batches, abort, isRead: false, wasRead: false };
      this.#readings.set(cluster, reading);
      this.#ask(reading);
    }
  }

  async *#take(): AsyncGenerator<Batch, void> {
    for (const { reading, step } of this.#arrived.splice(0)) {
      const { cluster } = reading;
      const { done, value: batch } = await step;
      if (this.#readings.get(cluster) !== reading) continue;
      if (done === true) throw new CacheError(`the reading of the logical cluster ${cluster} has ended`);
      note(reading, batch);
      yield batch.map((outgoing) => ofCluster(cluster, outgoing));
      this.#ask(reading);
    }
  }

  #ask(reading: Reading): void {
    const step = reading.batches.next();
    const arrive = (): void => {
      this.#arrived.push({ reading, step });
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

function note(reading: Reading, batch: Batch): void {
  for (const { kind } of batch) {
    if (kind === 'begin') reading.isRead = false;
    if (kind === 'end') reading.isRead = reading.wasRead = true;
  }
}

function ofCluster(cluster: ClusterName, outgoing: Outgoing): Outgoing {
  if (outgoing.kind === 'begin') return { kind: 'clusterBegin', cluster };
  return outgoing.kind === 'end' ? { kind: 'clusterEnd', cluster } : outgoing;
}
