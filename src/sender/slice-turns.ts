/**
 * Decides which slice a connection serves next. To serve a slice is to send one of its frames, or
 * to open or read its source.
 *
 *  slice changes ─▶ in line, once ─▶ first ─▶ served ─▶ out, until the slice changes again
 *                      └──── more to send ◀─────┘
 *
 * N1 A source is read only while there is credit, so a slow cache stops its sources.
 * N2 Slices take turns, one frame each. A batch that lacks credit keeps its turn until there is
 *    enough; otherwise smaller batches would always overtake it.
 * N3 The cost of a turn does not grow with the number of slices.
 */
import type { FrameConnection } from '../frames/frame-connection.js';
import type { FrameLimits } from '../frames/frame.js';
import type { SenderBounds } from './sender-options.js';
import type { SliceFeed } from './slice-feed.js';
import { Turns } from '../domain/base/queues.js';
import type { Window } from './window.js';

export type SliceTurnsParts = Readonly<{
  feeds: ReadonlyMap<string, SliceFeed>;
  connection: Pick<FrameConnection, 'send'>;
  cacheId: string;
  limits: FrameLimits;
  window: Window<SliceFeed>;
}>;

export class SliceTurns {
  readonly #parts: SliceTurnsParts;
  readonly #bounds: Pick<SenderBounds, 'batchMutationsMax' | 'batchBytesMax'>;
  readonly #line = new Turns<SliceFeed>();
  /**
   * Slices whose sources are opened only once another slice is synced, by the text of that slice.
   */
  readonly #waiting = new Map<string, Set<SliceFeed>>();

  constructor(parts: SliceTurnsParts, bounds: Pick<SenderBounds, 'batchMutationsMax' | 'batchBytesMax'>) {
    this.#parts = parts;
    this.#bounds = bounds;
  }

  /** Queues the slice, because there may be work for it. */
  add(feed: SliceFeed): void {
    this.#line.add(feed);
  }

  /** Queues the slices that waited for the slice `name`, which was synced or withdrawn. */
  wake(name: string): void {
    for (const feed of this.#waiting.get(name) ?? []) this.#line.add(feed);
    this.#waiting.delete(name);
  }

  /**
   * Serves the first slice in line. Returns false if nothing can be done until something changes.
   */
  serveNext(): boolean {
    const { window } = this.#parts;
    const feed = this.#line.first;
    if (feed === undefined || !window.hasCredit) return false;
    if (feed.hasPending && !this.#send(feed)) return false;
    this.#line.next();
    if (feed.mayOpen) this.#open(feed);
    if (feed.hasPending || (feed.mayRead && !window.hasCredit)) this.#line.add(feed);
    else if (feed.mayRead) feed.read();
    return true;
  }

  #open(feed: SliceFeed): void {
    const { feeds, cacheId } = this.#parts;
    if (feeds.get(feed.name) !== feed) return;
    const first = feed.after === undefined ? undefined : feeds.get(feed.after);
    if (first === undefined || first.syncedAt === cacheId) return feed.open();
    const waiting = this.#waiting.get(first.name) ?? new Set();
    this.#waiting.set(first.name, waiting.add(feed));
  }

  #send(feed: SliceFeed): boolean {
    const { connection, limits, window } = this.#parts;
    const batch = feed.cut({
      mutationsMax: Math.min(this.#bounds.batchMutationsMax, window.credit.mutations),
      bytesMax: Math.min(this.#bounds.batchBytesMax, window.credit.bytes),
      limits,
    });
    if (!window.fits(batch.sent.length, batch.bytes)) return false;
    const frame = feed.send(batch, (sent) => window.add(feed, sent));
    if (frame !== undefined) connection.send(frame);
    return true;
  }
}
