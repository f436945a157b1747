/**
 * Follows a range of keys in etcd: first every key at one revision, then every change in order,
 * from whichever member answers.
 *
 *   listing, page by page ──▶ watch from the next revision ──┬─▶ it ends: watch again at another
 *                                                            │   member, from the last position
 *                                                            └─▶ data is lost: `failed` resolves
 *
 * L1 Every page of the listing has the same revision. After the listing, batches have rising
 *    revisions, and no revision is split between two batches. No change is missing or repeated.
 * L2 Following fails if etcd has lost, or may have lost, a change that was handed out. Before each
 *    new watch, the follower reads etcd's revision with a quorum, because one member may lag for a
 *    while. Following fails if that revision is below the position. Following fails if etcd has
 *    compacted the next changes, because the follower can then neither read them nor detect a loss
 *    of data. It also fails if etcd sends a change that an earlier progress report covered.
 * L3 Every `askMs` the follower requests the progress of the watch. It closes a watch that leaves
 *    `silentMs / askMs` requests in a row unanswered, and allows the next watch twice as many. It
 *    counts requests and not time, so a pause of this process (docs/guarantees.md, F7) is no
 *    silence. While a caller waits for a later revision, an answer without progress counts as none:
 *    the member's disk may have stalled.
 */
import type { Log } from '../../diagnostics/log.js';
import { deferred, pause, type Deferred } from '../../domain/base/promises.js';
import { CacheError } from '../../domain/errors.js';
import type { Clock } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import type { EtcdClient, EtcdWatch } from './client.js';
import { EtcdError } from './etcd-error.js';
import { Fragments } from './fragments.js';
import { listed, pageKeysMax } from './listing.js';
import { PacedBatches } from './paced-batches.js';
import type { WatchEvent, WatchResponse } from './rpc.js';

export type KeyRange = Readonly<{ key: Uint8Array; rangeEnd: Uint8Array }>;

/** The changes since the previous batch, up to `revision`. */
export type FollowedBatch = Readonly<{ revision: Revision; events: readonly WatchEvent[] }>;

export type FollowerParts = Readonly<{
  client: EtcdClient;
  clock: Clock;
  log: Log;
  /** Called synchronously, before callers that wait for the revision resume. */
  apply: (batch: FollowedBatch) => void;
  /** Returns false if etcd has certainly lost a change that was handed out. Throws EtcdError. */
  isKept: () => Promise<boolean>;
}>;

/** `reachMsMax`: how long a caller waits for a revision. */
export type FollowerOptions = Readonly<{ pageKeysMax: number; askMs: number; silentMs: number; retryMs: number; reachMsMax: number }>;

export const followerOptions: FollowerOptions = Object.freeze({
  pageKeysMax,
  askMs: 1_000,
  silentMs: 4_000,
  retryMs: 200,
  reachMsMax: 15_000,
});

/**
 * After each silent watch, the next may be silent twice as long, up to this. etcd may read all
 * history before it sends, and large events take time.
 */
const patienceMsMax = 64_000;
/** `catchUp` fails after this many waits in a row without any event. */
const eventlessWaitsMax = 4;
/**
 * The interval of progress requests while a caller waits. They are repeated, because etcd answers
 * none of them while the watch is catching up.
 */
const askWhileWaitingMs = 10;
const replacedBytesMax = 64 * 1024 * 1024;

export class Follower {
  readonly #range: KeyRange;
  readonly #parts: FollowerParts;
  readonly #options: FollowerOptions;
  readonly #failed = deferred<Error>();
  readonly #waiters: RevisionWaiters;
  readonly #newest: NewestRevision;
  readonly #paced: PacedBatches;
  #position: Revision = 0;
  #lastProgressMs = -Infinity;
  #watch: EtcdWatch | undefined;
  readonly #closing = new AbortController();
  #cancelAsking: (() => void) | undefined;
  readonly #fragments = new Fragments(replacedBytesMax);
  #eventsReceived = 0;
  #silenceMsMax: number;
  /** Progress requests since the last answer. Opening the watch counts as one. */
  #unanswered = 0;
  /**
   * Whether etcd has confirmed the watch. A progress report before that may be ahead of events that
   * etcd has not sent yet.
   */
  #isAnnounced = false;
  #endWatch = (): void => {};

  private constructor(range: KeyRange, parts: FollowerParts, options: FollowerOptions) {
    this.#range = range;
    this.#parts = parts;
    this.#options = options;
    this.#silenceMsMax = options.silentMs;
    this.#waiters = new RevisionWaiters(parts);
    this.#newest = new NewestRevision(parts.client, range.key);
    this.#paced = new PacedBatches(
      (batch) => this.#deliverWatched(batch),
      () => this.#readOn(),
    );
  }

  /**
   * Resolves once every key at revision `at` (0: the newest) was handed out. Call `begin` next.
   * Throws EtcdError.
   */
  static async open(range: KeyRange, parts: FollowerParts, at: Revision, options: FollowerOptions = followerOptions): Promise<Follower> {
    const follower = new Follower(range, parts, options);
    await follower.#list(at);
    return follower;
  }

  /** Starts the watch for the changes after the listing. */
  begin(): void {
    void this.#follow();
  }

  /** Everything up to this revision was handed out. */
  get position(): Revision {
    return this.#position;
  }

  /** When the watch last kept up with etcd, in milliseconds of the clock. */
  get lastProgressMs(): number {
    return this.#lastProgressMs;
  }

  /** Resolves with the reason when following has failed for good (L2). */
  get failed(): Promise<Error> {
    return this.#failed.promise;
  }

  /**
   * Resolves once everything up to the revision was handed out. Rejects with an EtcdError of the
   * kind `unknown` after `reachMsMax`.
   */
  reach(revision: Revision): Promise<void> {
    if (this.#position >= revision) return Promise.resolve();
    const reached = this.#waiters.wait(revision, this.#options.reachMsMax);
    this.#askWhileWaiting();
    return reached;
  }

  /**
   * Resolves once everything that etcd held at the time of the call was handed out. Throws
   * EtcdError.
   */
  async reachNewest(): Promise<void> {
    return this.reach(await this.#newest.ask());
  }

  /**
   * Like `reach`, but waits while events keep arriving, and fails after a minute without any.
   * `revision`: etcd's newest if undefined. Throws EtcdError.
   */
  async catchUp(revision?: Revision): Promise<void> {
    const newest = revision ?? (await this.#newest.ask());
    let [heard, fruitless] = [this.#eventsReceived, 0];
    for (;;) {
      try {
        return await this.reach(newest);
      } catch (error) {
        fruitless = this.#eventsReceived === heard ? fruitless + 1 : 0;
        heard = this.#eventsReceived;
        if (this.#isClosed || fruitless === eventlessWaitsMax) throw error;
      }
    }
  }

  close(): void {
    this.#closing.abort();
    this.#endWatch();
    this.#cancelAsking?.();
  }

  async #follow(): Promise<void> {
    const { client, log } = this.#parts;
    for (;;) {
      const { endpoint } = client;
      const error = await this.#watchUntilEnd();
      if (this.#isClosed) return;
      log.warn('etcd.watch-ended', { endpoint, position: this.#position, message: error.message });
      if (error.kind === 'compacted')
        return this.#fail(`etcd has compacted the changes after revision ${this.#position}, which this server has not received`);
      client.moveOn(endpoint);
      await this.#untilDone(() => this.#assertKept());
      if (this.#isClosed) return;
    }
  }

  #watchUntilEnd(): Promise<EtcdError> {
    const { client, clock } = this.#parts;
    const { askMs } = this.#options;
    this.#fragments.clear();
    this.#isAnnounced = false;
    return new Promise((resolve) => {
      let cancelLook = (): void => {};
      const end = (error: EtcdError): void => {
        cancelLook();
        watch.close();
        this.#watch = undefined;
        // The next watch brings these batches again.
        this.#paced.clear();
        resolve(error);
      };
      const look = (): void => {
        if (this.#unanswered * askMs >= this.#silenceMsMax && !this.#paced.isFull) {
          this.#silenceMsMax = Math.min(2 * this.#silenceMsMax, patienceMsMax);
          return end(new EtcdError('unknown', `the watch brought nothing new after ${this.#unanswered} progress requests`));
        }
        watch.requestProgress();
        this.#unanswered += 1;
        cancelLook = clock.after(askMs, look);
      };
      this.#unanswered = 1;
      const watch = client.watch(
        { ...this.#range, startRevision: this.#position + 1 },
        { received: (response) => this.#received(response, end), ended: end },
      );
      this.#watch = watch;
      this.#endWatch = () => end(new EtcdError('unknown', 'the follower was closed'));
      cancelLook = clock.after(askMs, look);
    });
  }

  #received(response: WatchResponse, end: (error: EtcdError) => void): void {
    const { revision, created, canceled, compacted, reason, isFragment, events } = response;
    if (this.#isClosed) return;
    if (created) this.#isAnnounced = true;
    // The confirmation does not reset the limit of silence: the first events may be too large to
    // arrive within the normal limit.
    else if (events.length > 0 || revision > this.#position || !this.#waiters.hasWaiters) {
      this.#recordProgress();
      this.#silenceMsMax = this.#options.silentMs;
    }
    this.#eventsReceived += events.length;
    if (canceled && compacted > 0) return end(new EtcdError('compacted', `history is compacted up to revision ${compacted}`));
    if (canceled) return end(new EtcdError('unknown', `etcd has ended the watch: ${reason}`));
    const whole = this.#fragments.add(events, isFragment);
    if (isFragment && whole.length === 0) return;
    // In a response with events, `revision` is etcd's newest; changes below it may still follow. In
    // a response without events, everything up to `revision` has arrived.
    const last = whole.at(-1);
    if (last !== undefined) this.#paced.add({ revision: last.kv.revision, events: whole });
    else if (!created && this.#isAnnounced && revision > this.#position) this.#paced.add({ revision, events: [] });
    if (this.#paced.isFull) this.#watch?.pause();
  }

  #readOn(): void {
    this.#recordProgress();
    this.#watch?.resume();
  }

  #recordProgress(): void {
    this.#lastProgressMs = this.#parts.clock.now();
    this.#unanswered = 0;
  }

  #deliverWatched(batch: FollowedBatch): void {
    const [first] = batch.events;
    // This report is outdated: batches before it have already reached its revision.
    if (first === undefined && batch.revision <= this.#position) return;
    if (first !== undefined && first.kv.revision <= this.#position)
      return this.#fail(`etcd reported revision ${this.#position} as sent in full, and then sent revision ${first.kv.revision}`);
    this.#deliver(batch);
  }

  #deliver(batch: FollowedBatch): void {
    this.#position = batch.revision;
    this.#parts.apply(batch);
    this.#waiters.reached(this.#position);
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #untilDone(ask: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#parts;
    for (let isLogged = false; !this.#isClosed; isLogged = true) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        if (!isLogged) log.warn('etcd.request-failed', { message: error.message });
        await pause(clock, this.#options.retryMs, this.#closing.signal);
      }
    }
  }

  async #assertKept(): Promise<void> {
    const revision = await this.#parts.client.revision(this.#range.key);
    if (revision < this.#position)
      this.#fail(`etcd is at revision ${revision}, but sent revision ${this.#position} before: it was restored or replaced`);
    else if (!(await this.#parts.isKept())) this.#fail('etcd has lost changes that it sent before: it was restored');
  }

  /** Hands out every key at revision `at`; 0: the newest. */
  async #list(at: Revision): Promise<void> {
    for await (const { revision, kvs } of listed(this.#parts.client, this.#range, { at, keysMax: this.#options.pageKeysMax }))
      this.#deliver({ revision, events: kvs.map((kv) => ({ kind: 'put', kv, previous: undefined })) });
  }

  #fail(why: string): void {
    this.close();
    this.#failed.resolve(new CacheError(why));
    // The kind is `unknown`, because writes that callers wait for may have been applied.
    this.#waiters.fail(new EtcdError('unknown', why));
  }

  #askWhileWaiting(): void {
    if (this.#cancelAsking !== undefined || this.#isClosed) return;
    this.#watch?.requestProgress();
    this.#cancelAsking = this.#parts.clock.after(askWhileWaitingMs, () => {
      this.#cancelAsking = undefined;
      if (this.#waiters.hasWaiters) this.#askWhileWaiting();
    });
  }
}

type Waiter = Readonly<{ revision: Revision }> & Deferred<void>;

/** Callers that wait until everything up to a revision was handed out. */
class RevisionWaiters {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiter>();

  constructor({ clock }: Readonly<{ clock: Clock }>) {
    this.#clock = clock;
  }

  get hasWaiters(): boolean {
    return this.#waiting.size > 0;
  }

  /** Rejects with an EtcdError of the kind `unknown` after `withinMs`. */
  wait(revision: Revision, withinMs: number): Promise<void> {
    const waiter = { revision, ...deferred<void>() };
    const late = (): void =>
      waiter.reject(new EtcdError('unknown', `revision ${revision} of etcd did not arrive within ${withinMs / 1000} s`));
    const cancel = this.#clock.after(withinMs, late);
    this.#waiting.add(waiter);
    return waiter.promise.finally(() => {
      cancel();
      this.#waiting.delete(waiter);
    });
  }

  reached(position: Revision): void {
    for (const waiter of this.#waiting) if (waiter.revision <= position) waiter.resolve();
  }

  /** Rejects all, because none of their revisions will be handed out. */
  fail(error: Error): void {
    for (const waiter of this.#waiting) waiter.reject(error);
  }
}

/**
 * Asks etcd for its newest revision. One request is under way at a time; all callers that wait for
 * the next request share it.
 */
class NewestRevision {
  readonly #client: Pick<EtcdClient, 'revision'>;
  readonly #key: Uint8Array;
  /** The current request, or the last one. */
  #asked: Promise<unknown> = Promise.resolve();
  #next: Promise<Revision> | undefined;

  /** `key`: any key that this user of etcd may read. */
  constructor(client: Pick<EtcdClient, 'revision'>, key: Uint8Array) {
    this.#client = client;
    this.#key = key;
  }

  /**
   * Returns etcd's revision at some moment after the call. So a request that is already under way
   * is not shared. Throws EtcdError.
   */
  ask(): Promise<Revision> {
    this.#next ??= this.#asked.then(() => {
      this.#next = undefined;
      const asked = this.#client.revision(this.#key);
      this.#asked = asked.catch(() => {});
      return asked;
    });
    return this.#next;
  }
}
