/**
 * Reads one cache: an object by logical cluster or canonical path and name, on whichever shard has it; the objects of a type in a
 * cluster. Each answer says how fresh the cache is for what was asked.
 *
 * L1 An object that is absent, a name that is ambiguous and a cache that cannot be read are three things: the first two are answers,
 *    the third is thrown.
 * L2 A report of freshness is asked for before what it is about is read. The other way round, a shard that finished its sync between the two
 *    would seem to prove the absence of an object that came with it, and an old object would seem to be as fresh as a later report.
 * L3 Without a report an object is found all the same, of unknown freshness, and an absence proves nothing.
 *
 *    report ──┬──────────── look-up ──▶ absent         whole at the report, so nothing that was there then is missing
 *             └ what changed in between is as late as any change
 *
 * A look-up is two requests: a report on the type, of all shards as long as there are few, and the object. Of a type on more shards than a report lists, the
 * object is asked for first, to learn its shard; then a report on that shard and the object again. The next look-up in that cluster names the shard at once.
 * If the object is absent, a report on all shards and the object follow. So a look-up is four requests at most, and six if shards change meanwhile.
 *
 * Of a type that is watched (watched-type.ts) the report alone is asked for, once in `reportAgeMaxMs`; the object is asked for as well where what is here cannot
 * tell, or has not come as far as the report.
 *
 * A cache of before that has no such report (404) is not asked for its whole status instead: that is what made look-ups slow, and then fail,
 * as a tree grew. Nothing is vouched for until the cache is newer.
 *
 * Bounds: a page of a list holds `pageObjectsMax`, fewer where those would be too long an answer; `freshnessTimeoutMs` for a report; the
 * rest in cache-connection.ts, last-reports.ts and last-shards.ts.
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
import { ageOf, type ReceivedReport } from './last-report.js';
import { LastReports } from './last-reports.js';
import { LastShards } from './last-shards.js';
import { collectionTarget, freshnessTarget, objectTarget, type CollectionRef, type FreshnessRef, type ObjectRef } from './object-ref.js';
import {
  readList,
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
  /** How old a freshness report may be. */
  reportAgeMaxMs: number;
  /** How long a look-up waits for one; then it goes on without. */
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

/** A report, and the object asked for after it. `isUnasked`: there is no report because none was asked for. */
type Look = Readonly<{ received: ReceivedReport | undefined; answer: ReadAnswer; isUnasked: boolean }>;

/** Answers from memory, one after the other, would keep all others from the event loop. */
const looksPerTurn = 100;

export class CacheReader {
  readonly #clock: Clock;
  readonly #connection: CacheReaderParts['connection'];
  readonly #options: CacheReaderOptions;
  readonly #watched: WatchedTypes;
  readonly #lastReports: LastReports;
  #looked = 0;
  /** Only of objects on shards that a report on all of them has left out. */
  readonly #lastShards = new LastShards();

  constructor({ clock, connection, watched = new WatchedTypes([]) }: CacheReaderParts, options: CacheReaderOptions) {
    this.#clock = clock;
    this.#connection = connection;
    this.#options = options;
    this.#watched = watched;
    this.#lastReports = new LastReports({ clock, ask: (target) => this.#askReport(target) });
  }

  /** Throws CacheFault, an Error for a reference that names nothing, or the reason of `signal` when that is aborted. */
  async get(ref: ObjectRef, signal?: AbortSignal): Promise<Found | Absent | Ambiguous> {
    objectTarget(ref);
    const guess = ref.shard ?? this.#guess(ref);
    const first = await this.#look(ref, guess, signal);
    // What one shard lacks, another may have.
    const isOpen = first.isUnasked || guess !== ref.shard;
    const { received, answer, isUnasked } =
      first.answer.kind === 'absent' && isOpen ? await this.#askedLook(ref, ref.shard, signal) : first;
    switch (answer.kind) {
      case 'found': {
        const freshness = this.#freshnessOn(received, answer.object);
        const isKnown = freshness !== undefined || (received === undefined && !isUnasked);
        return isKnown ? { kind: 'found', ...answer.object, freshness } : this.#foundOn(ref, answer.object, signal);
      }
      case 'absent':
        return this.#absent(answer, received);
      case 'ambiguous':
        return answer;
      default:
        return unreachable(answer);
    }
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
    return this.#typeFreshness(await this.#lastReports.to(freshnessTarget(type)).within(this.#options.reportAgeMaxMs, signal));
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

  /** On that shard, if it is a guess. A report that would leave most shards out is not asked for before it is known that the object is absent. */
  async #look(ref: ObjectRef, shard: string | undefined, signal: AbortSignal | undefined): Promise<Look> {
    const last = this.#lastReports.to(freshnessTarget({ ...ref, shard }));
    if (!last.leavesShardsOut || this.#watched.of(ref)?.find(ref).kind === 'nowhere') return this.#askedLook(ref, shard, signal);
    const received = last.youngerThan(this.#options.reportAgeMaxMs);
    return { received, answer: readObject(await this.#connection.ask(objectTarget(ref), signal)), isUnasked: received === undefined };
  }

  async #askedLook(
    ref: ObjectRef,
    shard: string | undefined,
    signal: AbortSignal | undefined,
    reportAgeMaxMs = this.#options.reportAgeMaxMs,
  ): Promise<Look> {
    const received = await this.#report({ ...ref, shard }, reportAgeMaxMs, signal);
    const answer = this.#inMemory(ref, received) ?? readObject(await this.#connection.ask(objectTarget(ref), signal));
    this.#looked += 1;
    if (this.#looked % looksPerTurn === 0) await turn();
    return { received, answer, isUnasked: false };
  }

  /** What the cache would answer now, or a moment ago, but after the report; undefined when only the cache can tell. */
  #inMemory(ref: ObjectRef, received: ReceivedReport | undefined): ReadAnswer | undefined {
    const watched = this.#watched.of(ref);
    const newestChange = received?.report.newestChange;
    if (watched === undefined || newestChange === undefined || !watched.hasReached(newestChange)) return undefined;
    const known = watched.find(ref);
    if (known.kind === 'found') return known;
    return known.kind === 'nowhere' ? { kind: 'absent', missing: 'object', message: notFound(ref) } : undefined;
  }

  /** On which shard the object probably is, if a report on all shards would leave that out. */
  #guess(ref: ObjectRef): string | undefined {
    const last = this.#lastShards.of(ref);
    if (last !== undefined || !this.#lastReports.to(freshnessTarget(ref)).leavesShardsOut) return last;
    const known = this.#watched.of(ref)?.find(ref);
    return known?.kind === 'found' ? known.object.shard : undefined;
  }

  /** The report before did not know the shard. The object exists, whether or not it is found again and its freshness is known. */
  async #foundOn(ref: ObjectRef, found: CachedObject, signal: AbortSignal | undefined): Promise<Found> {
    const { shard } = found;
    try {
      const { received, answer } = await this.#askedLook(ref, shard, signal, 0);
      if (answer.kind === 'found') {
        if (ref.shard === undefined) this.#lastShards.learn(ref, answer.object.shard);
        return { kind: 'found', ...answer.object, freshness: this.#freshnessOn(received, answer.object) };
      }
    } catch (error) {
      if (!(error instanceof CacheFault)) throw error;
    }
    return { kind: 'found', ...found, freshness: undefined };
  }

  /** Undefined when the cache gives none. Whether it can be read at all shows when it is asked for the object. */
  async #report(asked: FreshnessRef, ageMaxMs: number, signal: AbortSignal | undefined): Promise<ReceivedReport | undefined> {
    try {
      return await this.#lastReports.to(freshnessTarget(asked)).within(ageMaxMs, signal);
    } catch (error) {
      if (error instanceof CacheFault) return undefined;
      throw error;
    }
  }

  #freshnessOn(received: ReceivedReport | undefined, { shard }: CachedObject): Freshness | undefined {
    return received && freshnessOn(received.report, shard, ageOf(received, this.#clock));
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
