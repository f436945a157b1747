/**
 * The present state of a view, as encoded pages that readers share until an object of the view's
 * type changes. So informers that start at about the same time cost one reading and one encoding.
 *
 *   informer 1 ──page 1──page 2──page 3──▶        the first at a page reads and encodes it; from
 *   informer 2 ──────────page 1──page 2──▶        the second reader on, pages are kept
 *   informer 3                                 ──page 1──page 2──▶   within `keptMs` of the last
 *
 * Every reader has a snapshot at its own revision, so a slow reader delays compaction only from
 * that revision on. Most views, such as those of one logical cluster, are read by one reader now
 * and then. Their pages are not kept, so they evict no pages that others share.
 *
 * Bounds: `sharedBytesMax` of encoded pages over all views; the oldest are evicted first. A view
 * without readers is kept for `keptMs`. Of such views with less than `keptBytesMin` of pages, at
 * most `idleViewsMax` are kept. Before every page, a reader waits for its turn of the event loop
 * (pace.ts).
 */
import { isSelected } from '../domain/object-metadata.js';
import { formatKey, type Key } from '../domain/key.js';
import type { Clock, ListEncoding, PresentState, Snapshots } from '../domain/ports.js';
import type { Objects, Revisions, Snapshot } from '../domain/store-port.js';
import type { Revision } from '../domain/revision.js';
import { formatScope, type Scope } from '../domain/scope.js';
import { formatSelector, type Selector } from '../domain/syntax/selector.js';
import type { Pace } from '../domain/base/pace.js';
import { SharedStarts } from './shared-starts.js';

/**
 * How many pages with `isRead` are sent in one turn. Reading and selecting take time even if
 * nothing on a page is shown.
 */
const pagesReadInTurnMax = 4;
const keptMs = 10_000;
const idleViewsMax = 500;
const keptBytesMin = 64 * 1024;

/** `isRead`: this reader read the page itself, and did not get it from another reader. */
type Page = Readonly<{ bytes: Uint8Array; next: Key | undefined; isRead: boolean }>;

/** The pages of a view at one state. `state` is the revision of the newest change of its type. */
type Shared = {
  readonly view: string;
  readonly state: Revision;
  readonly pages: Map<string, Promise<Page>>;
  readers: number;
  bytes: number;
  /** Whether a second reader has joined; without one, no page is kept. */
  isReadAgain: boolean;
  /**
   * Whether the view's later pages have evicted its first ones, so that a new reader can share
   * little. If so, no further pages are kept while the view has a single reader.
   */
  isTooLong: boolean;
  cancelEnd: () => void;
};

export type SharedSnapshotsParts = Readonly<{
  objects: Pick<Objects, 'snapshot'>;
  revisions: Pick<Revisions, 'published'>;
  clock: Pick<Clock, 'after'>;
  pace: Pace;
  /** The revision of the newest change published to any type of the scope, or a later one. */
  changedAt: (scope: Scope) => Revision;
}>;

export class SharedSnapshots implements Snapshots {
  readonly #parts: SharedSnapshotsParts;
  readonly #starts: SharedStarts;
  readonly #sharedBytesMax: number;
  readonly #onShared: (chunks: number) => void;
  /** By view, then by state. */
  readonly #open = new Map<string, Map<Revision, Shared>>();
  /** States without readers that keep less than `keptBytesMin`, the oldest first. */
  readonly #idle = new Set<Shared>();
  /** Every kept page, the oldest first. */
  readonly #kept = new Map<Promise<Page>, Readonly<{ shared: Shared; at: string; bytes: number }>>();
  #keptBytes = 0;
  #isClosed = false;

  constructor(parts: SharedSnapshotsParts, limits: { sharedBytesMax: number }, onShared: (chunks: number) => void) {
    this.#parts = parts;
    this.#starts = new SharedStarts(parts);
    this.#sharedBytesMax = limits.sharedBytesMax;
    this.#onShared = onShared;
  }

  async present(scope: Scope, selector: Selector, encoding: ListEncoding): Promise<PresentState> {
    const { revisions, changedAt } = this.#parts;
    const view = formatView(scope, selector, encoding);
    const revision = encoding.isOwn ? revisions.published : await this.#starts.start(view, changedAt(scope));
    return { revision, chunks: this.chunks(scope, selector, revision, encoding) };
  }

  async *chunks(scope: Scope, selector: Selector, revision: Revision, encoding: ListEncoding): AsyncGenerator<Uint8Array> {
    const { objects, pace, changedAt } = this.#parts;
    const snapshot = objects.snapshot(scope, revision);
    const view = formatView(scope, selector, encoding);
    const shared = encoding.isOwn ? undefined : this.#join(view, Math.min(revision, changedAt(scope)));
    const readFrom = (after: Key | undefined): Promise<Page> => read(snapshot, after, selector, encoding);
    try {
      let after: Key | undefined;
      do {
        const page = await (shared === undefined ? readFrom(after) : this.#page(shared, after, readFrom));
        await pace.turn(page.isRead ? Math.max(page.bytes.length, pace.bytesMax / pagesReadInTurnMax) : page.bytes.length);
        yield page.bytes;
        after = page.next;
      } while (after !== undefined);
    } finally {
      if (shared !== undefined) this.#leave(shared);
      snapshot.close();
    }
  }

  /** Drops all pages that have no reader, and keeps none for later readers. */
  close(): void {
    this.#isClosed = true;
    for (const states of this.#open.values()) for (const shared of states.values()) if (shared.readers === 0) this.#end(shared);
  }

  #join(view: string, state: Revision): Shared {
    const states = this.#open.get(view) ?? new Map<Revision, Shared>();
    // Drop older states without readers: the next reader usually needs this state or a later one.
    for (const other of states.values()) if (other.readers === 0 && other.state < state) this.#end(other);
    const known = states.get(state);
    const shared = known ?? {
      view,
      state,
      pages: new Map(),
      readers: 0,
      bytes: 0,
      isReadAgain: false,
      isTooLong: false,
      cancelEnd: () => {},
    };
    shared.isReadAgain = known !== undefined;
    shared.cancelEnd();
    this.#idle.delete(shared);
    shared.readers += 1;
    this.#open.set(view, states.set(state, shared));
    return shared;
  }

  #leave(shared: Shared): void {
    shared.readers -= 1;
    if (shared.readers > 0) return;
    const states = [...(this.#open.get(shared.view)?.values() ?? [])];
    if (states.every(({ readers }) => readers === 0)) this.#starts.end(shared.view);
    if (this.#isClosed) return this.#end(shared);
    shared.cancelEnd = this.#parts.clock.after(keptMs, () => this.#end(shared));
    this.#addIfIdle(shared);
    for (const oldest of this.#idle) {
      if (this.#idle.size <= idleViewsMax) break;
      this.#end(oldest);
    }
  }

  #addIfIdle(shared: Shared): void {
    if (shared.readers === 0 && shared.bytes < keptBytesMin) this.#idle.add(shared);
  }

  #end(shared: Shared): void {
    shared.cancelEnd();
    for (const page of shared.pages.values()) this.#forget(page);
    shared.pages.clear();
    this.#idle.delete(shared);
    const states = this.#open.get(shared.view);
    states?.delete(shared.state);
    if (states?.size === 0) this.#open.delete(shared.view);
  }

  /**
   * Returns another reader's page. If that reader failed, perhaps because of its snapshot, this
   * reader reads the page itself.
   */
  async #page(shared: Shared, after: Key | undefined, readFrom: (after: Key | undefined) => Promise<Page>): Promise<Page> {
    const at = after === undefined ? '' : formatKey(after);
    for (let known = shared.pages.get(at); known !== undefined; known = shared.pages.get(at)) {
      const page = await known.catch(() => undefined);
      if (page === undefined) continue;
      this.#onShared(1);
      return { ...page, isRead: false };
    }
    const page = readFrom(after);
    shared.pages.set(at, page);
    void page.then(
      ({ bytes }) => this.#keep(page, { shared, at, bytes: bytes.length }),
      () => void (shared.pages.get(at) === page && shared.pages.delete(at)),
    );
    return page;
  }

  #keep(page: Promise<Page>, kept: Readonly<{ shared: Shared; at: string; bytes: number }>): void {
    const { shared, at, bytes } = kept;
    if (shared.pages.get(at) !== page) return;
    if (!shared.isReadAgain || (shared.isTooLong && shared.readers === 1)) return void shared.pages.delete(at);
    this.#kept.set(page, kept);
    this.#keptBytes += bytes;
    shared.bytes += bytes;
    for (const [oldest, { shared: other }] of this.#kept) {
      if (this.#keptBytes <= this.#sharedBytesMax) break;
      shared.isTooLong ||= other === shared;
      this.#forget(oldest);
    }
  }

  #forget(page: Promise<Page>): void {
    const kept = this.#kept.get(page);
    if (kept === undefined) return;
    kept.shared.pages.delete(kept.at);
    kept.shared.bytes -= kept.bytes;
    this.#addIfIdle(kept.shared);
    this.#kept.delete(page);
    this.#keptBytes -= kept.bytes;
  }
}

/** Readers with the same text get the same bytes at one revision. */
function formatView(scope: Scope, selector: Selector, encoding: ListEncoding): string {
  return [encoding.id, formatScope(scope), formatSelector(selector)].join('\n');
}

async function read(snapshot: Snapshot, after: Key | undefined, selector: Selector, encoding: ListEncoding): Promise<Page> {
  const { objects, next } = await snapshot.page(after);
  const selected = objects.filter((object) => isSelected(object, selector));
  return { bytes: selected.length === 0 ? new Uint8Array(0) : encoding.encode(selected), next, isRead: true };
}
