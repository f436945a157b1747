/**
 * Follows a range of keys in etcd: first all that is there, then every change, in order, from whichever member answers.
 *
 *   listing, page by page at one revision ──▶ watch from the next revision on ──┬─▶ it ends: again from where it was, at another member
 *                                                                               └─▶ it cannot go on: following ends with `failed`
 *
 * L1 Batches come in rising revision, and no revision is split between two. None is left out, none comes twice. Pages of the listing are of one revision.
 * L2 Where etcd as a whole stands below what was handed out, it has lost it: nothing here is true any more. It is asked before each watch. A member alone may be
 *    behind for a while. Where etcd has compacted what comes next, nobody can say any more what happened, nor whether it was etcd that lost something.
 *    Nor is anything true where etcd sends a change of a revision up to which it has said that all was sent.
 * L3 Every `askMs` the watch is asked how far it is. One that leaves questions of `silentMs` unanswered is given up, the next one later. A pause of this process (F7) is no silence.
 *    While somebody waits for a revision, etcd as a whole is further than this watch: then an answer that brings nothing new is none. The disk of that member may stall.
 */
import type { Log } from '../../diagnostics/log.js';
import { deferred } from '../../domain/deferred.js';
import { CacheError } from '../../domain/errors.js';
import { pause } from '../../domain/pause.js';
import type { Clock } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import type { EtcdClient, EtcdWatch } from './client.js';
import { EtcdError } from './etcd-error.js';
import { Fragments } from './fragments.js';
import { listed, pageKeysMax } from './listing.js';
import { NewestRevision } from './newest-revision.js';
import { PacedBatches } from './paced-batches.js';
import { RevisionWaiters } from './revision-waiters.js';
import type { WatchEvent, WatchResponse } from './rpc.js';

export type KeyRange = Readonly<{ key: Uint8Array; rangeEnd: Uint8Array }>;

/** What has changed since the batch before, up to `revision`. */
export type FollowedBatch = Readonly<{ revision: Revision; events: readonly WatchEvent[] }>;

export type FollowerParts = Readonly<{
  client: EtcdClient;
  clock: Clock;
  log: Log;
  /** In the tick in which it has come. */
  take: (batch: FollowedBatch) => void;
  /** Whether etcd still has what was handed out, as far as somebody can tell. Throws EtcdError. */
  isKept: () => Promise<boolean>;
}>;

/** `reachMsMax`: how long a request waits for a revision. */
export type FollowerOptions = Readonly<{ pageKeysMax: number; askMs: number; silentMs: number; retryMs: number; reachMsMax: number }>;

export const followerOptions: FollowerOptions = Object.freeze({
  pageKeysMax,
  askMs: 1_000,
  silentMs: 4_000,
  retryMs: 200,
  reachMsMax: 15_000,
});

/** A watch that has kept silent for too long is given twice the time: etcd may read all history before it sends any, and a large event may take its time. */
const patienceMsMax = 64_000;
/** So many waits for a revision without any event. */
const fruitlessMax = 4;
/** How often a watch is asked while somebody waits: etcd does not answer one that has yet to catch up. */
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
  #heardMs = -Infinity;
  #watch: EtcdWatch | undefined;
  readonly #closing = new AbortController();
  #cancelAsking: (() => void) | undefined;
  readonly #fragments = new Fragments(replacedBytesMax);
  #eventsHeard = 0;
  /** How long a watch may keep silent. */
  #patienceMs: number;
  /** How often the watch was asked since it was last heard; that it was opened is a question too. */
  #unanswered = 0;
  /** The watch was announced: etcd may say before that how far it is, ahead of events that it still holds back. */
  #isAnnounced = false;
  #endWatch = (): void => {};

  private constructor(range: KeyRange, parts: FollowerParts, options: FollowerOptions) {
    this.#range = range;
    this.#parts = parts;
    this.#options = options;
    this.#patienceMs = options.silentMs;
    this.#waiters = new RevisionWaiters(parts);
    this.#newest = new NewestRevision(parts.client, range.key);
    this.#paced = new PacedBatches(
      (batch) => this.#handOutWatched(batch),
      () => this.#readOn(),
    );
  }

  /** Resolves once all that was there at the revision was handed out; 0: all that is there now. `begin` follows. Throws EtcdError. */
  static async open(range: KeyRange, parts: FollowerParts, at: Revision, options: FollowerOptions = followerOptions): Promise<Follower> {
    const follower = new Follower(range, parts, options);
    await follower.#list(at);
    return follower;
  }

  /** Hands out what happens from there on. */
  begin(): void {
    void this.#follow();
  }

  /** Everything up to here was handed out. */
  get position(): Revision {
    return this.#position;
  }

  /** When the watch last showed that it keeps up with etcd, in milliseconds of the clock. */
  get heardMs(): number {
    return this.#heardMs;
  }

  /** Resolves when it can follow no more. */
  get failed(): Promise<Error> {
    return this.#failed.promise;
  }

  /** Resolves once everything up to the revision was handed out. Rejects with an EtcdError of the kind `unknown` where that takes too long. */
  reach(revision: Revision): Promise<void> {
    if (this.#position >= revision) return Promise.resolve();
    const reached = this.#waiters.wait(revision, this.#options.reachMsMax);
    this.#askWhileWaiting();
    return reached;
  }

  /** Resolves once everything was handed out that had happened when it was called. Throws EtcdError. */
  async reachNewest(): Promise<void> {
    return this.reach(await this.#newest.ask());
  }

  /** The same for whoever has nothing to do before: it may take as long as something comes within a minute. Throws EtcdError. */
  async catchUp(revision?: Revision): Promise<void> {
    const newest = revision ?? (await this.#newest.ask());
    let [heard, fruitless] = [this.#eventsHeard, 0];
    for (;;) {
      try {
        return await this.reach(newest);
      } catch (error) {
        fruitless = this.#eventsHeard === heard ? fruitless + 1 : 0;
        heard = this.#eventsHeard;
        if (this.#isClosed || fruitless === fruitlessMax) throw error;
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
      if (error.kind === 'compacted') return this.#fail(`etcd has compacted what happened behind revision ${this.#position}`);
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
        // It comes again.
        this.#paced.clear();
        resolve(error);
      };
      const look = (): void => {
        if (this.#unanswered * askMs >= this.#patienceMs && !this.#paced.isFull) {
          this.#patienceMs = Math.min(2 * this.#patienceMs, patienceMsMax);
          return end(new EtcdError('unknown', `the watch has brought nothing new in answer to ${this.#unanswered} questions`));
        }
        watch.askProgress();
        this.#unanswered += 1;
        cancelLook = clock.after(askMs, look);
      };
      this.#unanswered = 1;
      const watch = client.watch(
        { ...this.#range, startRevision: this.#position + 1 },
        { received: (response) => this.#received(response, end), ended: end },
      );
      this.#watch = watch;
      this.#endWatch = () => end(new EtcdError('unknown', 'the following was closed'));
      cancelLook = clock.after(askMs, look);
    });
  }

  #received(response: WatchResponse, end: (error: EtcdError) => void): void {
    const { revision, created, canceled, compacted, reason, isFragment, events } = response;
    if (this.#isClosed) return;
    if (created) this.#isAnnounced = true;
    // That it was announced proves nothing: what comes next may be too large for the time that it has.
    else if (events.length > 0 || revision > this.#position || !this.#waiters.areThere) {
      this.#hear();
      this.#patienceMs = this.#options.silentMs;
    }
    this.#eventsHeard += events.length;
    if (canceled && compacted > 0) return end(new EtcdError('compacted', `history is compacted up to revision ${compacted}`));
    if (canceled) return end(new EtcdError('unknown', `etcd has ended the watch: ${reason}`));
    const whole = this.#fragments.add(events, isFragment);
    if (isFragment && whole.length === 0) return;
    // With events, the revision is etcd's own, and changes before it may still come; without, everything up to it has come.
    const last = whole.at(-1);
    if (last !== undefined) this.#paced.add({ revision: last.kv.revision, events: whole });
    else if (!created && this.#isAnnounced && revision > this.#position) this.#paced.add({ revision, events: [] });
    if (this.#paced.isFull) this.#watch?.pause();
  }

  #readOn(): void {
    this.#hear();
    this.#watch?.resume();
  }

  #hear(): void {
    this.#heardMs = this.#parts.clock.now();
    this.#unanswered = 0;
  }

  #handOutWatched(batch: FollowedBatch): void {
    const [first] = batch.events;
    // It was said while that waited.
    if (first === undefined && batch.revision <= this.#position) return;
    if (first !== undefined && first.kv.revision <= this.#position)
      return this.#fail(`etcd has said that all up to revision ${this.#position} was sent, and then sent revision ${first.kv.revision}`);
    this.#handOut(batch);
  }

  #handOut(batch: FollowedBatch): void {
    this.#position = batch.revision;
    this.#parts.take(batch);
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
        if (!isLogged) log.warn('etcd.not-answered', { message: error.message });
        await pause(clock, this.#options.retryMs, this.#closing.signal);
      }
    }
  }

  /** That what was handed out is still there, as far as that can be seen. */
  async #assertKept(): Promise<void> {
    const revision = await this.#parts.client.revision(this.#range.key);
    if (revision < this.#position)
      this.#fail(`etcd stands at revision ${revision}, and has shown revision ${this.#position} before: it was restored or replaced`);
    else if (!(await this.#parts.isKept())) this.#fail('etcd does not hold what it has shown: it was restored');
  }

  /** All that is there at a revision, or now. */
  async #list(at: Revision): Promise<void> {
    for await (const { revision, kvs } of listed(this.#parts.client, this.#range, { at, keysMax: this.#options.pageKeysMax }))
      this.#handOut({ revision, events: kvs.map((kv) => ({ kind: 'put', kv, previous: undefined })) });
  }

  #fail(why: string): void {
    this.close();
    this.#failed.resolve(new CacheError(why));
    // What they wait for may have happened.
    this.#waiters.fail(new EtcdError('unknown', why));
  }

  #askWhileWaiting(): void {
    if (this.#cancelAsking !== undefined || this.#isClosed) return;
    this.#watch?.askProgress();
    this.#cancelAsking = this.#parts.clock.after(askWhileWaitingMs, () => {
      this.#cancelAsking = undefined;
      if (this.#waiters.areThere) this.#askWhileWaiting();
    });
  }
}
