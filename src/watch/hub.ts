/**
 * Carries what is published to the open watches: to live ones itself, in shares of a turn of the event loop, in which it also writes to the
 * sinks of those whose readers keep up; to those that are behind by `CatchUp`, which hands them over in the tick in which they have been sent
 * everything published.
 *
 *   commit ─▶ at once ─▶ written to every socket     The next hand-out begins `periodFactor` times as long after this one as this one took,
 *   commit ─┐                                        `periodMsMax` at most: few watches wait for nothing, and a flood of small commits to
 *   commit ─┴▶ together, a little later              many becomes a few writes to each socket.
 *
 * A watch that joins or ends gets everything first; a bookmark names how far that is.
 *
 * Bookmarks go to every live watch each `bookmarkIntervalMs`, and `bookmarkBeforeEndMs` before its time is up.
 */
import { setImmediate } from 'node:timers';
import type { Commit } from '../domain/change.js';
import type { Clock, OpenWatch, Subscription, Watches, WatchRequest } from '../domain/ports.js';
import type { Commits } from '../domain/store-port.js';
import type { Key } from '../domain/key.js';
import type { Resource } from '../domain/resource.js';
import type { Revision } from '../domain/revision.js';
import { CatchUp } from './catch-up.js';
import { FanOut } from './fan-out.js';
import { timeShare } from './time-share.js';
import { Watcher, type ChangeStream, type WatcherLimits, type WatcherParts } from './watcher.js';

export type HubLimits = WatcherLimits & Readonly<{ bookmarkIntervalMs: number; periodFactor: number; periodMsMax: number }>;

export type HubParts = Omit<WatcherParts, 'stream'> & Readonly<{ clock: Clock; commits: Commits }>;

const bookmarkBeforeEndMs = 2000;

export class Hub implements Watches, ChangeStream {
  readonly #parts: HubParts;
  readonly #limits: HubLimits;
  readonly #live: FanOut<Watcher>;
  readonly #isLive = new Set<Watcher>();
  readonly #catchUp: CatchUp<Watcher>;
  readonly #open = new Set<Watcher>();
  /** Live watchers that have something to write. */
  #toWrite: Watcher[] = [];
  readonly #subscription: Subscription;
  #nextMs = -Infinity;
  /** Since when something is being handed out, until it is written. */
  #handsOutSinceMs: number | undefined;
  /** Cancels what comes next, while something is handed out, or waits for its time. */
  #cancelNext: (() => void) | undefined;
  #ending = false;

  constructor(parts: HubParts, limits: HubLimits) {
    this.#parts = parts;
    this.#limits = limits;
    this.#live = new FanOut(parts.revisions.published);
    this.#catchUp = new CatchUp({ ...parts, goLive: (watcher) => this.#goLive(watcher) });
    this.#subscription = parts.commits.subscribe((commit) => this.#publish(commit));
  }

  get openWatches(): number {
    return this.#open.size;
  }

  open(request: WatchRequest): OpenWatch {
    const watcher = new Watcher(request, { ...this.#parts, stream: this }, this.#limits);
    if (this.#ending) watcher.end();
    return { end: (why) => watcher.end(why), abandon: () => watcher.abandon(), [Symbol.asyncIterator]: () => this.#run(watcher) };
  }

  enter(watcher: Watcher, after: Revision): void {
    if (after >= this.#parts.revisions.published) this.#goLive(watcher);
    else this.#catchUp.enter(watcher, after);
  }

  leave(watcher: Watcher): boolean {
    if (!this.#isLive.delete(watcher)) {
      this.#catchUp.leave(watcher);
      return false;
    }
    this.#live.leave(watcher.request, watcher);
    return true;
  }

  flush(watcher: Watcher): void {
    if (this.#isLive.has(watcher)) this.#live.flush(watcher.request);
  }

  reached(watcher: Watcher): Revision | undefined {
    const reached = this.#isLive.has(watcher) ? this.#live.reached(watcher.request) : undefined;
    // Revisions without a change are published without a commit, as where others write to the same etcd; bookmarks must not stand still then.
    return reached === this.#live.revision ? this.#parts.revisions.published : reached;
  }

  drained(watcher: Watcher): void {
    this.#catchUp.drained(watcher);
  }

  writeSoon(watcher: Watcher): boolean {
    if (!this.#isLive.has(watcher)) return false;
    this.#toWrite.push(watcher);
    if (this.#handsOutSinceMs === undefined && this.#cancelNext === undefined) this.#inNextTurn(() => this.#handOut());
    return true;
  }

  endOf({ group, resource, identity }: Resource): void {
    for (const watcher of this.#open) {
      const { scope } = watcher.request;
      if (scope.group === group && scope.resource === resource && scope.identity === identity) watcher.end();
    }
  }

  async reportAbsent(key: Key): Promise<void> {
    const { objects, revisions } = this.#parts;
    const { resource, cluster, namespace, name } = key;
    const at = revisions.published;
    // A namesake on another shard is the same object to an informer.
    const standing = await objects.find({ ...resource, shard: '*', cluster, namespace, name });
    if (standing.length === 0 && revisions.published === at) this.#live.reportAbsent(key, revisions.format(at));
  }

  /** Ends every watch, cleanly, and from now on each that opens. */
  endAll(): void {
    this.#ending = true;
    for (const watcher of this.#open) watcher.end();
  }

  close(): void {
    this.#subscription.cancel();
    this.endAll();
    this.#cancelNext?.();
  }

  async *#run(watcher: Watcher): AsyncGenerator<readonly Uint8Array[]> {
    const { timeoutMs, bookmarks } = watcher.request;
    const cancels = [this.#parts.clock.after(timeoutMs, () => watcher.end())];
    if (bookmarks)
      cancels.push(
        this.#everyInterval(watcher),
        this.#parts.clock.after(Math.max(0, timeoutMs - bookmarkBeforeEndMs), () => watcher.bookmark()),
      );
    this.#open.add(watcher);
    try {
      yield* watcher;
    } finally {
      this.#open.delete(watcher);
      for (const cancel of cancels) cancel();
    }
  }

  #everyInterval(watcher: Watcher): () => void {
    let cancel = (): void => {};
    const again = (): void => {
      cancel = this.#parts.clock.after(this.#limits.bookmarkIntervalMs, () => {
        watcher.bookmark();
        again();
      });
    };
    again();
    return () => cancel();
  }

  #goLive(watcher: Watcher): void {
    this.#isLive.add(watcher);
    this.#live.join(watcher.request, watcher);
  }

  #publish({ changes, revision }: Commit): void {
    this.#live.publish(changes, revision);
    if (this.#cancelNext === undefined) this.#handOutSoon();
  }

  #handOutSoon(): void {
    if (this.#live.isIdle && this.#toWrite.length === 0) return;
    const waitMs = this.#nextMs - this.#parts.clock.now();
    if (waitMs <= 0) this.#handOut();
    else this.#cancelNext = this.#parts.clock.after(waitMs, () => this.#handOut());
  }

  #handOut(): void {
    const { clock } = this.#parts;
    this.#handsOutSinceMs ??= clock.now();
    // Not in the turn that publishes: writers are answered first.
    if (this.#toWrite.length > 0) this.#writeOut(timeShare(clock));
    else this.#live.handOut(timeShare(clock));
    const isDone = this.#live.isIdle && this.#toWrite.length === 0;
    this.#inNextTurn(
      isDone ? () => void this.#parts.pace.turn(0).then(() => this.#inNextTurn(() => this.#handedOut())) : () => this.#handOut(),
    );
  }

  /** Writes to as many sinks as there is time for, at least one. HTTP/2 frames and encrypts the bytes behind this turn, so they count too. */
  #writeOut(isTimeUp: () => boolean): void {
    let [written, bytes] = [0, 0];
    for (const watcher of this.#toWrite) {
      bytes += watcher.write();
      written += 1;
      if (isTimeUp() || bytes >= this.#parts.pace.bytesMax) break;
    }
    this.#toWrite = this.#toWrite.slice(written);
  }

  /** What was handed out is written, as far as the sockets take it. */
  #handedOut(): void {
    const nowMs = this.#parts.clock.now();
    const sinceMs = this.#handsOutSinceMs ?? nowMs;
    this.#nextMs = sinceMs + Math.min(this.#limits.periodMsMax, this.#limits.periodFactor * (nowMs - sinceMs));
    this.#handsOutSinceMs = undefined;
    this.#cancelNext = undefined;
    this.#handOutSoon();
  }

  #inNextTurn(task: () => void): void {
    const turn = setImmediate(task);
    this.#cancelNext = () => clearImmediate(turn);
  }
}
