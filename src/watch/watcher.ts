/**
 * One open watch. It first sends the present state, if it was asked to. Then it enters the stream of changes after its position, which offers it
 * encoded pieces: from `CatchUp` while it is behind, from the hub once it is live.
 *
 *   revision ──────┬───────────────┬────────────▶        W1 No hole: each piece begins where the one before it ends, or nothing of the watch
 *        start ────┘  catching up  └─ live                  lies between.
 *                                                        W2 No repeat: a revision is sent at most once.
 *                                                        W3 At most `queueBytesMax` wait; one more ⇒ it leaves the stream, and enters it
 *                                                           again at its position once it has room. 410 only below the compacted revision, and by W11 of fan-out.ts.
 *                                                        W4 A bookmark never overtakes an event.
 *                                                        W12 A client that names a revision of several changes gets all: it may have some. 410 if they have been compacted.
 *
 *   offered ─▶ queue ─┬─▶ its sink                   live, all before it is handed out, the sink is not full: written by the hub, in its turn
 *                     └─▶ whoever reads the watch    otherwise; reading on waits for the client, and then the sink has its turn again
 *
 * What it hands out at once is at most `pieceBytesMax`, so that a client which never reads holds no more.
 */
import { Refused, type Refusal } from '../domain/errors.js';
import type { ListEncoding, OpenWatch, Representation, Snapshots, WatchRequest, WatchStart } from '../domain/ports.js';
import type { History, Objects, Revisions } from '../domain/store-port.js';
import type { Revision } from '../domain/revision.js';
import { withRoom, type Room } from '../domain/room.js';
import { RevisionTooLarge, type Piece, type Receiver } from './fan-out.js';
import { goneSince } from './gone-since.js';
import type { Pace } from '../domain/pace.js';

/** `readBytesMax`: how large one piece that is read may get, with the largest object at its end. */
export type WatcherLimits = Readonly<{ queueBytesMax: number; pieceBytesMax: number; readBytesMax: number }>;

/** The stream of changes, as one watcher sees it. */
export interface ChangeStream {
  /** From now on the watcher is offered what comes after `after`. */
  enter(watcher: Watcher, after: Revision): void;
  /** True when it was live. */
  leave(watcher: Watcher): boolean;
  /** Offers a live watcher all that is published. */
  flush(watcher: Watcher): void;
  /** Up to where a live watcher was offered everything; undefined when it is not live. */
  reached(watcher: Watcher): Revision | undefined;
  /** The watcher has handed out all that it was offered. */
  drained(watcher: Watcher): void;
  /** Calls `write` soon, in a turn of the event loop that has time for it. False when the watcher is not live. */
  writeSoon(watcher: Watcher): boolean;
}

export type WatcherParts = Readonly<{
  stream: ChangeStream;
  revisions: Revisions;
  history: History;
  objects: Objects;
  snapshots: Snapshots;
  /** Lets watchers that are offered something at the same time hand it out in turns. */
  pace: Pace;
  /** Called when a live watcher falls back to the change log, and with how many events it has been given. */
  observe: Readonly<{ fellBack: () => void; sent: (events: number) => void }>;
}>;

type InitialStart = Extract<WatchStart, { kind: 'initial' }>;

/** What writing to a watcher's socket costs, or ending it, as bytes: 64 of them share a turn of a mebibyte. */
const handOutBytesMin = 16 * 1024;
/** What is more goes out in parts, so that it is noticed whether its reader takes any. */
const writtenBytesMax = 256 * 1024;

export class Watcher implements OpenWatch, Receiver {
  readonly request: WatchRequest;
  readonly #parts: WatcherParts;
  readonly #limits: WatcherLimits;
  #queue: Piece[] = [];
  #queuedBytes = 0;
  /** Everything up to here has been handed out, or does not concern the watch. Known while it is not in the stream. */
  #position: Revision = 0;
  #isInStream = false;
  /** Bytes of the piece that found no room, and of the room that was waited for. */
  #wantedBytes = 0;
  #reservedBytes = 0;
  #ended = false;
  #why: Refusal | undefined;
  #isAbandoned = false;
  #fault: unknown;
  #wake: () => void = () => {};
  /** Whether all it had is handed out and its reader asks for more: only then the sink may be written to. */
  #isDrained = false;

  constructor(request: WatchRequest, parts: WatcherParts, limits: WatcherLimits) {
    this.request = request;
    this.#parts = parts;
    this.#limits = limits;
  }

  get hasMuch(): boolean {
    return this.#queuedBytes > this.#limits.pieceBytesMax;
  }

  /** Offers encoded changes that concern this watcher. Called in rising order. */
  offer(piece: Piece): void {
    const { length } = piece.bytes;
    if (this.#queuedBytes + length > this.#limits.queueBytesMax && this.#queue.length > 0) return this.fallBack(piece.after);
    if (!this.#takeRoom(length)) {
      this.#wantedBytes = length;
      return this.fallBack(piece.after);
    }
    this.#queue.push(piece);
    this.#queuedBytes += length;
    this.#parts.observe.sent(piece.events);
    // Whoever hands out the first of them hands out those behind it, too.
    if (this.#queue.length === 1 && !(this.#isDrained && this.#parts.stream.writeSoon(this))) this.#wake();
  }

  /** Writes what is queued to its sink; returns what that costs, as bytes. What is much, or finds the sink full, is left to whoever reads the watch. */
  write(): number {
    if (!this.#isDrained || this.#queue.length === 0) return 0;
    const { sink } = this.request;
    if (this.#queuedBytes > writtenBytesMax || this.hasMuch || sink.isFull) {
      this.#wake();
      return 0;
    }
    const pieces = this.#take();
    sink.writeNow(pieces.map(({ bytes }) => bytes));
    return Math.max(handOutBytesMin, sum(pieces));
  }

  fallBack(after: Revision, fault?: unknown): void {
    const wasLive = this.#parts.stream.leave(this);
    this.#isInStream = false;
    this.#position = this.#queue[0]?.after ?? after;
    this.#dropQueue();
    if (!wasLive) this.#fault = fault;
    // An abandoned one finds no room, and is not slow.
    else if (!this.#isAbandoned) this.#parts.observe.fellBack();
    this.#wake();
  }

  /** Others read on without it, because it was too slow. It asks for more when it has taken what it was offered. */
  leftBehind(): void {
    this.#isInStream = false;
    this.#wake();
  }

  /** Marks how far what it was offered reaches. A watcher that is still catching up gets none. */
  bookmark(): void {
    const reached = this.#parts.stream.reached(this);
    if (reached === undefined) return;
    const bytes = this.request.representation.bookmark(this.#parts.revisions.format(reached), false);
    this.offer({ bytes, events: 0, after: reached, upTo: reached });
  }

  /** Ends the stream after what is published. With `why`, which is its last event then, at once: what it has not handed out by now is for nobody. */
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
    void this.#parts.pace.turn(handOutBytesMin).then(() => this.end());
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
      this.request.room.give(this.#reservedBytes);
    }
  }

  /** Stops half way when the watch was ended: what would follow must not be sent then, or the client would resume after a hole. */
  async *#initial({ endsWithBookmark, forgetSince }: InitialStart): AsyncGenerator<readonly Uint8Array[]> {
    const { scope, selector, representation, room } = this.request;
    const { revisions, snapshots } = this.#parts;
    const { revision: at, chunks } = await snapshots.present(scope, selector, addedBy(representation));
    const untilEnded: Pick<Room, 'take' | 'add' | 'give'> = {
      take: (bytes) => this.#takeUnlessEnded(bytes),
      add: (bytes) => room.add(bytes),
      give: (bytes) => room.give(bytes),
    };
    for await (const bytes of withRoom(chunks, untilEnded, this.#limits.readBytesMax)) if (bytes.length > 0) yield [bytes];
    if (this.#ended) return;
    if (endsWithBookmark) yield this.#direct(representation.bookmark(revisions.format(at), true));
    // An end waits for the last of them, because the client would resume from the bookmark.
    const forgotten = forgetSince === undefined ? [] : goneSince(this.request, { since: this.#resumed(forgetSince), at }, this.#parts);
    for await (const keys of forgotten) yield this.#direct(representation.forgotten(keys, revisions.format(at)));
    this.#position = at;
  }

  /** Hands out what is queued as it comes, until the watch ends. */
  async *#follow(): AsyncGenerator<readonly Uint8Array[]> {
    for (;;) {
      const pieces = this.#take();
      if (pieces.length > 0) {
        await this.#parts.pace.turn(Math.max(handOutBytesMin, sum(pieces)));
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
      } else if (await this.#hasRoom()) {
        this.#isInStream = true;
        this.#parts.stream.enter(this, this.#position);
      } else return;
    }
  }

  /** Where a client goes on that names a revision (W12). */
  #resumed(revision: Revision): Revision {
    return this.#parts.history.hasSeveral(this.request.scope, revision) ? revision - 1 : revision;
  }

  /** What cannot be sent as a whole was sent to nobody in part: a client that names its revision has it from a list or a bookmark. */
  #skipOrThrow(fault: unknown): void {
    const named = this.request.start.kind === 'after' ? this.request.start.revision : 0;
    if (!(fault instanceof RevisionTooLarge) || this.#position >= named) throw fault;
    [this.#fault, this.#position] = [undefined, named];
  }

  /** Waits for the room that was missing, holding nothing meanwhile. False when the client went away, or the watch was ended. */
  async #hasRoom(): Promise<boolean> {
    const wanted = this.#wantedBytes;
    this.#wantedBytes = 0;
    if (wanted === 0) return true;
    const isTaken = await this.#takeUnlessEnded(wanted);
    if (isTaken) this.#reservedBytes = wanted;
    return isTaken;
  }

  async #takeUnlessEnded(bytes: number): Promise<boolean> {
    if (this.#ended) return false;
    const { room } = this.request;
    const taking = room.take(bytes);
    const ended = new Promise<'ended'>((resolve) => (this.#wake = () => resolve('ended')));
    const first = await Promise.race([taking, ended]);
    if (first === 'ended') void taking.then((isTaken) => isTaken && room.give(bytes));
    return first === true;
  }

  /** Keeps nothing of the room that was waited for, whether it is enough or not. */
  #takeRoom(bytes: number): boolean {
    const { room } = this.request;
    const reserved = this.#reservedBytes;
    this.#reservedBytes = 0;
    const fits = bytes <= reserved || room.tryTake(bytes - reserved);
    room.give(fits ? Math.max(0, reserved - bytes) : reserved);
    return fits;
  }

  /** A small piece that goes out whatever else waits. */
  #direct(bytes: Uint8Array): readonly Uint8Array[] {
    this.request.room.add(bytes.length);
    return [bytes];
  }

  #dropQueue(): void {
    this.request.room.give(this.#queuedBytes);
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
