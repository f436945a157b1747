/**
 * One open watch. It first sends what it missed, then joins the live stream.
 *
 *   revision ──────┬───────────────┬────────────▶        W1 No hole: live begins at caughtUpTo + 1.
 *        start ────┘   catching up └─ live               W2 No repeat: a revision is sent at most once.
 *                                                        W3 At most `queueBytesMax` wait; one more ⇒ catching up again,
 *                                                           from the change log. 410 only below the compacted revision.
 *                                                        W4 A bookmark never overtakes an event.
 * It joins the hub *before* it reads: what is published from then on queues up behind what it reads; the other order
 * leaves a hole. What it hands out at once is at most `pieceBytesMax`, so that a client which never reads holds no more.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Change } from '../domain/change.js';
import { Refused } from '../domain/errors.js';
import { formatClientKey, type Key } from '../domain/key.js';
import { isSelected } from '../domain/object-metadata.js';
import type {
  EventItem,
  History,
  ListEncoding,
  Objects,
  OpenWatch,
  Representation,
  Revisions,
  Snapshots,
  WatchRequest,
} from '../domain/ports.js';
import type { Revision } from '../domain/revision.js';
import { withRoom, type Room } from '../domain/room.js';
import { eventOf } from './event-of.js';

/** `readBytesMax`: what one piece that is read may come to, with the largest object at its end. */
export type WatcherLimits = Readonly<{ queueBytesMax: number; pieceBytesMax: number; readBytesMax: number }>;

/** The live stream, as one watcher sees it. */
export interface LiveStream {
  join(watcher: Watcher): void;
  leave(watcher: Watcher): void;
  /** Hands out what was published and is still on its way to the watchers. */
  flush(): void;
}

export type WatcherParts = Readonly<{
  live: LiveStream;
  revisions: Revisions;
  history: History;
  objects: Objects;
  snapshots: Snapshots;
  /** Told when the watcher falls back to the change log, and how many events it has been given. */
  observe: Readonly<{ fellBack: () => void; sent: (events: number) => void }>;
}>;

/** How many keys are remembered so that none is told to be gone twice. */
const toldMax = 100_000;

type Piece = Readonly<{ bytes: Uint8Array; revision: Revision }>;

export class Watcher implements OpenWatch {
  readonly request: WatchRequest;
  readonly #parts: WatcherParts;
  readonly #limits: WatcherLimits;
  #queue: Piece[] = [];
  #queuedBytes = 0;
  /** Whether what is published reaches the queue. */
  #inStream = false;
  #isLive = false;
  #ended = false;
  #wake: () => void = () => {};

  constructor(request: WatchRequest, parts: WatcherParts, limits: WatcherLimits) {
    this.request = request;
    this.#parts = parts;
    this.#limits = limits;
  }

  /** What was published and concerns this watcher, encoded. Called in the order of publication. */
  offer(bytes: Uint8Array, events: number, revision: Revision): void {
    const isFull = this.#queuedBytes + bytes.length > this.#limits.queueBytesMax && this.#queue.length > 0;
    if (isFull || !this.request.room.tryTake(bytes.length)) return this.fallBack();
    this.#queue.push({ bytes, revision });
    this.#queuedBytes += bytes.length;
    this.#parts.observe.sent(events);
    this.#wake();
  }

  /** A sign that everything published is on its way. A watcher that is still catching up gets none. */
  bookmark(): void {
    this.#parts.live.flush();
    if (!this.#isLive || !this.#inStream) return;
    const { published } = this.#parts.revisions;
    this.offer(this.request.representation.bookmark(this.#parts.revisions.format(published), false), 0, published);
  }

  /** Ends the stream behind what is queued. */
  end(): void {
    this.#parts.live.flush();
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly Uint8Array[]> {
    const { start, representation } = this.request;
    try {
      let position = start.kind === 'initial' ? yield* this.#initial(start.forgetSince) : yield* this.#catchUp(start.revision);
      while (position !== undefined) {
        position = yield* this.#live(position);
        if (this.#ended) return;
        position = yield* this.#catchUp(position);
      }
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      yield this.#direct(representation.error(error.refusal));
    } finally {
      this.#parts.live.leave(this);
    }
  }

  /** Leaves the live stream and reads on from the change log. */
  fallBack(): void {
    this.#parts.live.leave(this);
    this.#inStream = false;
    this.#dropQueue();
    this.#parts.observe.fellBack();
    this.#wake();
  }

  #join(): Revision {
    this.#dropQueue();
    this.#inStream = true;
    this.#parts.live.join(this);
    return this.#parts.revisions.published;
  }

  /** Undefined when it was ended half way: what waits in the queue must not follow then, or the client would resume behind a hole. */
  async *#initial(forgetSince: Revision | undefined): AsyncGenerator<readonly Uint8Array[], Revision | undefined> {
    const { scope, selector, representation, bookmarks } = this.request;
    const at = this.#join();
    const chunks = this.#parts.snapshots.chunks(scope, selector, at, addedBy(representation));
    for await (const bytes of withRoom(chunks, this.#readingRoom, this.#limits.readBytesMax)) {
      if (this.#ended) return undefined;
      yield [bytes];
    }
    if (bookmarks) yield this.#direct(representation.bookmark(this.#parts.revisions.format(at), true));
    if (forgetSince !== undefined) yield* this.#forget(forgetSince, at);
    return at;
  }

  /**
   * A client that relists without having seen what was deleted meanwhile would keep it for ever (R24): after the bookmark
   * it is told DELETED for every key that changed since and is not in its view at `at`. An end waits for the last of them,
   * for the client would resume from the bookmark.
   */
  async *#forget(since: Revision, at: Revision): AsyncGenerator<readonly Uint8Array[]> {
    const { scope, representation } = this.request;
    const told = new Set<string>();
    for await (const keys of this.#parts.history.touched(scope, { after: since, upTo: at })) {
      // Telling twice is harmless, remembering without end is not.
      if (told.size > toldMax) told.clear();
      const untold = keys.filter((key) => {
        const clientKey = formatClientKey(key);
        return !told.has(clientKey) && told.add(clientKey);
      });
      const gone = await this.#notInView(untold, at);
      if (gone.length > 0) yield this.#direct(representation.forgotten(gone, this.#parts.revisions.format(at)));
    }
  }

  async #notInView(keys: readonly Key[], at: Revision): Promise<readonly Key[]> {
    const gone: Key[] = [];
    for (const key of keys) if (!(await this.#isInView(key, at))) gone.push(key);
    return gone;
  }

  /** What has not changed since `at` is looked up where it is now; only else is it read as it stood, page by page. */
  async #isInView({ resource: { identity }, cluster, namespace, name }: Key, at: Revision): Promise<boolean> {
    const { scope, selector } = this.request;
    const { objects, revisions } = this.#parts;
    const place = { ...scope, identity, cluster, namespace, name };
    const now = await objects.find(place);
    if (now.some((object) => object.revision <= at && isSelected(object, selector))) return true;
    if (revisions.published === at) return false;
    const snapshot = objects.snapshot(place, at);
    try {
      let after: Key | undefined;
      do {
        const page = await snapshot.page(after);
        if (page.objects.some((object) => isSelected(object, selector))) return true;
        after = page.next;
        await turn();
      } while (after !== undefined);
      return false;
    } finally {
      snapshot.close();
    }
  }

  /** Sends from the change log what came behind `after`, having joined the live stream for what comes next. Undefined as above. */
  async *#catchUp(after: Revision): AsyncGenerator<readonly Uint8Array[], Revision | undefined> {
    const upTo = this.#join();
    for await (const bytes of withRoom(this.#missed(after, upTo), this.#readingRoom, this.#limits.readBytesMax)) {
      if (this.#ended) return undefined;
      yield [bytes];
    }
    return upTo;
  }

  async *#missed(after: Revision, upTo: Revision): AsyncGenerator<Uint8Array> {
    const { scope, selector, representation } = this.request;
    for await (const changes of this.#parts.history.changes(scope, { after, upTo })) {
      const items = changes.map((change: Change) => eventOf(change, selector)).filter((item): item is EventItem => item !== undefined);
      if (items.length === 0) continue;
      this.#parts.observe.sent(items.length);
      yield representation.events(items);
    }
  }

  /** Hands out what is queued as it comes, until the watch ends or falls behind; `position` is what was handed out. */
  async *#live(from: Revision): AsyncGenerator<readonly Uint8Array[], Revision> {
    let position = from;
    this.#isLive = true;
    while (this.#inStream) {
      const pieces = this.#take();
      const last = pieces.at(-1);
      if (last !== undefined) {
        position = last.revision;
        yield pieces.map(({ bytes }) => bytes);
      } else if (this.#ended) return position;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    this.#isLive = false;
    return position;
  }

  /** Never waited for with a full queue in hand: what is queued is read from the change log later. */
  get #readingRoom(): Pick<Room, 'take' | 'add' | 'give'> {
    const { room } = this.request;
    const take = (bytes: number): Promise<boolean> => {
      if (room.tryTake(bytes)) return Promise.resolve(true);
      if (this.#queuedBytes > 0) this.fallBack();
      return room.take(bytes);
    };
    return { take, add: (bytes) => room.add(bytes), give: (bytes) => room.give(bytes) };
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
    return this.#queue.splice(0, count);
  }
}

function addedBy(representation: Representation): ListEncoding {
  return {
    id: `watch ${representation.id}`,
    encode: (objects) =>
      representation.events(objects.map((object) => ({ type: 'ADDED', object, resourceVersion: object.resourceVersion }))),
  };
}
