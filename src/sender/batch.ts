/**
 * Cuts a slice's pending mutations into batches, each for one frame. A batch has objects of one
 * version, or keys, or a single begin, end or keep of the slice or of a logical cluster. Batches
 * keep the order of the mutations.
 *
 * B1 A batch respects the cache's limits and the sender's smaller bounds. A single object may
 *    exceed the sender's bounds, never the cache's.
 * B2 An object that is too large for the cache delays nothing after it, and is reported. Within a
 *    sync it is sent without a body, which shows the cache that it exists; otherwise `end` would
 *    remove the cache's version. Outside a sync it is left out.
 */
import type { Slice } from '../domain/slice.js';
import type { Frame, FrameLimits, PushedKey, PushedObject } from '../frames/frame.js';
import type { Outgoing } from './source.js';

/** A mutation to be sent, or sent and not acknowledged. */
export type Pending = Readonly<{
  outgoing: Outgoing;
  /** An upper bound of its size in a frame. */
  bytes: number;
  sinceMs: number;
  /** The number of its sync, which rises for as long as the sender lives. */
  sync: number;
  /** Rises with each mutation that the source reports for the slice; a resent mutation keeps it. */
  order: number;
  /** Whether it belongs to the sync, not to the changes after it. */
  syncing: boolean;
}>;

export type BatchBounds = Readonly<{ mutationsMax: number; bytesMax: number; limits: FrameLimits }>;

/**
 * `taken`: how many pending mutations the batch covers, from the front. `sent`: those that go into
 * the frame. `tooLarge`: objects that the cache cannot accept.
 */
export type Batch = Readonly<{ taken: number; sent: readonly Pending[]; bytes: number; tooLarge: readonly Pending[] }>;

export function cutBatch(slice: Slice, pending: readonly Pending[], { mutationsMax, bytesMax, limits }: BatchBounds): Batch {
  const countMax = Math.max(1, Math.min(mutationsMax, limits.frameMutationsMax));
  const frameBytesMax = limits.frameBytesMax - frameBytes(slice);
  const sumMax = Math.min(bytesMax, frameBytesMax);
  const sent: Pending[] = [];
  const tooLarge: Pending[] = [];
  let taken = 0;
  let bytes = 0;

  for (const each of pending) {
    const fits = !isTooLarge(each, frameBytesMax, limits.bodyBytesMax);
    const item = fits ? each : keptOf(each);
    if (item !== undefined) {
      const first = sent[0];
      if (first !== undefined && (!sharesFrame(first.outgoing, item.outgoing) || sent.length >= countMax || bytes + item.bytes > sumMax))
        break;
      sent.push(item);
      bytes += item.bytes;
    }
    if (!fits) tooLarge.push(each);
    taken += 1;
  }
  return { taken, sent, bytes, tooLarge };
}

/** `objects`: the number of objects put since the begin that an end belongs to. */
export function batchFrame(
  sent: readonly Pending[],
  { slice, sequence, objects }: Readonly<{ slice: Slice; sequence: number; objects: number }>,
): Frame {
  const first = sent[0]?.outgoing;
  switch (first?.kind) {
    case 'begin':
      return { kind: 'begin', sequence, slice, revision: first.revision };
    case 'end':
      return { kind: 'end', sequence, slice, revision: first.revision, count: objects, filterHash: '' };
    case 'clusterBegin':
    case 'clusterKeep':
      return { kind: first.kind, sequence, slice, cluster: first.cluster };
    case 'clusterEnd':
      return { kind: 'clusterEnd', sequence, slice, cluster: first.cluster, count: objects };
    case 'put':
      return { kind: 'put', sequence, slice, version: first.version, objects: sent.flatMap(objectOf) };
    case 'delete':
      return { kind: 'delete', sequence, slice, keys: sent.flatMap(({ outgoing }) => outgoingKey(outgoing) ?? []) };
    case undefined:
      throw new Error('a frame carries something');
  }
}

/** The size of a mutation in a frame. msgpack uses at most five bytes before a text or a number. */
export function outgoingBytes(outgoing: Outgoing): number {
  switch (outgoing.kind) {
    case 'begin':
    case 'end':
      return headerBytes + textBytes(outgoing.revision) + 2 * headerBytes;
    case 'clusterBegin':
    case 'clusterEnd':
    case 'clusterKeep':
      return textBytes(outgoing.cluster) + headerBytes;
    case 'delete':
      return keyBytes(outgoing.key);
    case 'put':
      return (
        keyBytes(outgoing.object) +
        textBytes(outgoing.version) +
        textBytes(outgoing.object.sourceVersion) +
        headerBytes +
        bodyBytes(outgoing.object)
      );
  }
}

/** Undefined for a begin, an end or a keep. */
export function outgoingKey(outgoing: Outgoing): PushedKey | undefined {
  return outgoing.kind === 'put' ? outgoing.object : outgoing.kind === 'delete' ? outgoing.key : undefined;
}

const headerBytes = 5;

/** A position is a resourceVersion, that is, digits; 64 bytes leave room to spare. */
const positionBytesMax = 64;

/**
 * The size of a frame without its mutations: kind, sequence, slice, array headers, and the position
 * that a link may add.
 */
function frameBytes({ shard, resource: { group, resource, identity } }: Slice): number {
  return [shard, group, resource, identity].reduce((sum, text) => sum + textBytes(text), 6 * headerBytes + 9 + positionBytesMax);
}

function keyBytes({ cluster, namespace, name }: PushedKey): number {
  return textBytes(cluster) + textBytes(namespace) + textBytes(name);
}

function textBytes(text: string): number {
  return headerBytes + Buffer.byteLength(text);
}

function bodyBytes({ body }: PushedObject): number {
  return body?.length ?? 0;
}

function isTooLarge({ outgoing, bytes }: Pending, frameBytesMax: number, bodyBytesMax: number): boolean {
  return outgoing.kind === 'put' && (bodyBytes(outgoing.object) > bodyBytesMax || bytes > frameBytesMax);
}

/** The mutation without its body; undefined outside a sync. */
function keptOf(item: Pending): Pending | undefined {
  if (!item.syncing || item.outgoing.kind !== 'put') return undefined;
  const outgoing: Outgoing = { ...item.outgoing, object: { ...item.outgoing.object, body: undefined } };
  return { ...item, outgoing, bytes: outgoingBytes(outgoing) };
}

function sharesFrame(one: Outgoing, other: Outgoing): boolean {
  if (one.kind === 'put') return other.kind === 'put' && one.version === other.version;
  return one.kind === 'delete' && other.kind === 'delete';
}

function objectOf({ outgoing }: Pending): readonly PushedObject[] {
  return outgoing.kind === 'put' ? [outgoing.object] : [];
}

/**
 * Drops superseded mutations: of several states of one object it keeps the newest, as a work queue
 * in kcp's controller does. It keeps a deletion before a new object of the same name, so that
 * watchers see the deletion. Nothing is dropped across a begin or an end, and the rest keeps its
 * order.
 */
export function coalesce(batch: readonly Outgoing[]): readonly Outgoing[] {
  if (batch.length < 2) return batch;
  const kept: Outgoing[] = [];
  /** By object: the kind of its later mutation in the batch. */
  const later = new Map<string, Outgoing['kind']>();
  for (const outgoing of batch.toReversed()) {
    const key = outgoingKey(outgoing);
    if (key === undefined) later.clear();
    else {
      const text = [key.cluster, key.namespace, key.name].join('\0');
      const next = later.get(text);
      if (next === 'delete' || (next === 'put' && outgoing.kind === 'put')) continue;
      // A put without a body supersedes nothing: it only says that the object exists unchanged.
      if (outgoing.kind === 'delete' || (outgoing.kind === 'put' && outgoing.object.body !== undefined)) later.set(text, outgoing.kind);
    }
    kept.push(outgoing);
  }
  return kept.toReversed();
}
