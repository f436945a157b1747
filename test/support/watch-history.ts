/**
 * What clients of one server saw, recorded for the validators: every watch with its events in order
 * of arrival, every list, and the truth, which is each known change of the store, by revision.
 *
 * Nothing here checks anything. A history is data, so a violation found once can be kept as a test.
 */
import type { KubeClient, KubeList, KubeObject, WatchEvent, WatchOptions } from './kube-client.js';

/** A resourceVersion as a comparable number; revisions of an epoch exceed 2^53. */
export type Position = bigint;

/**
 * The key by which an informer holds an object, with the shard before it:
 * `shard|cluster|namespace|name`.
 */
export type ObjectKey = string;

export type SeenEvent = Readonly<{
  type: WatchEvent['type'];
  /** '' for BOOKMARK and ERROR. */
  key: ObjectKey;
  position: Position;
  labels: Readonly<Record<string, string>>;
  /** True for the bookmark that ends the initial events of a WatchList. */
  initialEventsEnd: boolean;
  /** True for a DELETED that has nothing but the object's name. */
  bare?: true;
  code?: number;
}>;

/** The scope of a watch. Without `selects`, it selects everything. */
export type Covered = Readonly<{ covers: (key: ObjectKey) => boolean; selects?: (change: Pick<Change, 'key' | 'labels'>) => boolean }>;

/**
 * How a watch began: after a revision, or with initial events. `named` is the old revision that it
 * carried, if any. `isHealed`: the server still remembers all deletions since `named`, so a client
 * that drops nothing ends with the present state.
 */
export type Began = Readonly<{ kind: 'behind'; position: Position } | { kind: 'initial'; named?: Position; isHealed?: boolean }>;

/**
 * `resumes`: the id of the watch that this one continues. `isCut`: its connection broke, perhaps in
 * the middle of a revision.
 */
export type SeenWatch = Covered & Readonly<{ id: string; began: Began; events: readonly SeenEvent[]; resumes?: string; isCut?: boolean }>;

export type SeenList = Covered &
  Readonly<{
    id: string;
    position: Position;
    entries: readonly Readonly<{ key: ObjectKey; position: Position }>[];
    /** The watch that began after it. */ watchedBy?: string;
  }>;

/** One change of the store. A put has the labels that it wrote. */
export type Change = Readonly<{ kind: 'put' | 'delete'; key: ObjectKey; position: Position; labels: Readonly<Record<string, string>> }>;

/**
 * An acknowledged write. Each key has one writer at a time. `turn` is the label that distinguishes
 * its puts. Neither the acknowledgement of a push nor the answer to a DELETE names a revision. So a
 * delete has only `behind`, the revision of the object that it deleted.
 */
export type Acknowledged = Readonly<
  { kind: 'put'; key: ObjectKey; position?: Position; turn: string } | { kind: 'delete'; key: ObjectKey; behind: Position }
>;

/**
 * A revision that an answer showed as the present one, with the times of the request and of the
 * answer. `what` is the write at that revision. A sighting that only names a write has 0 and
 * Infinity as its times.
 */
export type Sighting = Readonly<{ position: Position; askedMs: number; answeredMs: number; what?: string }>;

/**
 * `truth` is complete up to the last position that anybody saw. It starts at the birth of the
 * store, or at a state given by the last put of each object. `unansweredMax`: how many writes of
 * one key may have happened without an answer.
 */
export type History = Readonly<{
  truth: readonly Change[];
  watches: readonly SeenWatch[];
  lists: readonly SeenList[];
  acknowledged?: readonly Acknowledged[];
  unansweredMax?: number;
  sightings?: readonly Sighting[];
}>;

export function keyOf(object: KubeObject): ObjectKey {
  const { annotations = {}, namespace = '', name = '' } = object.metadata;
  return [annotations['kcp.io/shard'] ?? '', annotations['kcp.io/cluster'] ?? '', namespace, name].join('|');
}

export function positionOf(object: KubeObject): Position {
  const text = object.metadata.resourceVersion ?? '';
  return /^[1-9]\d*$/.test(text) ? BigInt(text) : 0n;
}

export function seenEvent({ type, object }: Pick<WatchEvent, 'type' | 'object'>): SeenEvent {
  const isObject = type !== 'BOOKMARK' && type !== 'ERROR';
  const code = object['code'];
  return {
    type,
    key: isObject ? keyOf(object) : '',
    position: positionOf(object),
    labels: object.metadata.labels ?? {},
    initialEventsEnd: type === 'BOOKMARK' && object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true',
    ...(type === 'DELETED' && isBare(object) ? { bare: true } : {}),
    ...(typeof code === 'number' ? { code } : {}),
  };
}

function isBare({ metadata, ...others }: KubeObject): boolean {
  const isKnown = (name: string): boolean => ['name', 'namespace', 'resourceVersion', 'annotations'].includes(name);
  return Object.keys(others).every((name) => name === 'kind' || name === 'apiVersion') && Object.keys(metadata).every(isKnown);
}

export function seenList(id: string, list: KubeList, covered: Covered, watchedBy?: string): SeenList {
  const entries = list.items.map((item) => ({ key: keyOf(item), position: positionOf(item) }));
  return { id, position: positionOf(list), entries, ...covered, ...(watchedBy === undefined ? {} : { watchedBy }) };
}

/**
 * The truth, read from a plain watch that covers and selects everything and began before the first
 * change. A DELETED of such a watch is a deletion, never a flip; a bare one is no change.
 */
export function truthOf(full: readonly SeenEvent[]): readonly Change[] {
  return full.flatMap((event): Change[] => {
    if (event.type === 'BOOKMARK' || event.type === 'ERROR' || event.bare === true) return [];
    return [{ kind: event.type === 'DELETED' ? 'delete' : 'put', key: event.key, position: event.position, labels: event.labels }];
  });
}

/** A watch that records its events until it is closed or the server ends it. */
export class WatchRecorder {
  readonly id: string;
  /** Resolves once the server answers the watch, or the watch has ended. */
  readonly opened: Promise<void>;
  readonly #events: SeenEvent[] = [];
  readonly #stop = new AbortController();
  readonly #began: Began;
  readonly #covered: Covered;
  readonly #resumes: string | undefined;
  readonly #finished: Promise<void>;
  #wake: () => void = () => {};
  #paused = Promise.resolve();
  #release: () => void = () => {};

  constructor(
    client: KubeClient,
    watch: Readonly<{ id: string; path: string; began: Began; covered: Covered; resumes?: string; options?: WatchOptions }>,
  ) {
    this.id = watch.id;
    this.#began = watch.began;
    this.#covered = watch.covered;
    this.#resumes = watch.resumes;
    let opened = (): void => {};
    this.opened = new Promise((resolve) => (opened = resolve));
    this.#finished = this.#read(client, watch.path, { ...watch.options, opened }).finally(opened);
  }

  get events(): readonly SeenEvent[] {
    return this.#events;
  }

  /** The revision from which a client would resume: that of the last event or bookmark. */
  get position(): Position {
    return (
      this.#events.findLast((event) => event.type !== 'ERROR')?.position ?? (this.#began.kind === 'behind' ? this.#began.position : 0n)
    );
  }

  /**
   * Resolves once an event fulfils the test; rejects if the watch ends first or the time runs out.
   */
  async until(test: (event: SeenEvent) => boolean, withinMs = 15_000): Promise<SeenEvent> {
    const deadline = performance.now() + withinMs;
    let ended = false;
    void this.#finished
      .finally(() => {
        ended = true;
        this.#wake();
      })
      .catch(() => {});
    for (;;) {
      const found = this.#events.find(test);
      if (found !== undefined) return found;
      const left = deadline - performance.now();
      if (ended || left <= 0)
        throw new Error(
          `watch ${this.id} ${ended ? 'ended' : 'saw nothing'} before the event that was waited for; it saw ${this.#events.length}`,
        );
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        timer = setTimeout(resolve, left);
      });
      clearTimeout(timer);
    }
  }

  /** Stops reading until `resume`: the socket fills, and the server has a slow reader. */
  pause(): void {
    // Otherwise a reader that waits for an earlier pause would wait for ever.
    this.#release();
    this.#paused = new Promise((resolve) => (this.#release = resolve));
  }

  resume(): void {
    this.#release();
  }

  async ended(): Promise<void> {
    await this.#finished;
  }

  async close(): Promise<SeenWatch> {
    this.#stop.abort();
    this.resume();
    await this.#finished.catch(() => {});
    return this.seen();
  }

  seen(): SeenWatch {
    return {
      id: this.id,
      began: this.#began,
      events: [...this.#events],
      ...this.#covered,
      ...(this.#resumes === undefined ? {} : { resumes: this.#resumes }),
    };
  }

  async #read(client: KubeClient, path: string, options: WatchOptions): Promise<void> {
    for await (const event of client.watch(path, { ...options, signal: this.#stop.signal })) {
      this.#events.push(seenEvent(event));
      this.#wake();
      await this.#paused;
    }
  }
}
