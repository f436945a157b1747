/**
 * Encodes and decodes the messages of etcd's API that this engine uses. Pure. Field numbers are
 * those of rpc.proto and kv.proto of etcd 3.6 (https://github.com/etcd-io/etcd/tree/main/api).
 * Unknown fields are skipped. Revisions are JavaScript numbers, because all are far below 2^53.
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/**
 * `revision`: that of the key's last change. `lease`: the lease that the key is attached to; 0:
 * none.
 */
export type KeyValue = Readonly<{ key: Uint8Array; value: Uint8Array; revision: number; lease: number }>;

/** The ids of this engine's leases are below 2^48. */
export type LeaseRequest = Readonly<{ id: number; ttlSeconds: number }>;

/**
 * `rangeEnd`: the first key behind the range; undefined: `key` alone. `revision`: by default the
 * newest.
 */
export type RangeRequest = Readonly<{
  key: Uint8Array;
  rangeEnd?: Uint8Array;
  limit?: number;
  revision?: number;
  keysOnly?: boolean;
  countOnly?: boolean;
}>;

/** `revision`: etcd's revision when it answered. */
export type RangeResponse = Readonly<{ revision: number; kvs: readonly KeyValue[]; more: boolean; count: number }>;

/** Holds if the key's last change has this revision, or, for 0, if the key does not exist. */
export type Compare = Readonly<{ key: Uint8Array; revision: number }>;

/** `lease`: the lease to attach the key to; 0: none. */
export type Operation =
  | Readonly<{ kind: 'put'; key: Uint8Array; value: Uint8Array; lease?: number }>
  | Readonly<{ kind: 'delete'; key: Uint8Array }>
  | Readonly<{ kind: 'range'; request: RangeRequest }>;

/** etcd runs all of `success` if every comparison holds, else all of `failure`. */
export type TxnRequest = Readonly<{ compare: readonly Compare[]; success: readonly Operation[]; failure: readonly Operation[] }>;

/** `ranges`: the results of the range operations, in their order. */
export type TxnResponse = Readonly<{ revision: number; succeeded: boolean; ranges: readonly RangeResponse[] }>;

/**
 * Watches puts and deletes in the range from `startRevision` on. Events include the replaced
 * values.
 */
export type WatchCreate = Readonly<{ key: Uint8Array; rangeEnd: Uint8Array; startRevision: number }>;

export type WatchRequest = Readonly<{ kind: 'create'; create: WatchCreate } | { kind: 'progress' }>;

export type WatchEvent = Readonly<{ kind: 'put' | 'delete'; kv: KeyValue; previous: KeyValue | undefined }>;

/**
 * `revision`: etcd's revision; in a response without events, everything up to it was sent.
 * `isFragment`: more events follow, maybe of the last event's revision. `compacted`: the oldest
 * revision that is left, if the watch requested an older one.
 */
export type WatchResponse = Readonly<{
  revision: number;
  created: boolean;
  canceled: boolean;
  compacted: number;
  reason: string;
  isFragment: boolean;
  events: readonly WatchEvent[];
}>;

/** Sizes in bytes; 0 if a member older than 3.6 does not report it. */
export type StatusResponse = Readonly<{ version: string; size: number; sizeInUse: number; quota: number }>;

const nothing: Uint8Array = new Uint8Array();

export function encodeRange({ key, rangeEnd, limit = 0, revision = 0, keysOnly = false, countOnly = false }: RangeRequest): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.LengthDelimited).bytes(key);
  if (rangeEnd !== undefined) writer.tag(2, WireType.LengthDelimited).bytes(rangeEnd);
  if (limit > 0) writer.tag(3, WireType.Varint).int64(limit);
  if (revision > 0) writer.tag(4, WireType.Varint).int64(revision);
  if (keysOnly) writer.tag(8, WireType.Varint).bool(true);
  if (countOnly) writer.tag(9, WireType.Varint).bool(true);
  return writer.finish();
}

export function decodeRange(bytes: Uint8Array): RangeResponse {
  const found = { revision: 0, kvs: [] as KeyValue[], more: false, count: 0 };
  read(bytes, (field, reader) => {
    if (field === 1) found.revision = revisionOf(reader.bytes());
    else if (field === 2) found.kvs.push(decodeKeyValue(reader.bytes()));
    else if (field === 3) found.more = reader.bool();
    else if (field === 4) found.count = numberOf(reader);
    else return false;
    return true;
  });
  return found;
}

export function encodeTxn({ compare, success, failure }: TxnRequest): Uint8Array {
  const writer = new BinaryWriter();
  for (const each of compare) writeCompare(writer.tag(1, WireType.LengthDelimited).fork(), each).join();
  for (const each of success) writeOperation(writer.tag(2, WireType.LengthDelimited).fork(), each).join();
  for (const each of failure) writeOperation(writer.tag(3, WireType.LengthDelimited).fork(), each).join();
  return writer.finish();
}

export function decodeTxn(bytes: Uint8Array): TxnResponse {
  const found = { revision: 0, succeeded: false, ranges: [] as RangeResponse[] };
  read(bytes, (field, reader) => {
    if (field === 1) found.revision = revisionOf(reader.bytes());
    else if (field === 2) found.succeeded = reader.bool();
    else if (field === 3)
      read(reader.bytes(), (operation, inner) => {
        if (operation !== 1) return false;
        found.ranges.push(decodeRange(inner.bytes()));
        return true;
      });
    else return false;
    return true;
  });
  return found;
}

export function encodeCompaction(revision: number): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int64(revision).finish();
}

export function encodeLeaseGrant({ id, ttlSeconds }: LeaseRequest): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int64(ttlSeconds).tag(2, WireType.Varint).int64(id).finish();
}

/** The request to renew a lease, or to end it. */
export function encodeLeaseId(id: number): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int64(id).finish();
}

/** The seconds that a lease has left; 0 or less if it is gone. */
export function decodeLease(bytes: Uint8Array): number {
  let seconds = 0;
  read(bytes, (field, reader) => {
    if (field !== 3) return false;
    seconds = numberOf(reader);
    return true;
  });
  return seconds;
}

export function encodeWatch(request: WatchRequest): Uint8Array {
  const writer = new BinaryWriter();
  if (request.kind === 'progress') return writer.tag(3, WireType.LengthDelimited).bytes(nothing).finish();
  const { key, rangeEnd, startRevision } = request.create;
  const create = new BinaryWriter();
  create.tag(1, WireType.LengthDelimited).bytes(key);
  create.tag(2, WireType.LengthDelimited).bytes(rangeEnd);
  create.tag(3, WireType.Varint).int64(startRevision);
  create.tag(4, WireType.Varint).bool(true);
  create.tag(6, WireType.Varint).bool(true);
  create.tag(8, WireType.Varint).bool(true);
  return writer.tag(1, WireType.LengthDelimited).bytes(create.finish()).finish();
}

export function decodeWatch(bytes: Uint8Array): WatchResponse {
  const found = { revision: 0, created: false, canceled: false, compacted: 0, reason: '', isFragment: false, events: [] as WatchEvent[] };
  read(bytes, (field, reader) => {
    if (field === 1) found.revision = revisionOf(reader.bytes());
    else if (field === 3) found.created = reader.bool();
    else if (field === 4) found.canceled = reader.bool();
    else if (field === 5) found.compacted = numberOf(reader);
    else if (field === 6) found.reason = reader.string();
    else if (field === 7) found.isFragment = reader.bool();
    else if (field === 11) found.events.push(decodeEvent(reader.bytes()));
    else return false;
    return true;
  });
  return found;
}

export function decodeStatus(bytes: Uint8Array): StatusResponse {
  const found = { version: '', size: 0, sizeInUse: 0, quota: 0 };
  read(bytes, (field, reader) => {
    if (field === 2) found.version = reader.string();
    else if (field === 3) found.size = numberOf(reader);
    else if (field === 9) found.sizeInUse = numberOf(reader);
    else if (field === 12) found.quota = numberOf(reader);
    else return false;
    return true;
  });
  return found;
}

function writeCompare(writer: BinaryWriter, { key, revision }: Compare): BinaryWriter {
  // The target is the revision of the last change (MOD, 2). The result EQUAL is 0, the default.
  writer.tag(2, WireType.Varint).int32(2);
  writer.tag(3, WireType.LengthDelimited).bytes(key);
  return writer.tag(6, WireType.Varint).int64(revision);
}

function writeOperation(writer: BinaryWriter, operation: Operation): BinaryWriter {
  if (operation.kind === 'range') return writer.tag(1, WireType.LengthDelimited).bytes(encodeRange(operation.request));
  writer
    .tag(operation.kind === 'delete' ? 3 : 2, WireType.LengthDelimited)
    .fork()
    .tag(1, WireType.LengthDelimited)
    .bytes(operation.key);
  if (operation.kind === 'delete') return writer.join();
  writer.tag(2, WireType.LengthDelimited).bytes(operation.value);
  if (operation.lease !== undefined) writer.tag(3, WireType.Varint).int64(operation.lease);
  return writer.join();
}

function decodeEvent(bytes: Uint8Array): WatchEvent {
  let kind: WatchEvent['kind'] = 'put';
  let kv: KeyValue | undefined;
  let previous: KeyValue | undefined;
  read(bytes, (field, reader) => {
    if (field === 1) kind = reader.int32() === 1 ? 'delete' : 'put';
    else if (field === 2) kv = decodeKeyValue(reader.bytes());
    else if (field === 3) previous = decodeKeyValue(reader.bytes());
    else return false;
    return true;
  });
  if (kv === undefined) throw new Error('etcd sent an event without a key');
  return { kind, kv, previous };
}

function decodeKeyValue(bytes: Uint8Array): KeyValue {
  const found = { key: nothing, value: nothing, revision: 0, lease: 0 };
  read(bytes, (field, reader) => {
    if (field === 1) found.key = reader.bytes();
    else if (field === 3) found.revision = numberOf(reader);
    else if (field === 5) found.value = reader.bytes();
    else if (field === 6) found.lease = numberOf(reader);
    else return false;
    return true;
  });
  return found;
}

function revisionOf(header: Uint8Array): number {
  let revision = 0;
  read(header, (field, reader) => {
    if (field !== 3) return false;
    revision = numberOf(reader);
    return true;
  });
  return revision;
}

function numberOf(reader: BinaryReader): number {
  return Number(reader.int64());
}

/** Calls `take` with each field, and skips a field if `take` returns false. */
function read(bytes: Uint8Array, take: (field: number, reader: BinaryReader) => boolean): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (!take(field, reader)) reader.skip(wireType, field);
  }
}
