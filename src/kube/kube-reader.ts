/**
 * Reads a collection: a sync of all objects, then their changes. Objects are spans of the received
 * bytes, never re-serialised.
 *
 *   nowhere ──▶ WatchList ──bookmark──▶ following ──stream ends──▶ following (a new watch)
 *      ▲           │ refused, broken off    ▲ │
 *      │           └──▶ LIST, page by page ─┘ │   a failed page is requested again
 *      └──────────── revision gone ───────────┘   a new sync, from `begin`
 *
 * R1 The position advances only once the consumer has accepted everything before it. The reader
 *    reads again what the consumer has not accepted.
 * R2 A page or a watch that breaks off does not lose earlier reads. read-step.ts decides the
 *    next step.
 * R3 After a failure without progress the reader waits, longer each time, and at least as long as
 *    the server asks. After progress it continues at once. A new sync always waits, longer each
 *    time; a minute without a new sync resets the wait. Progress is a page, the end of a sync, a
 *    new revision, or a watch of `steadyMs`; a bookmark that repeats a revision is none.
 * R4 A server whose revision falls has lost some of its history. A watch that is ahead of the
 *    server gets neither events nor an error, so the reader syncs again.
 *
 * Bounds: one received chunk, and the object that is arriving, up to `objectBytesMax`. Nothing is
 * read ahead of the consumer.
 */
import type { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log, LogFields } from '../diagnostics/log.js';
import { CacheError } from '../domain/errors.js';
import { member, valueText } from '../json/object-text.js';
import type { Clock } from '../domain/ports.js';
import { pause } from '../domain/base/promises.js';
import { formatApiVersion } from '../domain/resource.js';
import { backoffMs, type BackoffBounds } from '../sender/reconnect.js';
import { ResyncPace } from '../sender/resync-pace.js';
import type { AbsentTypes } from './absent-types.js';
import { formatRead, type Collection, type ReadOptions } from './collection.js';
import type { Identities } from './identities.js';
import { failureFields, KubeRefusal, refusalOf, type KubeClient, type KubeRequest } from './kube-client.js';
import { ListCutter } from './list-cutter.js';
import { stepAfter, syncStep, type ReadStep } from './read-step.js';
import { readSourceObject, type SourceObject } from './source-object.js';
import { cutWatchEvent, lines } from './watch-event.js';

export type Read =
  /** All objects follow, up to `end`. */
  | Readonly<{ kind: 'begin' }>
  /** `changed`: whether the server says that the object existed before. */
  | Readonly<{ kind: 'object'; object: SourceObject; changed: boolean }>
  /** `object`: its last state. */
  | Readonly<{ kind: 'deleted'; object: SourceObject }>
  /** Everything up to that revision was read. */
  | Readonly<{ kind: 'end' | 'bookmark'; revision: string }>;

/** Shared by all readers of a server. */
export type ReaderParts = Readonly<{
  client: KubeClient;
  identities: Identities;
  absent: AbsentTypes;
  clock: Clock;
  random: () => number;
  log: Log;
  /** For messages that all readers may log at once, while the server is unreachable. */
  boundedLog: BoundedLog;
}>;

type Place = {
  step: ReadStep;
  refusesWatchList: boolean;
  /** Whether the server has accepted the present request. */
  wasAccepted: boolean;
  /** Requests in a row without progress. */
  failures: number;
  /** When a failure was last logged as a warning; undefined after progress. */
  warnedMs: number | undefined;
  /** Whether the type was absent, and no request has been accepted since. */
  isAbsent: boolean;
  /** The consumer has accepted everything up to this revision. */
  revision: string | undefined;
  readonly pace: ResyncPace;
};

/** client-go's timeout: five to ten minutes. */
const watchSecondsMin = 300;
/** Longer than kube-apiserver's default request timeout, 60 s. */
const silenceMs = 75_000;
/** A watch that lasted this long did not fail, even without an event. */
const steadyMs = 1_000;
const pageObjects = 500;
const backoff: BackoffBounds = { backoffBaseMs: 800, backoffMaxMs: 30_000 };
const retryAfterMaxMs = 300_000;
const warnAgainMs = 600_000;
/** The largest event that client-go accepts. */
const objectBytesMax = 16 * 1024 * 1024;
const decoder = new TextDecoder();

export class KubeReader {
  readonly #parts: ReaderParts;
  readonly #collection: Collection;
  #connected = false;

  constructor(parts: ReaderParts, collection: Collection) {
    this.#parts = parts;
    this.#collection = collection;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** Ends when `signal` is aborted. Batches are never empty. */
  async *read(signal: AbortSignal): AsyncGenerator<readonly Read[], void> {
    const place: Place = {
      step: syncStep({ refusesWatchList: false }),
      refusesWatchList: false,
      wasAccepted: false,
      failures: 0,
      warnedMs: undefined,
      isAbsent: false,
      revision: undefined,
      pace: new ResyncPace(this.#parts),
    };
    try {
      while (!signal.aborted) {
        const { step } = place;
        place.failures += 1;
        place.wasAccepted = false;
        let waitMs = 0;
        try {
          yield* step.kind === 'list' ? this.#list(place, step, signal) : this.#watch(place, step, signal);
        } catch (error) {
          if (signal.aborted) return;
          waitMs = this.#fail(place, error);
        }
        if (place.failures === 0 && waitMs === 0) continue;
        this.#connected = false;
        await pause(this.#parts.clock, Math.max(waitMs, this.#retryMs(place)), signal);
      }
    } finally {
      this.#connected = false;
      this.#parts.absent.delete(this);
    }
  }

  async *#watch(place: Place, step: Exclude<ReadStep, { kind: 'list' }>, signal: AbortSignal): AsyncGenerator<readonly Read[], void> {
    const timeoutSeconds = Math.round(watchSecondsMin * (1 + this.#parts.random()));
    const chunks = await this.#open(
      step.kind === 'watch-list'
        ? { kind: 'watch-list', timeoutSeconds }
        : { kind: 'watch', resourceVersion: step.revision, timeoutSeconds },
      { answerMsMax: silenceMs, silenceMsMax: timeoutSeconds * 1_000 + silenceMs, signal },
    );
    this.#accepted(place);
    const openedMs = this.#parts.clock.now();
    let syncing = step.kind === 'watch-list';
    // Yield now, not with the first event, which may come late: everything read before is outdated.
    if (syncing) yield [{ kind: 'begin' }];
    let reads: Read[] = [];
    for await (const batch of lines(chunks, objectBytesMax)) {
      let revision: string | undefined;
      let failure: Error | undefined;
      for (const line of batch) {
        const event = cutWatchEvent(line);
        if (event.type === 'ERROR') failure = refusalOf(0, decoder.decode(event.object));
        if (failure !== undefined) break;
        const object = readSourceObject(event.object);
        // No watch could resume after this event: a watch from '' starts at the present, and would
        // miss deletes in between.
        if (object.resourceVersion === '') failure = new CacheError('an event of the watch has no resourceVersion');
        if (failure !== undefined) break;
        if (event.type === 'BOOKMARK') {
          if (syncing && !endsInitialEvents(object)) continue;
          if (!syncing && isOlder(object.resourceVersion, revision ?? place.revision)) failure = fell(object.resourceVersion);
          if (failure !== undefined) break;
          reads.push({ kind: syncing ? 'end' : 'bookmark', revision: object.resourceVersion });
          syncing = false;
        } else if (event.type === 'DELETED') reads.push({ kind: 'deleted', object });
        else reads.push({ kind: 'object', object, changed: event.type === 'MODIFIED' });
        if (!syncing) revision = object.resourceVersion;
      }
      if (reads.length > 0) yield reads;
      reads = [];
      if (revision !== undefined) this.#reached(place, revision);
      if (failure !== undefined) throw failure;
    }
    if (syncing) throw new CacheError('the watch ended before it had sent all initial events');
    if (this.#parts.clock.now() - openedMs >= steadyMs) this.#progress(place);
  }

  /** One page, or the whole list. */
  async *#list(place: Place, step: ReadStep & { kind: 'list' }, signal: AbortSignal): AsyncGenerator<readonly Read[], void> {
    const { continueToken, isWhole } = step;
    const cutter = new ListCutter(objectBytesMax);
    const options = { kind: 'list', limit: isWhole ? 0 : pageObjects, continueToken } as const;
    const chunks = await this.#open(options, { answerMsMax: silenceMs, silenceMsMax: silenceMs, signal });
    this.#accepted(place);
    if (continueToken === '') yield [{ kind: 'begin' }];
    for await (const chunk of chunks) {
      const reads: Read[] = [];
      for (const item of cutter.push(chunk)) reads.push({ kind: 'object', object: readSourceObject(item), changed: false });
      if (reads.length > 0) yield reads;
    }
    const envelope = cutter.end();
    const { group, version } = this.#collection;
    if (envelope.apiVersion !== formatApiVersion(group, version))
      throw new CacheError(`the answer has the apiVersion ${envelope.apiVersion}, and is not a list of this type`);
    // The watch that follows starts at the first page's revision, so it has all later changes.
    const revision = step.revision ?? envelope.resourceVersion;
    if (envelope.continueToken === '') {
      yield [{ kind: 'end', revision }];
      this.#reached(place, revision);
    } else {
      if (envelope.continueToken === continueToken) throw new CacheError('a page of the list has the continue token that led to it');
      place.step = { ...step, continueToken: envelope.continueToken, revision };
      this.#progress(place);
    }
  }

  async #open(options: ReadOptions, rest: Omit<KubeRequest, 'path'>): Promise<AsyncGenerator<Uint8Array, void>> {
    const { client, identities } = this.#parts;
    const { identityOf } = this.#collection;
    const identity = identityOf === undefined ? '' : await identities.of(identityOf, rest.signal);
    return client.open({ path: formatRead(this.#collection, identity, options), ...rest });
  }

  #accepted(place: Place): void {
    place.wasAccepted = true;
    this.#connected = true;
    if (place.isAbsent) this.#parts.boundedLog.info('source.type.served', this.#fields());
    place.isAbsent = false;
    this.#parts.absent.delete(this);
  }

  /** Called once the consumer has accepted everything up to `revision`. */
  #reached(place: Place, revision: string): void {
    if (place.step.kind !== 'watch') {
      if (isOlder(revision, place.revision))
        this.#parts.boundedLog.warn('source.history.lost', this.#fields({ revision, former: place.revision }));
      place.pace.synced();
    } else if (place.step.revision === revision) return;
    place.step = { kind: 'watch', revision };
    place.revision = revision;
    this.#progress(place);
  }

  #progress(place: Place): void {
    place.failures = 0;
    if (place.warnedMs !== undefined) this.#parts.boundedLog.info('source.read.recovered', this.#fields());
    place.warnedMs = undefined;
  }

  /** Chooses the next request. Returns the least time to wait, in milliseconds. */
  #fail(place: Place, error: unknown): number {
    const { step, refusesWatchList } = place;
    const after = stepAfter(step, error, place);
    place.step = after.step;
    place.refusesWatchList = after.refusesWatchList;
    this.#parts.absent.delete(this);
    if (after.isAbsent) this.#absent(place, error);
    else this.#logFailure(place, { asked: step.kind, next: after.step.kind, ...failureFields(error) });
    // The server would refuse a WatchList again. The reader lists at once instead, and sends no
    // WatchList again.
    if (after.refusesWatchList && !refusesWatchList) place.failures = 0;
    const resyncMs = step.kind === 'watch' && after.step.kind !== 'watch' ? place.pace.failedMs() : 0;
    const askedMs = error instanceof KubeRefusal ? Math.min(error.retryAfterMs, retryAfterMaxMs) : 0;
    return Math.max(resyncMs, askedMs * (1 + this.#parts.random() / 10));
  }

  /**
   * The bound of the wait grows with the failures in a row. The first wait is between zero and its
   * bound; each later wait is at least half of its bound.
   */
  #retryMs({ failures }: Place): number {
    const { random, absent } = this.#parts;
    if (failures === 0) return 0;
    const bounds = absent.has(this) ? { ...backoff, backoffMaxMs: absent.waitMsMax } : backoff;
    return backoffMs(failures, failures === 1 ? random : () => (1 + random()) / 2, bounds);
  }

  /** A single failure may be a stream that ended; two in a row are a problem. */
  #logFailure(place: Place, fields: LogFields): void {
    const nowMs = this.#parts.clock.now();
    if (place.failures < 2 || (place.warnedMs !== undefined && nowMs - place.warnedMs < warnAgainMs))
      return this.#parts.log.debug('source.read.failed', this.#fields(fields));
    place.warnedMs = nowMs;
    this.#parts.boundedLog.warn('source.read.failed', this.#fields({ ...fields, failures: place.failures }));
  }

  #fields(more: LogFields = {}): LogFields {
    const { cluster, group, version, resource } = this.#collection;
    return { cluster, group, version, resource, ...more };
  }

  #absent(place: Place, error: unknown): void {
    const { identityOf } = this.#collection;
    if (identityOf !== undefined) this.#parts.identities.forget(identityOf);
    if (!place.isAbsent) this.#parts.boundedLog.info('source.type.absent', this.#fields(failureFields(error)));
    place.isAbsent = true;
    this.#parts.absent.add(this);
  }
}

/**
 * Whether a revision is older; false unless both are numbers. Revisions are opaque in principle,
 * but kcp's come from etcd, which counts its writes.
 */
function isOlder(revision: string, than: string | undefined): boolean {
  return than !== undefined && /^\d+$/.test(revision) && /^\d+$/.test(than) && Number(revision) < Number(than);
}

function fell(revision: string): KubeRefusal {
  return new KubeRefusal(410, 'Expired', `the server is at revision ${revision}, which is older than what was read from it before`);
}

function endsInitialEvents({ text }: SourceObject): boolean {
  const found = member(text.annotations, 'k8s.io/initial-events-end');
  return found !== undefined && valueText(text.bytes, found) === '"true"';
}
