/**
 * Reads one cache: an object by logical cluster or canonical path and name, on whichever shard has it; the objects of a type in a
 * cluster. Each answer says how fresh the cache is for what was asked.
 *
 * L1 An object that is absent, a name that is ambiguous and a cache that cannot be read are three things: the first two are answers,
 *    the third is thrown.
 * L2 The report that decides whether an absence is proved was made before the look-up. The other way round, a shard that finished its sync
 *    between the two would seem to prove the absence of an object that came with it.
 *
 *    report ──┬──────────── look-up ──▶ absent         whole at the report, so nothing that was there then is missing
 *             └ what changed in between is as late as any change
 *
 * Bounds: a page of a list holds `pageObjectsMax`, fewer where those would be too long an answer; the rest in cache-connection.ts.
 */
import type { Clock } from '../domain/ports.js';
import { CacheFault } from './cache-fault.js';
import { freshnessOn, parseFreshnessReport, typeFreshness, type Freshness, type TypeFreshness } from './freshness-report.js';
import { LastReport, type ReceivedReport } from './last-report.js';
import { collectionTarget, objectTarget, type CollectionRef, type ObjectRef, type TypeRef } from './object-ref.js';
import { readList, readObject, refusalOf, type CachedObject, type HttpAnswer, type ListPage, type Missing } from './read-answer.js';

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
  /** How old a freshness report may be. A report covers all shards and types, and costs more than an object. */
  reportAgeMaxMs: number;
  pageObjectsMax: number;
}>;

/** The part of `CacheConnection` that a reader needs. */
export type CacheReaderParts = Readonly<{
  clock: Clock;
  connection: { ask(target: string, signal?: AbortSignal): Promise<HttpAnswer>; close(): void };
}>;

type FirstPage = Readonly<{ page: ListPage; limit: number }>;

const reportTarget = '/services/cache/status';

export class CacheReader {
  readonly #connection: CacheReaderParts['connection'];
  readonly #options: CacheReaderOptions;
  readonly #lastReport: LastReport;

  constructor({ clock, connection }: CacheReaderParts, options: CacheReaderOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#lastReport = new LastReport({ clock, ask: () => this.#askReport() });
  }

  /** Throws CacheFault, an Error for a reference that names nothing, or the reason of `signal` when that is aborted. */
  async get(ref: ObjectRef, signal?: AbortSignal): Promise<Found | Absent | Ambiguous> {
    const target = objectTarget(ref);
    const received = await this.#report(signal);
    const answer = readObject(await this.#connection.ask(target, signal));
    switch (answer.kind) {
      case 'found':
        return { kind: 'found', ...answer.object, freshness: await this.#freshnessOf(answer.object, ref, received, signal) };
      case 'absent':
        return this.#absent(answer, received, ref);
      case 'ambiguous':
        return answer;
    }
  }

  /** The objects of the type in the cluster, in the namespace if one is given. Throws as `get` does. */
  async list(ref: CollectionRef, signal?: AbortSignal): Promise<Listed | Absent | Ambiguous> {
    const target = collectionTarget(ref);
    const received = await this.#report(signal);
    const limit = this.#options.pageObjectsMax;
    const { answer, limit: taken } = await this.#page(target, { limit, next: undefined }, signal);
    const listed = readList(answer);
    switch (listed.kind) {
      case 'page':
        return {
          kind: 'listed',
          objects: this.#pages(target, { page: listed.page, limit: taken }, signal),
          ...this.#typeFreshness(received, ref),
        };
      case 'absent':
        return this.#absent(listed, received, ref);
      case 'ambiguous':
        return listed;
    }
  }

  /** How fresh the cache is for a type, on all shards it knows. Throws as `get` does. */
  async freshness(type: TypeRef, signal?: AbortSignal): Promise<TypeFreshness> {
    return this.#typeFreshness(await this.#lastReport.within(this.#options.reportAgeMaxMs, signal), type);
  }

  /** Ends what is under way with a CacheFault, and the connections. */
  close(): void {
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

  /** Undefined from a cache that has none. If it does not answer, the object need not be asked for either. */
  async #report(signal: AbortSignal | undefined): Promise<ReceivedReport | undefined> {
    try {
      return await this.#lastReport.within(this.#options.reportAgeMaxMs, signal);
    } catch (error) {
      if (error instanceof CacheFault && (error.kind === 'refused' || error.kind === 'unreadable')) return undefined;
      throw error;
    }
  }

  /** A shard or type that the report does not know yet is newer than it. */
  async #freshnessOf(
    { shard }: CachedObject,
    type: TypeRef,
    received: ReceivedReport | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Freshness | undefined> {
    if (received === undefined) return undefined;
    const known = freshnessOn(received.report, shard, type, this.#lastReport.ageOf(received));
    if (known !== undefined) return known;
    try {
      const renewed = await this.#lastReport.after(received, signal);
      return freshnessOn(renewed.report, shard, type, this.#lastReport.ageOf(renewed));
    } catch (error) {
      // The object exists, whether or not its freshness is known.
      if (error instanceof CacheFault) return undefined;
      throw error;
    }
  }

  #absent(answer: Omit<Absent, keyof TypeFreshness>, received: ReceivedReport | undefined, type: TypeRef): Absent {
    const { whole, shards } = this.#typeFreshness(received, type);
    return { ...answer, whole: whole && answer.missing !== 'type', shards };
  }

  #typeFreshness(received: ReceivedReport | undefined, type: TypeRef): TypeFreshness {
    return received === undefined ? { whole: false, shards: [] } : typeFreshness(received.report, type, this.#lastReport.ageOf(received));
  }

  async #askReport() {
    const answer = await this.#connection.ask(reportTarget);
    if (answer.status !== 200) throw refusalOf(answer);
    return parseFreshnessReport(answer.text);
  }
}
