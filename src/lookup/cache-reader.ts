/**
 * Reads one cache: an object by logical cluster or canonical path and name, on whichever shard has it; the objects of a type in a
 * cluster. Each answer says how fresh the cache is for what was asked.
 *
 * L1 An object that is absent, a name that is ambiguous and a cache that cannot be read are three things: the first two are answers,
 *    the third is thrown.
 * L2 A report of freshness was made before what it is about was read. The other way round, a shard that finished its sync between the two
 *    would seem to prove the absence of an object that came with it, and an old object would seem to be as fresh as a later report. Of a look-up the cache
 *    sees to that (web/look-up.ts), of a list this does.
 * L3 Without a report an object is found all the same, of unknown freshness, and an absence proves nothing.
 *
 * A look-up is one request. Of a type that is watched (watched-type.ts) a report on the type alone is asked for, once in `reportAgeMaxMs`; the object is looked up where what is
 * here cannot tell, or has not come as far as the report.
 *
 * A cache of before that has no look-up (404, 400) is asked for the object alone. Nothing is vouched for until the cache is newer.
 *
 * Bounds: a page of a list holds `pageObjectsMax`, fewer where those would be too long an answer; `freshnessTimeoutMs` for a report; the
 * rest in cache-connection.ts and last-reports.ts.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { unreachable } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { formatGroupResource } from '../domain/resource.js';
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
import { WatchedTypes } from './watched-types.js';

/**
 * `message` is in the cache's own words. Of a missing type `whole` is false: that nobody serves it proves nothing of its objects, and
 * perhaps only the version is wrong.
 */
export type Absent = Readonly<{ kind: 'absent'; missing: Missing; message: string }> & TypeFreshness;

/** A canonical path leads to several logical clusters, or several shards have the object; `message` names them. */
export type Ambiguous = Readonly<{ kind: 'ambiguous'; message: string }>;

/** `freshness` is that of the object's type on the object's shard; undefined when the cache reports none. */
export type Found = Readonly<{ kind: 'found'; freshness: Freshness | undefined }> & CachedObject;

/** `objects` are read page by page on demand, all of the moment of the first page. They throw CacheFault; on 410 start over. */
export type Listed = Readonly<{ kind: 'listed'; objects: AsyncGenerator<CachedObject, void> }> & TypeFreshness;

export type CacheReaderOptions = Readonly<{
  /** How old a freshness report may be. That of an object which is found is always of the look-up. */
  reportAgeMaxMs: number;
  /** How long a list waits for one; then it goes on without. */
  freshnessTimeoutMs: number;
  pageObjectsMax: number;
}>;

/** The part of `CacheConnection` that a reader needs. */
export type CacheReaderParts = Readonly<{
  clock: Clock;
  connection: { ask(target: string, signal?: AbortSignal): Promise<HttpAnswer>; close(): void };
  /** Types whose objects are in memory. */
  watched?: WatchedTypes;
}>;

type FirstPage = Readonly<{ page: ListPage; limit: number }>;

/** Answers from memory, one after the other, would keep all others from the event loop. */
const looksPerTurn = 100;

export class CacheReader {
  readonly #clock: Clock;
  readonly #connection: CacheReaderParts['connection'];
  readonly #options: CacheReaderOptions;
  readonly #watched: WatchedTypes;
  readonly #lastReports: LastReports;
  #looked = 0;

  constructor({ clock, connection, watched = new WatchedTypes([]) }: CacheReaderParts, options: CacheReaderOptions) {
    this.#clock = clock;
    this.#connection = connection;
    this.#options = options;
    this.#watched = watched;
    this.#lastReports = new LastReports({ clock, ask: (target) => this.#askReport(target) });
  }

  /** Throws CacheFault, an Error for a reference that names nothing, or the reason of `signal` when that is aborted. */
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

  /** The objects of the type in the cluster, in the namespace if one is given. Throws as `get` does. */
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

  /** How fresh the cache is for a type, on all shards it knows or on one. Throws as `get` does. */
  async freshness(type: FreshnessRef, signal?: AbortSignal): Promise<TypeFreshness> {
    return this.#typeFreshness(await this.#lastReports.within(freshnessTarget(type), this.#options.reportAgeMaxMs, signal));
  }

  /** How far each watched type is. */
  watching(): ReturnType<WatchedTypes['states']> {
    return this.#watched.states();
  }

  /** Ends what is under way with a CacheFault, the watches and the connections. */
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
      // A list that has begun cannot become absent or ambiguous as a whole: now its path leads elsewhere, or its type is gone.
      if (listed.kind !== 'page') throw refusalOf(read.answer);
      ({ page } = listed);
      ({ limit } = read);
    }
  }

  /** A page, of half as many objects as often as it takes to keep it within the bound of an answer. */
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

  /** What the cache would answer now, or a moment ago, but after the report; undefined when only the cache can tell. */
  async #inMemory(ref: ObjectRef, signal: AbortSignal | undefined): Promise<Found | Absent | undefined> {
    const watched = this.#watched.of(ref);
    const before = watched?.find(ref);
    if (watched === undefined || before === undefined || before.kind === 'unknown') return undefined;
    // Where a report on all shards leaves most of them out, the object's is asked for by its name.
    const leavesOut = (): boolean => this.#lastReports.leavesShardsOut(freshnessTarget(ref));
    const isOfOne = before.kind === 'found' && leavesOut();
    const asked = isOfOne ? { ...ref, shard: before.object.shard } : ref;
    const received = await this.#report(asked, this.#options.reportAgeMaxMs, signal);
    this.#looked += 1;
    if (this.#looked % looksPerTurn === 0) await turn();
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

  /** Undefined when the cache gives none. Whether it can be read at all shows when it is asked for the object. */
  async #report(asked: FreshnessRef, ageMaxMs: number, signal: AbortSignal | undefined): Promise<ReceivedReport | undefined> {
    try {
      return await this.#lastReports.within(freshnessTarget(asked), ageMaxMs, signal);
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

/** As the cache says it. */
function notFound({ group, resource, name }: ObjectRef): string {
  return `${formatGroupResource({ group, resource })} ${JSON.stringify(name)} not found`;
}
