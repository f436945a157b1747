/**
 * Carries what is published to the open watches. One pass over a commit matches each change to groups of watchers that
 * see the same bytes; each group's events are encoded once (D5).
 *
 *
 *   commit ─▶ quiet until now: at once          What concerns a group is collected for `flushIntervalMs` at most, so that a
 *   commit ─┐                                   flood of small commits becomes a few writes to each socket. Whoever joins,
 *   commit ─┴▶ together, a little later         ends or gets a bookmark has everything handed out first (W2, W4).
 *
 * Bookmarks go to every live watch each `bookmarkIntervalMs`, and `bookmarkBeforeEndMs` before its time is up (S12).
 */
import type { Change, Commit } from '../domain/change.js';
import type { Clock, Commits, EventItem, OpenWatch, Subscription, Watches, WatchRequest } from '../domain/ports.js';
import type { Resource } from '../domain/resource.js';
import type { Revision } from '../domain/revision.js';
import { eventOf } from './event-of.js';
import { ScopeIndex, type Group } from './scope-index.js';
import { Watcher, type WatcherLimits, type WatcherParts } from './watcher.js';

export type HubLimits = WatcherLimits & Readonly<{ bookmarkIntervalMs: number; flushIntervalMs: number }>;

export type HubParts = Omit<WatcherParts, 'live'> & Readonly<{ clock: Clock; commits: Commits }>;

const bookmarkBeforeEndMs = 2000;

export class Hub implements Watches {
  readonly #parts: HubParts;
  readonly #limits: HubLimits;
  readonly #index = new ScopeIndex<Watcher>();
  readonly #open = new Set<Watcher>();
  readonly #subscription: Subscription;
  /** Changes on their way to groups, and the revision they go up to. */
  #pending = new Map<Group<Watcher>, Change[]>();
  #pendingRevision: Revision = 0;
  #flushedMs = -Infinity;
  #cancelFlush: (() => void) | undefined;
  #ending = false;

  constructor(parts: HubParts, limits: HubLimits) {
    this.#parts = parts;
    this.#limits = limits;
    this.#subscription = parts.commits.subscribe((commit) => this.#publish(commit));
  }

  get openWatches(): number {
    return this.#open.size;
  }

  open(request: WatchRequest): OpenWatch {
    const live = {
      join: (watcher: Watcher) => {
        this.#flush();
        this.#index.join(request, watcher);
      },
      flush: () => this.#flush(),
      leave: (watcher: Watcher) => this.#index.leave(request, watcher),
    };
    const watcher = new Watcher(request, { ...this.#parts, live }, this.#limits);
    if (this.#ending) watcher.end();
    return { end: () => watcher.end(), [Symbol.asyncIterator]: () => this.#run(watcher) };
  }

  endOf({ group, resource, identity }: Resource): void {
    for (const watcher of this.#open) {
      const { scope } = watcher.request;
      if (scope.group === group && scope.resource === resource && scope.identity === identity) watcher.end();
    }
  }

  /** Ends every watch, cleanly, and from now on each that opens. */
  endAll(): void {
    this.#ending = true;
    for (const watcher of this.#open) watcher.end();
  }

  close(): void {
    this.#subscription.cancel();
    this.endAll();
    this.#cancelFlush?.();
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

  #publish(commit: Commit): void {
    for (const change of commit.changes) {
      for (const group of this.#index.covering(change.key)) {
        const changes = this.#pending.get(group);
        if (changes === undefined) this.#pending.set(group, [change]);
        else changes.push(change);
      }
    }
    this.#pendingRevision = commit.revision;
    if (this.#pending.size === 0 || this.#cancelFlush !== undefined) return;
    const waitMs = this.#flushedMs + this.#limits.flushIntervalMs - this.#parts.clock.now();
    if (waitMs <= 0) this.#flush();
    else this.#cancelFlush = this.#parts.clock.after(waitMs, () => this.#flush());
  }

  #flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    if (this.#pending.size === 0) return;
    const pending = this.#pending;
    this.#pending = new Map();
    for (const [group, changes] of pending) offer(group, changes, this.#pendingRevision);
    this.#flushedMs = this.#parts.clock.now();
  }
}

/**
 * What cannot be encoded must not stop the commit that is being published. Its watchers read it again from the change log,
 * where each meets the fault in its own request.
 */
function offer({ selector, representation, members }: Group<Watcher>, changes: readonly Change[], revision: Revision): void {
  try {
    const items = changes.map((change) => eventOf(change, selector)).filter((item): item is EventItem => item !== undefined);
    if (items.length === 0) return;
    const bytes = representation.events(items);
    for (const watcher of members) watcher.offer(bytes, items.length, revision);
  } catch {
    for (const watcher of members) watcher.fallBack();
  }
}
