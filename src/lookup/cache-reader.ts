/**
 * Reads one cache. `get` finds an object by its name and its logical cluster or canonical path,
 * whichever shard has it. `list` lists the objects of a type in a logical cluster. Each answer says
 * how fresh the cache is for the question.
 *
 * L1 An absent object, an ambiguous name and a cache that cannot be read are three things. The
 *    first two are answers; the third is thrown as a CacheFault.
 * L2 A freshness report is made before its objects are read. In the other order, a shard could
 *    finish a sync between the two. The report would then prove the absence of an object that the
 *    sync added, and make an old object seem fresh. The cache keeps this order for a look-up
 *    (web/look-up.ts), this reader for a list.
 * L3 Without a report, a found object has unknown freshness, and an absence proves nothing.
 *
 * A look-up is one request. For a watched type (watched-type.ts), the reader requests only a report
 * on the type, once in `reportAgeMaxMs`. It requests an object only if memory cannot answer or is
 * behind the report.
 *
 * An older cache has no look-ups (404, 400). The reader then requests the object alone, without a
 * report.
 *
 * Bounds: a page of a list has `pageObjectsMax` objects, or fewer if the answer would be too long.
 * More bounds are in cache-connection.ts and last-reports.ts.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { unreachable } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { formatGroupResource } from '../domain/resource.js';
import type { CacheConnectionBounds } from './cache-connection.js';
import { CacheFault } from './cache-fault.js';
import {
  freshnessOn,
  parseFreshnessReport,
  typeFreshness,
  type Freshness,
  type FreshnessReport,
  type TypeFreshness,
} from './freshness-report.js';
import { ageOf, LastReports, type ReceivedReport } from './last-reports.js';
import {
  collectionTarget,
  freshnessTarget,
  lookUpTarget,
  objectTarget,
  type CollectionRef,
  type FreshnessRef,
  type ObjectRef,
} from './object-ref.js';
import {
  readList,
  readLookUp,
  readObject,
  refusalOf,
  type CachedObject,
  type HttpAnswer,
  type ListPage,
  type Missing,
  type ReadAnswer,
} from './read-answer.js';
import type { WatchedTypeOptions } from './watched-type.js';
import { WatchedTypes } from './watched-types.js';

/**
 * `message`: the cache's wording. For a missing type, `whole` is false, because a type that the
 * cache does not serve may still have objects, perhaps in another version.
 */
export type Absent = Readonly<{ kind: 'absent'; missing: Missing; message: string }> & TypeFreshness;

/**
 * A canonical path leads to several logical clusters, or several shards have the object: see
 * `message`.
 */
export type Ambiguous = Readonly<{ kind: 'ambiguous'; message: string }>;

/** `freshness`: that of the object's type on its shard; undefined if the cache reports none. */
export type Found = Readonly<{ kind: 'found'; freshness: Freshness | undefined }> & CachedObject;

/**
 * `objects` are read page by page on demand, all as of the first page. Reading them throws
 * CacheFault; after a 410, list again.
 */
export type Listed = Readonly<{ kind: 'listed'; objects: AsyncGenerator<CachedObject, void> }> & TypeFreshness;

export type CacheReaderOptions = Readonly<{
  /**
   * The largest age of a freshness report. A look-up that asks the cache and finds an object always
   * gets a new report.
   */
  reportAgeMaxMs: number;
  /** Timeout of a report; a list then continues without one. */
  freshnessTimeoutMs: number;
  pageObjectsMax: number;
}>;

export type CacheReaderParts = Readonly<{
  clock: Clock;
  connection: { ask(target: string, signal?: AbortSignal): Promise<HttpAnswer>; close(): void };
  /** Types whose objects are in memory. */
  watched?: WatchedTypes;
}>;

type FirstPage = Readonly<{ page: ListPage; limit: number }>;

/** Look-ups from memory in one turn of the event loop. More in a row would delay other work. */
const checksPerTurn = 100;

export class CacheReader {
  readonly #clock: Clock;
  readonly #connection: CacheReaderParts['connection'];
  readonly #options: CacheReaderOptions;
  readonly #watched: WatchedTypes;
  readonly #lastReports: LastReports;
  #checked = 0;

  constructor({ clock, connection, watched = new WatchedTypes([]) }: CacheReaderParts, options: CacheReaderOptions) {
    this.#clock = clock;
    this.#connection = connection;
    this.#options = options;
    this.#watched = watched;
    this.#lastReports = new LastReports({ clock, ask: (target) => this.#askReport(target) });
  }

  /**
   * Throws CacheFault, an Error for a reference that names nothing, or the reason of an aborted
   * `signal`.
   */
  async get(ref: ObjectRef, signal?: AbortSignal): Promise<Found | Absent | Ambiguous> {
    const target = lookUpTarget(ref, this.#options.reportAgeMaxMs);
    const known = await this.#inMemory(ref, signal);
    if (known !== undefined) return known;
    const askedMs = this.#clock.now();
    const { answer, report, reportedAgoMs } = readLookUp(await this.#connection.ask(target, signal)) ?? {
      answer: readObject(await this.#connection.ask(objectTarget(ref), signal)),
      report: undefined,
      reportedAgoMs: 0,
    };
    return this.#answered(answer, report && { report, askedMs: askedMs - reportedAgoMs });
  }

  /** Throws as `get` does. */
  async list(ref: CollectionRef, signal?: AbortSignal): Promise<Listed | Absent | Ambiguous> {
    const target = collectionTarget(ref);
    const received = await this.#report(ref, this.#options.reportAgeMaxMs, signal);
    const limit = this.#options.pageObjectsMax;
    const { answer, limit: taken } = await this.#page(target, { limit, next: undefined }, signal);
    const listed = readList(answer);
    switch (listed.kind) {
      case 'page':
        return {
          kind: 'listed',
          objects: this.#pages(target, { page: listed.page, limit: taken }, signal),
          ...this.#typeFreshness(received),
        };
      case 'absent':
        return this.#absent(listed, received);
      case 'ambiguous':
        return listed;
    }
  }

  /**
   * How fresh the cache is for a type, on one shard or on all known shards. Throws as `get` does.
   */
  async freshness(type: FreshnessRef, signal?: AbortSignal): Promise<TypeFreshness> {
    return this.#typeFreshness(await this.#lastReports.get(freshnessTarget(type), this.#options.reportAgeMaxMs, signal));
  }

  watching(): ReturnType<WatchedTypes['states']> {
    return this.#watched.states();
  }

  /** Ends requests under way with a CacheFault, and closes the watches and the connections. */
  close(): void {
    this.#watched.close();
    this.#connection.close();
  }

  async *#pages(target: string, first: FirstPage, signal: AbortSignal | undefined): AsyncGenerator<CachedObject, void> {
    let { page, limit } = first;
    for (;;) {
      yield* page.objects;
      if (page.next === undefined) return;
      const read = await this.#page(target, { limit, next: page.next }, signal);
      const listed = readList(read.answer);
      // The path leads elsewhere since the first page, or the type is gone. A list that has begun
      // cannot end as absent or ambiguous.
      if (listed.kind !== 'page') throw refusalOf(read.answer);
      ({ page } = listed);
      ({ limit } = read);
    }
  }

  /** Halves `limit` until the answer is within `answerBytesMax`. */
  async #page(
    target: string,
    { limit, next }: { limit: number; next: string | undefined },
    signal: AbortSignal | undefined,
  ): Promise<Readonly<{ answer: HttpAnswer; limit: number }>> {
    const query = new URLSearchParams({ limit: String(limit), ...(next === undefined ? {} : { continue: next }) });
    try {
      return { answer: await this.#connection.ask(`${target}?${query.toString()}`, signal), limit };
    } catch (error) {
      if (limit === 1 || !(error instanceof CacheFault && error.kind === 'too-long')) throw error;
      return this.#page(target, { limit: Math.ceil(limit / 2), next }, signal);
    }
  }

  /**
   * Answers as the cache would at a moment after the report. Returns undefined if only the cache
   * can answer.
   */
  async #inMemory(ref: ObjectRef, signal: AbortSignal | undefined): Promise<Found | Absent | undefined> {
    const watched = this.#watched.of(ref);
    const before = watched?.find(ref);
    if (watched === undefined || before === undefined || before.kind === 'unknown') return undefined;
    // If a report on all shards leaves some out, request a report on the object's shard alone.
    const leavesOut = (): boolean => this.#lastReports.leavesShardsOut(freshnessTarget(ref));
    const isOfOne = before.kind === 'found' && leavesOut();
    const asked = isOfOne ? { ...ref, shard: before.object.shard } : ref;
    const received = await this.#report(asked, this.#options.reportAgeMaxMs, signal);
    this.#checked += 1;
    if (this.#checked % checksPerTurn === 0) await turn();
    const newestChange = received?.report.newestChange;
    if (newestChange === undefined || !watched.hasReached(newestChange)) return undefined;
    const known = watched.find(ref);
    if (known.kind !== 'found')
      return known.kind === 'nowhere' && !isOfOne
        ? this.#absent({ kind: 'absent', missing: 'object', message: notFound(ref) }, received)
        : undefined;
    const found = this.#found(known.object, received);
    if (found.freshness !== undefined) return found;
    return !isOfOne && leavesOut() ? this.#inMemory(ref, signal) : undefined;
  }

  /**
   * Undefined if the cache sends no report. The request that follows shows whether the cache can be
   * read at all.
   */
  async #report(asked: FreshnessRef, ageMaxMs: number, signal: AbortSignal | undefined): Promise<ReceivedReport | undefined> {
    try {
      return await this.#lastReports.get(freshnessTarget(asked), ageMaxMs, signal);
    } catch (error) {
      if (error instanceof CacheFault) return undefined;
      throw error;
    }
  }

  #answered(answer: ReadAnswer, received: ReceivedReport | undefined): Found | Absent | Ambiguous {
    switch (answer.kind) {
      case 'found':
        return this.#found(answer.object, received);
      case 'absent':
        return this.#absent(answer, received);
      case 'ambiguous':
        return answer;
      default:
        return unreachable(answer);
    }
  }

  #found(object: CachedObject, received: ReceivedReport | undefined): Found {
    const freshness = received && freshnessOn(received.report, object.shard, ageOf(received, this.#clock));
    return { kind: 'found', ...object, freshness };
  }

  #absent(answer: Omit<Absent, keyof TypeFreshness>, received: ReceivedReport | undefined): Absent {
    const { whole, ...shards } = this.#typeFreshness(received);
    return { ...answer, whole: whole && answer.missing !== 'type', ...shards };
  }

  #typeFreshness(received: ReceivedReport | undefined): TypeFreshness {
    return received === undefined
      ? { whole: false, shards: [], shardsLeftOut: 0 }
      : typeFreshness(received.report, ageOf(received, this.#clock));
  }

  async #askReport(target: string): Promise<FreshnessReport> {
    const { freshnessTimeoutMs } = this.#options;
    const ending = new AbortController();
    const late = `the cache did not answer how fresh it is within ${freshnessTimeoutMs / 1000} s`;
    const cancel = this.#clock.after(freshnessTimeoutMs, () => ending.abort(new CacheFault('overdue', late)));
    try {
      const answer = await this.#connection.ask(target, ending.signal);
      if (answer.status !== 200) throw refusalOf(answer);
      return parseFreshnessReport(answer.text);
    } finally {
      cancel();
    }
  }
}

/** The cache's wording. */
function notFound({ group, resource, name }: ObjectRef): string {
  return `${formatGroupResource({ group, resource })} ${JSON.stringify(name)} not found`;
}

export type LookupBounds = CacheConnectionBounds & CacheReaderOptions & WatchedTypeOptions;

/** `answerBytesMax` is ample: a page of a list usually has a few hundred kilobytes. */
export const defaultLookupBounds: LookupBounds = Object.freeze({
  timeoutMs: 10_000,
  answerBytesMax: 16 * 1024 * 1024,
  connectionsMax: 16,
  questionsMax: 1_000,
  reportAgeMaxMs: 1_000,
  freshnessTimeoutMs: 2_000,
  pageObjectsMax: 250,
  watchedObjectsMax: 100_000,
  watchedBytesMax: 256 * 1024 * 1024,
});
