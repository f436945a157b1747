/**
 * Delivers commits to the open watches. Live watches are served in time slices of the event loop.
 * If the client of a live watch keeps up, the hub writes to its HTTP exchange directly. `CatchUp`
 * serves the watches that are behind. It hands a watch back in the tick in which the watch has
 * received everything published.
 *
 *   commit ─▶ at once ─▶ written to every socket
 *   commit ─┐
 *   commit ─┴▶ together, a little later
 *
 * If a delivery round took T, the next one begins `periodFactor` * T after the start of that round,
 * at most `periodMsMax` after it. So a few watches get each commit at once. With many watches, a
 * flood of small commits becomes a few writes to each socket.
 *
 * Before a watch joins, or ends without an error, the hub sends its group (scope-index.ts)
 * everything published. A bookmark names the revision up to which its watch has received everything.
 *
 * While a watch with bookmarks is live, it gets one every `bookmarkIntervalMs`, and one
 * `bookmarkBeforeEndMs` before its timeout.
 */
import { setImmediate } from 'node:timers';
import type { Commit } from '../domain/change.js';
import type { Clock, OpenWatch, Subscription, Watches, WatchRequest } from '../domain/ports.js';
import type { Commits } from '../domain/store-port.js';
import type { Key } from '../domain/key.js';
import type { Resource } from '../domain/resource.js';
import type { Revision } from '../domain/revision.js';
import { CatchUp, timeShare } from './catch-up.js';
import { FanOut } from './fan-out.js';
import { Watcher, type ChangeStream, type WatcherContext, type WatcherLimits } from './watcher.js';

export type HubLimits = WatcherLimits & Readonly<{ bookmarkIntervalMs: number; periodFactor: number; periodMsMax: number }>;

export type HubParts = WatcherContext & Readonly<{ clock: Clock; commits: Commits }>;

const bookmarkBeforeEndMs = 2000;

export class Hub implements Watches, ChangeStream {
  readonly #parts: HubParts;
  readonly #limits: HubLimits;
  readonly #live: FanOut<Watcher>;
  readonly #isLive = new Set<Watcher>();
  readonly #catchUp: CatchUp<Watcher>;
  readonly #open = new Set<Watcher>();
  #toWrite: Watcher[] = [];
  readonly #subscription: Subscription;
  #nextMs = -Infinity;
  /** When the current delivery round began; undefined between rounds. */
  #roundSinceMs: number | undefined;
  /** Cancels the scheduled next step of a round, or the start of the next round. */
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
    // Where several servers share one etcd, the published revision rises without a commit, and
    // bookmarks must rise with it.
    return reached === this.#live.revision ? this.#parts.revisions.published : reached;
  }

  drained(watcher: Watcher): void {
    this.#catchUp.drained(watcher);
  }

  writeSoon(watcher: Watcher): boolean {
    if (!this.#isLive.has(watcher)) return false;
    this.#toWrite.push(watcher);
    if (this.#roundSinceMs === undefined && this.#cancelNext === undefined) this.#inNextTurn(() => this.#deliver());
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
    // An informer cannot distinguish objects of the same name on two shards.
    const standing = await objects.find({ ...resource, shard: '*', cluster, namespace, name });
    if (standing.length === 0 && revisions.published === at) this.#live.reportAbsent(key, revisions.format(at));
  }

  /** Ends every open watch without an error, and every watch that opens later. */
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
    if (this.#cancelNext === undefined) this.#deliverSoon();
  }

  #deliverSoon(): void {
    if (this.#live.isIdle && this.#toWrite.length === 0) return;
    const waitMs = this.#nextMs - this.#parts.clock.now();
    if (waitMs <= 0) this.#deliver();
    else this.#cancelNext = this.#parts.clock.after(waitMs, () => this.#deliver());
  }

  #deliver(): void {
    const { clock } = this.#parts;
    this.#roundSinceMs ??= clock.now();
    // The hub writes to sockets in a later turn than the one that publishes, so that the clients
    // that wrote get their answers first.
    if (this.#toWrite.length > 0) this.#writeOut(timeShare(clock));
    else this.#live.deliver(timeShare(clock));
    const isDone = this.#live.isIdle && this.#toWrite.length === 0;
    this.#inNextTurn(
      isDone ? () => void this.#parts.pace.turn(0).then(() => this.#inNextTurn(() => this.#endRound())) : () => this.#deliver(),
    );
  }

  /**
   * Writes to as many sinks as time allows, at least one. HTTP/2 frames and encrypts the bytes
   * after this turn, so the number of bytes is limited too.
   */
  #writeOut(isTimeUp: () => boolean): void {
    let [written, bytes] = [0, 0];
    for (const watcher of this.#toWrite) {
      bytes += watcher.write();
      written += 1;
      if (isTimeUp() || bytes >= this.#parts.pace.bytesMax) break;
    }
    this.#toWrite = this.#toWrite.slice(written);
  }

  /** Ends the round: everything delivered is written, as far as the sockets accept it. */
  #endRound(): void {
    const nowMs = this.#parts.clock.now();
    const sinceMs = this.#roundSinceMs ?? nowMs;
    this.#nextMs = sinceMs + Math.min(this.#limits.periodMsMax, this.#limits.periodFactor * (nowMs - sinceMs));
    this.#roundSinceMs = undefined;
    this.#cancelNext = undefined;
    this.#deliverSoon();
  }

  #inNextTurn(task: () => void): void {
    const turn = setImmediate(task);
    this.#cancelNext = () => clearImmediate(turn);
  }
}
