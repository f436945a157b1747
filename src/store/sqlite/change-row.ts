/**
 * A row of the change log and its checksums. Every reader verifies them, so that the store never
 * serves a bit that the disk has flipped. CRC-32 detects every error burst of up to 32 bits, and
 * nearly all other errors. Each checksum covers these columns:
 *
 *   revision … name │ checksum │ born │ version, marks │ body_checksum │ body
 *   └── checksum ───┘                 └── body_checksum, begun with `checksum` ──┘
 *
 * No checksum covers `born`, because compaction sets it to 0, and walks read it from an index,
 * without the row (walks.ts).
 */
import { crc32 } from 'node:zlib';
import type { Body, Marks } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import { Unsound } from './damage.js';
import type { Connection } from './database.js';

/** The values of the column `kind`. */
export const put = 1;
/**
 * From this revision on, the key has no object. The row outlives the object, so that readers can
 * still learn of the delete.
 */
export const tombstone = 2;

/** A row without its body. */
export type ChangeRow = Readonly<{
  revision: Revision;
  resource: number;
  kind: number;
  replaced: Revision;
  shard: string;
  cluster: string;
  namespace: string;
  name: string;
}>;

export type ChecksummedRow = ChangeRow & Readonly<{ checksum: number }>;

export type BodyRow = ChecksummedRow & Readonly<{ version: string; marks: Marks; bodyChecksum: number; body: Uint8Array | null }>;

/** The columns of a ChecksummedRow, and of a BodyRow. */
export const summedColumns = 'revision, resource, kind, replaced, shard, cluster, namespace, name, checksum';
export const bodyColumns = `${summedColumns}, version, metadata_start, metadata_end, annotations_at, revision_at, body_checksum, body`;

/** A BodyRow as an array. */
export type BodyColumns = readonly [
  ...head: readonly [Revision, number, number, Revision, string, string, string, string, number],
  version: string,
  metadataStart: number,
  metadataEnd: number,
  annotationsAt: number,
  revisionAt: number,
  bodyChecksum: number,
  body: Uint8Array | null,
];

export function bodyRowOf(columns: BodyColumns): BodyRow {
  const [revision, resource, kind, replaced, shard, cluster, namespace, name, ...rest] = columns;
  const [checksum, version, metadataStart, metadataEnd, annotationsAt, revisionAt, bodyChecksum, body] = rest;
  const marks = { metadataStart, metadataEnd, annotationsAt, revisionAt };
  return { revision, resource, kind, replaced, shard, cluster, namespace, name, checksum, version, marks, bodyChecksum, body };
}

export function checksumOf({ revision, resource, kind, replaced, shard, cluster, namespace, name }: ChangeRow): number {
  return crc32(`${revision} ${resource} ${kind} ${replaced}\0${shard}\0${cluster}\0${namespace}\0${name}`);
}

/** `checksum`: the row's. */
export function bodyChecksumOf(checksum: number, { version, marks, bytes }: Body): number {
  const { metadataStart, metadataEnd, annotationsAt, revisionAt } = marks;
  return crc32(bytes, crc32(`${version} ${metadataStart} ${metadataEnd} ${annotationsAt} ${revisionAt}`, checksum));
}

/** Throws Unsound if the checksum is wrong. */
export function verifyRow<Row extends ChecksummedRow>(row: Row): Row {
  if (checksumOf(row) !== row.checksum) throw new Unsound(`revision ${row.revision} is not the row that was written`);
  return row;
}

/** The body of a row; undefined for a delete. Throws Unsound if a checksum is wrong. */
export function verifyBody(row: BodyRow): Body | undefined {
  if (verifyRow(row).kind !== put) return undefined;
  const { version, marks, body: bytes } = row;
  const body = bytes instanceof Uint8Array ? { bytes, version, marks } : undefined;
  if (body === undefined || bodyChecksumOf(row.checksum, body) !== row.bodyChecksum)
    throw new Unsound(`the body of revision ${row.revision} is not the one that was written`);
  return body;
}

/** Defines the SQL functions that compute checksums, for migrations and for rewrites of objects. */
export function defineChecksumFunctions(database: Connection): void {
  type Names = [shard: string, cluster: string, namespace: string, name: string];
  const rowChecksum = (revision: Revision, resource: number, kind: number, replaced: Revision, ...names: Names): number => {
    const [shard, cluster, namespace, name] = names;
    return checksumOf({ revision, resource, kind, replaced, shard, cluster, namespace, name });
  };
  type Places = [metadataStart: number, metadataEnd: number, annotationsAt: number, revisionAt: number];
  const bodyChecksum = (checksum: number, version: string, bytes: Uint8Array | null, ...places: Places): number => {
    const [metadataStart, metadataEnd, annotationsAt, revisionAt] = places;
    if (bytes === null) throw new Unsound('a put has no body');
    return bodyChecksumOf(checksum, { version, bytes, marks: { metadataStart, metadataEnd, annotationsAt, revisionAt } });
  };
  database.function('row_checksum', { deterministic: true, varargs: true }, rowChecksum as (...columns: unknown[]) => number);
  database.function('body_checksum', { deterministic: true, varargs: true }, bodyChecksum as (...columns: unknown[]) => number);
}
