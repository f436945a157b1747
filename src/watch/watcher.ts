/**
 * One open watch. It first sends the present state, if the client requested that. Then it enters
 * the stream of changes after its position. `CatchUp` offers it encoded pieces while it is behind,
 * the hub once it is live.
 *
 *   revision ──────┬───────────────┬────────────▶
 *        start ────┘  catching up  └─ live
 *
 * W1 No hole: no change of the watch lies between two pieces.
 * W2 No repeat: each revision is sent at most once.
 * W3 At most `queueBytesMax` wait. With one piece more, the watch leaves the stream, and enters it
 *    again at its position once it has memory. The watch gets 410 only below the compacted
 *    revision, and by W11 of fan-out.ts.
 * W4 A bookmark never overtakes an event.
 * W12 A client that resumes at a revision of several changes is sent all of them again, because it
 *    may have only some. It gets 410 if they have been compacted.
 *
 *   offered ─▶ queue ─┬─▶ its sink         if live, the reader has taken all and the sink has room:
 *                     │                    the hub writes
 *                     └─▶ the iterator     otherwise; once the client has taken all, the hub writes
 *
 * One piece handed out has at most `pieceBytesMax`, so a client that never reads occupies no more.
 */
import { Refused, type Refusal } from '../domain/errors.js';
import type { ListEncoding, OpenWatch, Representation, Snapshots, WatchRequest, WatchStart } from '../domain/ports.js';
import type { History, Objects, Revisions } from '../domain/store-port.js';
import type { Revision } from '../domain/revision.js';
import { withMemory, type MemoryReservation } from '../domain/base/memory-reservation.js';
import { RevisionTooLarge, type Piece, type Receiver } from './fan-out.js';
import { removedSince } from './removed-since.js';
import type { Pace } from '../domain/base/pace.js';

/**
 * `readBytesMax`: how large one page of the initial state may get, including its last, largest
 * object.
 */
export type WatcherLimits = Readonly<{ queueBytesMax: number; pieceBytesMax: number; readBytesMax: number }>;

export interface ChangeStream {
  /** From this call on, the stream offers the watcher every change after `after`. */
  enter(watcher: Watcher, after: Revision): void;
  /** Returns true if the watcher was live. */
  leave(watcher: Watcher): boolean;
  /** Offers a live watcher everything published. */
  flush(watcher: Watcher): void;
  /**
   * The revision up to which a live watcher was offered everything; undefined if it is not live.
   */
  reached(watcher: Watcher): Revision | undefined;
  /** Called when the watcher's queue is empty and its reader waits. */
  drained(watcher: Watcher): void;
  /**
   * Schedules a call of `write` in a later turn of the event loop. Returns false if the watcher is
   * not live.
   */
  writeSoon(watcher: Watcher): boolean;
}

/** What all watchers of a hub share. */
export type WatcherContext = Readonly<{
  revisions: Revisions;
  history: History;
  objects: Objects;
  snapshots: Snapshots;
  /** Spreads watchers that are offered a piece at the same time over several turns. */
  pace: Pace;
  /**
   * `fellBack`: a live watcher fell back to the change log. `sent`: a watcher was offered that many
   * events.
   */
  observe: Readonly<{ fellBack: () => void; sent: (events: number) => void }>;
}>;

type WatcherParts = WatcherContext & Readonly<{ stream: ChangeStream }>;

type InitialStart = Extract<WatchStart, { kind: 'initial' }>;

/**
 * The least cost of writing to a socket, or of ending a watch, in bytes: 64 such steps fit into a
 * turn of one MiB.
 */
const deliveryBytesMin = 16 * 1024;
/**
 * A longer queue goes out in parts, so that the connection notices whether its reader receives
 * anything.
 */
const writtenBytesMax = 256 * 1024;

export class Watcher implements OpenWatch, Receiver {
  readonly request: WatchRequest;
  readonly #parts: WatcherParts;
  readonly #limits: WatcherLimits;
  #queue: Piece[] = [];
  #queuedBytes = 0;
  /**
   * Everything up to here has been handed out or does not concern the watch. Valid only while the
   * watcher is not in the stream.
   */
  #position: Revision = 0;
  #isInStream = false;
  /** The bytes of the piece that found no memory, and the memory reserved for it since. */
  #wantedBytes = 0;
  #reservedBytes = 0;
  #ended = false;
  #why: Refusal | undefined;
  #isAbandoned = false;
  #fault: unknown;
  #wake: () => void = () => {};
  /**
   * Whether the queue is empty and the reader waits for more. The hub writes to the sink only then.
   */
  #isDrained = false;

  constructor(request: WatchRequest, parts: WatcherParts, limits: WatcherLimits) {
    this.request = request;
    this.#parts = parts;
    this.#limits = limits;
  }

  get hasMuch(): boolean {
    return this.#queuedBytes > this.#limits.pieceBytesMax;
  }

  /** Offers encoded changes of this watcher's view, in ascending order. */
  offer(piece: Piece): void {
    const { length } = piece.bytes;
    if (this.#queuedBytes + length > this.#limits.queueBytesMax && this.#queue.length > 0) return this.fallBack(piece.after);
    if (!this.#reserveMemory(length)) {
      this.#wantedBytes = length;
      return this.fallBack(piece.after);
    }
    this.#queue.push(piece);
    this.#queuedBytes += length;
    this.#parts.observe.sent(piece.events);
    // Only the first piece wakes the consumer, which then reads all pieces.
    if (this.#queue.length === 1 && !(this.#isDrained && this.#parts.stream.writeSoon(this))) this.#wake();
  }

  /**
   * Writes the queue to the sink and returns the cost in bytes. If the queue is long or the sink is
   * full, wakes the iterator instead, which hands the queue out.
   */
  write(): number {
    if (!this.#isDrained || this.#queue.length === 0) return 0;
    const { sink } = this.request;
    if (this.#queuedBytes > writtenBytesMax || this.hasMuch || sink.isFull) {
      this.#wake();
      return 0;
    }
    const pieces = this.#take();
    sink.writeNow(pieces.map(({ bytes }) => bytes));
    return Math.max(deliveryBytesMin, sum(pieces));
  }

  fallBack(after: Revision, fault?: unknown): void {
    const wasLive = this.#parts.stream.leave(this);
    this.#isInStream = false;
    this.#position = this.#queue[0]?.after ?? after;
    this.#dropQueue();
    if (!wasLive) this.#fault = fault;
    // An abandoned watcher finds no memory although it is not slow.
    else if (!this.#isAbandoned) this.#parts.observe.fellBack();
    this.#wake();
  }

  /**
   * Called when the cohort reads on without this slow watcher, which enters again once its queue is
   * empty.
   */
  onRemovedAsSlow(): void {
    this.#isInStream = false;
    this.#wake();
  }

  /**
   * Sends a bookmark with the revision up to which this watcher was offered everything; none while
   * it is catching up.
   */
  bookmark(): void {
    const reached = this.#parts.stream.reached(this);
    if (reached === undefined) return;
    const bytes = this.request.representation.bookmark(this.#parts.revisions.format(reached), false);
    this.offer({ bytes, events: 0, after: reached, upTo: reached });
  }

  /**
   * Ends the stream after everything published. With `why`, ends it at once: the queue is dropped,
   * and `why` is the last event.
   */
  end(why?: Refusal): void {
    this.#why ??= why;
    if (why === undefined) this.#parts.stream.flush(this);
    else {
      this.#parts.stream.leave(this);
      this.#isInStream = false;
      this.#dropQueue();
    }
    this.#ended = true;
    this.#wake();
  }

  abandon(): void {
    this.#isAbandoned = true;
    void this.#parts.pace.turn(deliveryBytesMin).then(() => this.end());
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly Uint8Array[]> {
    const { start, representation } = this.request;
    try {
      if (start.kind === 'initial') yield* this.#initial(start);
      else this.#position = this.#resumed(start.revision);
      yield* this.#follow();
      if (this.#why !== undefined) throw new Refused(this.#why);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      yield this.#direct(representation.error(error.refusal));
    } finally {
      this.#parts.stream.leave(this);
      this.#dropQueue();
      this.request.memory.release(this.#reservedBytes);
    }
  }

  /**
   * If the watch ends before the last page of the initial state, it sends nothing more: after a
   * bookmark or an event, the client would resume with a hole.
   */
  async *#initial({ endsWithBookmark, forgetSince }: InitialStart): AsyncGenerator<readonly Uint8Array[]> {
    const { scope, selector, representation, memory } = this.request;
    const { revisions, snapshots } = this.#parts;
    const { revision: at, chunks } = await snapshots.present(scope, selector, addedBy(representation));
    const untilEnded: Pick<MemoryReservation, 'reserve' | 'add' | 'release'> = {
      reserve: (bytes) => this.#reserveUnlessEnded(bytes),
      add: (bytes) => memory.add(bytes),
      release: (bytes) => memory.release(bytes),
    };
    for await (const bytes of withMemory(chunks, untilEnded, this.#limits.readBytesMax)) if (bytes.length > 0) yield [bytes];
    if (this.#ended) return;
    if (endsWithBookmark) yield this.#direct(representation.bookmark(revisions.format(at), true));
    // Even an ended watch sends all of these, because the client has the bookmark and would miss
    // the rest.
    const forgotten = forgetSince === undefined ? [] : removedSince(this.request, { since: this.#resumed(forgetSince), at }, this.#parts);
    for await (const keys of forgotten) yield this.#direct(representation.forgotten(keys, revisions.format(at)));
    this.#position = at;
  }

  async *#follow(): AsyncGenerator<readonly Uint8Array[]> {
    for (;;) {
      const pieces = this.#take();
      if (pieces.length > 0) {
        await this.#parts.pace.turn(Math.max(deliveryBytesMin, sum(pieces)));
        yield pieces.map(({ bytes }) => bytes);
      } else if (this.#fault !== undefined) this.#skipOrThrow(this.#fault);
      else if (this.#ended) return;
      else if (this.#isInStream) {
        const woken = new Promise<void>((resolve) => {
          this.#isDrained = true;
          this.#wake = () => {
            this.#isDrained = false;
            resolve();
          };
        });
        this.#parts.stream.drained(this);
        await woken;
      } else if (await this.#hasMemory()) {
        this.#isInStream = true;
        this.#parts.stream.enter(this, this.#position);
      } else return;
    }
  }

  /** The position of a client that resumes at `revision` (W12). */
  #resumed(revision: Revision): Revision {
    return this.#parts.history.hasSeveral(this.request.scope, revision) ? revision - 1 : revision;
  }

  /**
   * A revision that is too large (W11) is never sent in part. So a client that names such a
   * revision has all of it, from a list or a bookmark. The watch continues after that revision.
   */
  #skipOrThrow(fault: unknown): void {
    const named = this.request.start.kind === 'after' ? this.request.start.revision : 0;
    if (!(fault instanceof RevisionTooLarge) || this.#position >= named) throw fault;
    [this.#fault, this.#position] = [undefined, named];
  }

  /**
   * Waits for the missing memory, and occupies no other meanwhile. Returns false if the exchange or
   * the watch has ended.
   */
  async #hasMemory(): Promise<boolean> {
    const wanted = this.#wantedBytes;
    this.#wantedBytes = 0;
    if (wanted === 0) return true;
    const isTaken = await this.#reserveUnlessEnded(wanted);
    if (isTaken) this.#reservedBytes = wanted;
    return isTaken;
  }

  async #reserveUnlessEnded(bytes: number): Promise<boolean> {
    if (this.#ended) return false;
    const { memory } = this.request;
    const taking = memory.reserve(bytes);
    const ended = new Promise<'ended'>((resolve) => (this.#wake = () => resolve('ended')));
    const first = await Promise.race([taking, ended]);
    if (first === 'ended') void taking.then((isTaken) => isTaken && memory.release(bytes));
    return first === true;
  }

  /**
   * Uses the memory reserved before, and releases the surplus; releases all of it if the bytes do
   * not fit.
   */
  #reserveMemory(bytes: number): boolean {
    const { memory } = this.request;
    const reserved = this.#reservedBytes;
    this.#reservedBytes = 0;
    const fits = bytes <= reserved || memory.tryReserve(bytes - reserved);
    memory.release(fits ? Math.max(0, reserved - bytes) : reserved);
    return fits;
  }

  /** A small piece that is sent even without memory. */
  #direct(bytes: Uint8Array): readonly Uint8Array[] {
    this.request.memory.add(bytes.length);
    return [bytes];
  }

  #dropQueue(): void {
    this.request.memory.release(this.#queuedBytes);
    this.#queue = [];
    this.#queuedBytes = 0;
  }

  #take(): readonly Piece[] {
    let bytes = 0;
    let count = 0;
    for (const piece of this.#queue) {
      if (count > 0 && bytes + piece.bytes.length > this.#limits.pieceBytesMax) break;
      bytes += piece.bytes.length;
      count += 1;
    }
    this.#queuedBytes -= bytes;
    const taken = this.#queue.splice(0, count);
    this.#position = taken.at(-1)?.upTo ?? this.#position;
    return taken;
  }
}

function sum(pieces: readonly Piece[]): number {
  return pieces.reduce((bytes, piece) => bytes + piece.bytes.length, 0);
}

function addedBy(representation: Representation): ListEncoding {
  return {
    id: `watch ${representation.id}`,
    ...(representation.isOwn && { isOwn: true }),
    encode: (objects) =>
      representation.events(objects.map((object) => ({ type: 'ADDED', object, resourceVersion: object.resourceVersion }))),
  };
}
