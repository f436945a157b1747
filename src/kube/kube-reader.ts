/**
 * Reads the objects of one collection: a sync of all of them, then what happens to them, until it is
 * stopped. Objects are spans of what arrived; they are never re-serialised.
 *
 *   nowhere ──▶ WatchList ──bookmark──▶ following ──stream ends──▶ following        a watch behind the last revision
 *      ▲           │ refused, broken off    ▲ │
 *      │           └──▶ LIST, page by page ─┘ │                                     a page that fails is asked for again
 *      └──────────── revision gone ───────────┘                                     a new sync, from `begin`
 *
 * R1 What the taker did not take counts as not read: a place in the history moves on only once everything before it was taken.
 * R2 Neither a page nor a watch that breaks off costs what was read before it. read-step.ts says what follows what.
 * R3 After a failure without progress we wait, longer each time, and as long as the server asks; after progress we go on at once. A new sync always
 *    waits, longer each time while none of them lasts. Progress is a page, the end of a sync, or another revision: a bookmark that repeats one is none.
 * R4 A server whose revision falls has lost some of its history, and keeps quiet about it to a watch that is ahead of it: it is read anew.
 * Bounds: one chunk of what arrives and the object that is arriving, `objectBytesMax`; nothing is read ahead of the taker.
 */
import type { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log, LogFields } from '../diagnostics/log.js';
import { CacheError } from '../domain/errors.js';
import { member, valueText } from '../json/object-text.js';
import type { Clock } from '../domain/ports.js';
import { pause } from '../domain/pause.js';
import { formatApiVersion } from '../domain/resource.js';
import { backoffMs, type BackoffBounds } from '../sender/reconnect.js';
import { ResyncPace } from '../sender/resync-pace.js';
import type { AbsentTypes } from './absent-types.js';
import { formatRead, type Collection, type ReadOptions } from './collection.js';
import type { Identities } from './identities.js';
import { refusalOf, KubeRefusal, type KubeClient, type KubeRequest } from './kube-client.js';
import { lines } from './lines.js';
import { ListCutter } from './list-cutter.js';
import { stepAfter, syncStep, type ReadStep } from './read-step.js';
import { failureFields } from './read-failure.js';
import { readSourceObject, type SourceObject } from './source-object.js';
import { cutWatchEvent } from './watch-event.js';

export type Read =
  /** All objects follow, up to `end`. */
  | Readonly<{ kind: 'begin' }>
  /** `changed`: it existed before, according to the server. */
  | Readonly<{ kind: 'object'; object: SourceObject; changed: boolean }>
  /** `object`: its last state. */
  | Readonly<{ kind: 'deleted'; object: SourceObject }>
  /** Everything up to there was read. */
  | Readonly<{ kind: 'end' | 'bookmark'; revision: string }>;

/** What every reader of a server shares. */
export type ReaderParts = Readonly<{
  client: KubeClient;
  identities: Identities;
  absent: AbsentTypes;
  clock: Clock;
  random: () => number;
  log: Log;
  /** For what all readers may have to say at once, when the server is away. */
  boundedLog: BoundedLog;
}>;

/** Where a reader is, and how it got there. */
type Place = {
  /** What it asks for next, or is reading. */
  step: ReadStep;
  refusesWatchList: boolean;
  /** Whether the server has accepted the present request. */
  wasAccepted: boolean;
  /** Requests in a row without progress. */
  failures: number;
  /** When a failure was warned of; undefined since the last progress. */
  warnedMs: number | undefined;
  /** Whether the type was absent, and nothing has been accepted since. */
  isAbsent: boolean;
  /** The last revision up to which everything was taken. */
  revision: string | undefined;
  readonly pace: ResyncPace;
};

/** As client-go: five to ten minutes. */
const watchSecondsMin = 300;
/** Longer than a server takes for any answer it gives up on. */
const silenceMs = 75_000;
/** A watch that lasted so long was no failure, though nothing happened. */
const steadyMs = 1_000;
const pageObjects = 500;
const backoff: BackoffBounds = { backoffBaseMs: 800, backoffMaxMs: 30_000 };
/** No server keeps a reader away for longer, whatever it asks. */
const retryAfterMaxMs = 300_000;
/** How often a failure that goes on is warned of. */
const warnAgainMs = 600_000;
/** As much as client-go takes in one event. */
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

  /** Whether the server is answering. */
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
    // At once: what was read before counts no more, though the server may take its time.
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
        // Nobody could go on from there: a watch from '' begins with now, and what was removed meanwhile would stay.
        if (object.resourceVersion === '') failure = new CacheError('an event of a watch without a resourceVersion');
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
    if (syncing) throw new CacheError('a sync by watching ended before all was there');
    if (this.#parts.clock.now() - openedMs >= steadyMs) this.#progress(place);
  }

  /** One page, or all of it. */
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
      throw new CacheError(`an answer of ${envelope.apiVersion} is no list of this type`);
    // What happened since the first page comes with the watch after it.
    const revision = step.revision ?? envelope.resourceVersion;
    if (envelope.continueToken === '') {
      yield [{ kind: 'end', revision }];
      this.#reached(place, revision);
    } else {
      if (envelope.continueToken === continueToken) throw new CacheError('a page of a list leads to itself');
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

  /** Everything up to `revision` was taken. */
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

  /** Decides what is asked for next; returns for how long it has to wait at least, in milliseconds. */
  #fail(place: Place, error: unknown): number {
    const { step, refusesWatchList } = place;
    const after = stepAfter(step, error, place);
    place.step = after.step;
    place.refusesWatchList = after.refusesWatchList;
    this.#parts.absent.delete(this);
    if (after.isAbsent) this.#absent(place, error);
    else this.#logFailure(place, { asked: step.kind, next: after.step.kind, ...failureFields(error) });
    // The same request would be refused again: another one is made at once, and never again this one.
    if (after.refusesWatchList && !refusesWatchList) place.failures = 0;
    const resyncMs = step.kind === 'watch' && after.step.kind !== 'watch' ? place.pace.failedMs() : 0;
    const askedMs = error instanceof KubeRefusal ? Math.min(error.retryAfterMs, retryAfterMaxMs) : 0;
    return Math.max(resyncMs, askedMs * (1 + this.#parts.random() / 10));
  }

  /** The first failure waits between nothing and its bound, every further one for half of its bound at least. */
  #retryMs({ failures }: Place): number {
    const { random, absent } = this.#parts;
    if (failures === 0) return 0;
    const bounds = absent.has(this) ? { ...backoff, backoffMaxMs: absent.waitMsMax } : backoff;
    return backoffMs(failures, failures === 1 ? random : () => (1 + random()) / 2, bounds);
  }

  /** Once is a stream that ended; twice is a problem. */
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

/** Of two revisions that can be compared. They are opaque in principle; those of etcd, which every kcp has, count its writes. */
function isOlder(revision: string, than: string | undefined): boolean {
  return than !== undefined && /^\d+$/.test(revision) && /^\d+$/.test(than) && Number(revision) < Number(than);
}

function fell(revision: string): KubeRefusal {
  return new KubeRefusal(410, 'Expired', `the server is at revision ${revision}, behind what was read from it`);
}

function endsInitialEvents({ text }: SourceObject): boolean {
  const found = member(text.annotations, 'k8s.io/initial-events-end');
  return found !== undefined && valueText(text.bytes, found) === '"true"';
}
