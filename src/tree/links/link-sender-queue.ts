/**
 * What one link is about to send, in order: objects of a slice, cut into frames as credit allows,
 * and single frames between them.
 *
 * O1 First in, first out.
 * O2 A position that follows objects is sent in the last frame of these objects, so the receiver
 *    stores both in one commit.
 *
 * Bound: the sender fills the queue only while it is short, each time with one chunk of the log or
 * one page.
 */
import type { Change } from '../../domain/change.js';
import type { StoredObject } from '../../domain/object.js';
import type { Clock } from '../../domain/ports.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { Credit, Frame, FrameLimits, FrameOf } from '../../frames/frame.js';
import { reportedSliceBytes } from '../../intake/push/frame-parts.js';
import { batchFrame, cutBatch, outgoingBytes, outgoingKey, type Pending } from '../../sender/batch.js';
import type { Outgoing } from '../../sender/source.js';
import { Window } from '../../sender/window.js';
import type { SliceSync } from '../syncs/slice-sync.js';

type Owner = SliceSync | undefined;

type Item =
  | { readonly kind: 'objects'; readonly sync: SliceSync; pending: Pending[] }
  | Readonly<{ kind: 'frame'; sync: Owner; frame: (sequence: number, objects: number) => Frame; bytes: number }>
  | Readonly<{ kind: 'position'; position: string }>;

export type LinkSenderBounds = Readonly<{ batchMutationsMax: number; batchBytesMax: number }>;

const shortItems = 8;
const shortObjects = 64;
const takenMax = 1_024;
/** The bytes of credit that a frame without objects uses. */
const frameBytes = 512;

export class LinkSenderQueue {
  readonly #clock: Clock;
  readonly #limits: FrameLimits;
  readonly #bounds: LinkSenderBounds;
  /** The credit granted when the link opened. No ack grants more. */
  readonly #credit: Credit;
  readonly #window: Window<Owner>;
  readonly #tooLarge: (slice: Slice, outgoing: Outgoing) => void;
  #items: Item[] = [];
  /** How many items at the front of `#items` were taken. */
  #taken = 0;
  #objects = 0;

  constructor(
    { clock, tooLarge }: Readonly<{ clock: Clock; tooLarge: (slice: Slice, outgoing: Outgoing) => void }>,
    { credit, limits }: Readonly<{ credit: Credit; limits: FrameLimits }>,
    bounds: LinkSenderBounds,
  ) {
    this.#clock = clock;
    this.#tooLarge = tooLarge;
    this.#limits = limits;
    this.#bounds = bounds;
    this.#credit = credit;
    this.#window = new Window(credit);
  }

  get isEmpty(): boolean {
    return this.length === 0;
  }

  /** Counts items, not objects. */
  get length(): number {
    return this.#items.length - this.#taken;
  }

  /** Whether the queue holds less than a full frame of objects, and few items. */
  get isShort(): boolean {
    return this.length < shortItems && this.#objects < shortObjects;
  }

  get acknowledged(): number {
    return this.#window.acknowledged;
  }

  get unacknowledged(): Credit {
    return this.#window.unacknowledged;
  }

  /** The age of the oldest item that is not acknowledged. */
  get lagMs(): number {
    const nowMs = this.#clock.now();
    let oldestMs = nowMs;
    for (const { oldestMs: at } of this.#window.tally().values()) oldestMs = Math.min(oldestMs, at);
    return nowMs - oldestMs;
  }

  objects(sync: SliceSync, outgoing: readonly Outgoing[]): void {
    if (outgoing.length === 0) return;
    const sinceMs = this.#clock.now();
    // `syncing` is true for changes too. An object that is too large is then sent without its body
    // (sender/batch.ts), so the other end learns that it lacks the object.
    const pending = outgoing.map((each): Pending => ({
      outgoing: each,
      bytes: outgoingBytes(each),
      sinceMs,
      sync: 0,
      order: 0,
      syncing: true,
    }));
    this.#items.push({ kind: 'objects', sync, pending });
    this.#objects += pending.length;
  }

  /** `objects` is the number of objects put since the slice's begin. */
  frame(sync: SliceSync, frame: (sequence: number, objects: number) => Frame): void {
    this.#items.push({ kind: 'frame', sync, frame, bytes: frameBytes });
  }

  report(report: Omit<FrameOf<'report'>, 'kind' | 'sequence'>): void {
    const frame = (sequence: number): Frame => ({ kind: 'report', sequence, ...report });
    const bytes = frameBytes + report.freshness.length * reportedSliceBytes;
    this.#items.push({ kind: 'frame', sync: undefined, frame, bytes });
  }

  /** Everything up to the position must be queued already. */
  position(position: string): void {
    this.#items.push({ kind: 'position', position });
  }

  /** Takes the next frame. Undefined if the queue is empty, or the credit does not suffice. */
  take(): Frame | undefined {
    for (let item = this.#items[this.#taken]; item !== undefined; item = this.#items[this.#taken]) {
      if (item.kind === 'frame') return this.#takeFrame(item);
      if (item.kind === 'position') return this.#takeFrame(progressOf(item.position));
      const frame = this.#cut(item);
      const isWhole = item.pending.length === 0;
      if (isWhole) this.#next();
      else if (frame === undefined) return undefined;
      if (frame !== undefined) return isWhole ? this.#withPosition(frame) : frame;
    }
    return undefined;
  }

  isUnderWay(sync: SliceSync): boolean {
    if (this.#window.has(sync)) return true;
    return this.#items.some((item, i) => i >= this.#taken && item.kind !== 'position' && item.sync === sync);
  }

  /** Returns false if the number was never sent. */
  acknowledge(sequence: number, credit: Credit): boolean {
    return this.#window.acknowledge(sequence, capCredit(credit, this.#credit)) !== undefined;
  }

  /** Finds the refused mutation. Undefined if no unacknowledged mutation has that number. */
  refused(sequence: number): Readonly<{ sync: Owner; outgoing: Outgoing }> | undefined {
    const sent = this.#window.find(sequence);
    return sent && { sync: sent.owner, outgoing: sent.item.outgoing };
  }

  #takeFrame(item: Extract<Item, { kind: 'frame' }>): Frame | undefined {
    const { bytes } = item;
    if (!this.#window.fits(1, bytes)) return undefined;
    this.#next();
    const outgoing: Outgoing = { kind: 'end', revision: '' };
    const sinceMs = this.#clock.now();
    const sequence = this.#window.add(item.sync, [{ outgoing, bytes, sinceMs, sync: 0, order: 0, syncing: false }]);
    const frame = item.frame(sequence, item.sync?.objects ?? 0);
    if (item.sync !== undefined && frame.kind === 'begin') item.sync.objects = 0;
    return frame;
  }

  /** Takes the first item. Calling `shift` on a long array would move all other items each time. */
  #next(): void {
    this.#taken += 1;
    if (this.#taken < this.#items.length && this.#taken < takenMax) return;
    this.#items = this.#items.slice(this.#taken);
    this.#taken = 0;
  }

  #withPosition(frame: Frame): Frame {
    const next = this.#items[this.#taken];
    if (next?.kind !== 'position' || (frame.kind !== 'put' && frame.kind !== 'delete')) return frame;
    this.#next();
    return { ...frame, position: next.position };
  }

  #cut(item: Extract<Item, { kind: 'objects' }>): Frame | undefined {
    const { sync, pending } = item;
    const { credit } = this.#window;
    const batch = cutBatch(sync.slice, pending, {
      mutationsMax: Math.min(this.#bounds.batchMutationsMax, credit.mutations),
      bytesMax: Math.min(this.#bounds.batchBytesMax, credit.bytes),
      limits: this.#limits,
    });
    if (!this.#window.fits(batch.sent.length, batch.bytes)) return undefined;
    item.pending = pending.slice(batch.taken);
    this.#objects -= batch.taken;
    for (const { outgoing } of batch.tooLarge) this.#tooLarge(sync.slice, outgoing);
    const first = batch.sent[0];
    if (first === undefined) return undefined;
    if (first.outgoing.kind === 'put') sync.objects += batch.sent.length;
    const sequence = this.#window.add(sync, batch.sent);
    return batchFrame(batch.sent, { slice: sync.slice, sequence, objects: sync.objects });
  }
}

function progressOf(position: string): Extract<Item, { kind: 'frame' }> {
  return { kind: 'frame', sync: undefined, frame: (sequence) => ({ kind: 'progress', sequence, position }), bytes: frameBytes };
}

/** Names the object for the log, without its content. */
export function logFieldsOf(slice: Slice, outgoing: Outgoing): Readonly<Record<string, string>> {
  const key = outgoingKey(outgoing);
  return key === undefined
    ? { slice: formatSlice(slice) }
    : { slice: formatSlice(slice), cluster: key.cluster, namespace: key.namespace, name: key.name };
}

/**
 * `sourceVersion` is the revision here, for people who read the frames. Positions are sent with
 * `progress`.
 */
export function outgoingObject({ key: { cluster, namespace, name }, body, resourceVersion }: StoredObject): Outgoing {
  return { kind: 'put', version: body.version, object: { cluster, namespace, name, sourceVersion: resourceVersion, body: body.bytes } };
}

/** `came` undefined: the object does not cross any more, whether or not it was deleted. */
export function outgoingChange({ key: { cluster, namespace, name } }: Pick<Change, 'key'>, came: StoredObject | undefined): Outgoing {
  return came === undefined ? { kind: 'delete', key: { cluster, namespace, name } } : outgoingObject(came);
}

/**
 * How much may be unacknowledged on a link. The sender keeps unacknowledged mutations in memory, so
 * a peer may lower this limit, but never raise it.
 */
export const creditMax: Credit = { mutations: 16_384, bytes: 64 * 1024 * 1024 };

export function capCredit({ mutations, bytes }: Credit, max: Credit): Credit {
  return { mutations: Math.min(mutations, max.mutations), bytes: Math.min(bytes, max.bytes) };
}
