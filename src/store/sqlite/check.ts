/**
 * Looks for damage in a database to which nobody writes: first in the file, then in the tables.
 * These must agree with the change log.
 *
 *   quick      the structure of every page, the checksums of every row of the log, and counts.
 *              A start does this after an unclean end.
 *   thorough   also whether indexes name the right rows, and whether bodies match their digests
 *
 * Bounds: each step reports at most `problemsMax` problems, and keeps one sum per slice in memory.
 */
import { addDigest, digestOf, emptyDigest, type Digest } from '../../domain/slices/digest.js';
import type { Key } from '../../domain/key.js';
import { problemsMax, type CheckResult } from '../damaged-store.js';
import { readPragma, type Connection } from './database.js';
import { isDamage } from './damage.js';
import { readEpochs, readMeta } from './life.js';
import { bodyColumns, bodyRowOf, put, verifyBody, tombstone, type BodyColumns, type ChangeRow } from './change-row.js';

/** Yields the result of each step. If the file itself is unsound, there are no further steps. */
export function* checkDatabase(database: Connection, { thorough }: Readonly<{ thorough: boolean }>): Generator<CheckResult> {
  const file = checked('file', (found) => checkFile(database, thorough, found));
  yield file;
  if (file.problems.length > 0) return;
  yield checked('epochs', (found) => checkEpochs(database, found));
  yield checked('objects', (found) => checkObjects(database, found));
  yield checked('slices', (found) => checkSlices(database, found));
  yield checked('rows', (found) => checkRows(database, found));
  if (!thorough) return;
  yield checked('changes', (found) => checkChanges(database, found));
  yield checked('digests', (found) => checkDigests(database, found));
  yield checked('paths', (found) => checkPaths(database, found));
}

type Found = (problem: string) => void;

/** `look`: returns how many rows it has read. */
function checked(what: string, look: (found: Found) => number): CheckResult {
  const problems: string[] = [];
  const found = (problem: string): void => void (problems.length < problemsMax && problems.push(problem));
  try {
    return { what, examined: look(found), problems };
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { what, examined: 0, problems: [...problems, error.message] };
  }
}

function checkFile(database: Connection, thorough: boolean, found: Found): number {
  const rows = database.pragma(`${thorough ? 'integrity_check' : 'quick_check'}(${problemsMax})`) as readonly Record<string, string>[];
  for (const problem of rows.flatMap((row) => Object.values(row))) if (problem !== 'ok') found(problem);
  return readPragma(database, 'page_count');
}

function checkEpochs(database: Connection, found: Found): number {
  const revision = readMeta(database, 'revision');
  const highest = database.prepare<[], number | null>(/*sql*/ `SELECT max(revision) FROM changes`).pluck().get() ?? 0;
  if (highest > revision) found(`the change log goes up to revision ${highest}, but the store only to ${revision}`);
  const epochs = readEpochs(database);
  epochs.forEach(({ epoch, firstRevision }, i) => {
    if (firstRevision > revision + 1) found(`epoch ${epoch} begins at revision ${firstRevision}, but the store is at ${revision}`);
    if (firstRevision < (epochs[i - 1]?.firstRevision ?? 1)) found(`epoch ${epoch} begins before the one before it`);
  });
  return epochs.length;
}

/** Every current object is a put of the same key (`change-writer.ts` I4). */
function checkObjects(database: Connection, found: Found): number {
  const wrong = database.prepare<[number, number], Place & { revision: number }>(/*sql*/ `
    SELECT o.shard, o.cluster, o.namespace, o.name, o.revision FROM objects AS o LEFT JOIN changes AS c ON c.revision = o.revision
    WHERE c.kind IS NOT ? OR c.resource <> o.resource OR c.shard <> o.shard OR c.cluster <> o.cluster
       OR c.namespace <> o.namespace OR c.name <> o.name LIMIT ?`);
  for (const row of wrong.all(put, problemsMax)) found(`${placeOf(row)} names revision ${row.revision}, which is not a put of that object`);
  return countOf(database, 'objects');
}

type SliceRow = Digest & { shard: string; resource: number; objects: number; bytes: number };

/** The counts of a slice are the sums over its objects (`slice-table.ts` I15). */
function checkSlices(database: Connection, found: Found): number {
  const sums = new Map<string, SliceRow>();
  const objects = database.prepare<[], Digest & { shard: string; resource: number; bytes: number }>(/*sql*/ `
    SELECT o.shard, o.resource, o.digest_high AS high, o.digest_low AS low, length(c.body) AS bytes
    FROM objects AS o JOIN changes AS c ON c.revision = o.revision`);
  for (const { shard, resource, bytes, high, low } of objects.iterate()) {
    const key = `${shard} ${resource}`;
    const sum = sums.get(key) ?? { shard, resource, objects: 0, bytes: 0, ...emptyDigest };
    sums.set(key, { shard, resource, objects: sum.objects + 1, bytes: sum.bytes + bytes, ...addDigest(sum, { high, low }) });
  }
  const rows = database.prepare<[], SliceRow>(
    /*sql*/ `SELECT shard, resource, objects, bytes, digest_high AS high, digest_low AS low FROM slices`,
  );
  for (const { shard, resource, objects: count, bytes, high, low } of rows.all()) {
    const sum = sums.get(`${shard} ${resource}`) ?? { objects: 0, bytes: 0, ...emptyDigest };
    sums.delete(`${shard} ${resource}`);
    const slice = `the slice of type ${resource} on ${shard}`;
    if (count !== sum.objects || bytes !== sum.bytes)
      found(`${slice} counts ${count} objects of ${bytes} bytes; it has ${sum.objects} of ${sum.bytes}`);
    else if (high !== sum.high || low !== sum.low) found(`the digest of ${slice} does not match its objects`);
  }
  for (const { shard, resource, objects: count } of sums.values())
    found(`no slice counts the ${count} objects of type ${resource} on ${shard}`);
  return countOf(database, 'slices');
}

/** Every row has a known kind and type. Every put is current or was replaced by another change. */
function checkChanges(database: Connection, found: Found): number {
  const strange = database.prepare<[number, number, number], number>(/*sql*/ `
    SELECT revision FROM changes WHERE kind NOT IN (?, ?) OR replaced >= revision OR resource NOT IN (SELECT id FROM resources) LIMIT ?`);
  for (const revision of strange.pluck().all(put, tombstone, problemsMax)) found(`the row of revision ${revision} is not a valid change`);
  const lost = database.prepare<[number, number], number>(/*sql*/ `
    SELECT revision FROM changes WHERE kind = ? AND revision NOT IN (SELECT revision FROM objects)
       AND revision NOT IN (SELECT replaced FROM changes) LIMIT ?`);
  for (const revision of lost.pluck().all(put, problemsMax)) found(`revision ${revision} is neither current nor replaced`);
  return countOf(database, 'changes');
}

/** Every row has the checksums of its content. */
function checkRows(database: Connection, found: Found): number {
  let examined = 0;
  for (const columns of database.prepare<[], BodyColumns>(/*sql*/ `SELECT ${bodyColumns} FROM changes`).raw().iterate()) {
    const row = bodyRowOf(columns);
    examined += 1;
    try {
      verifyBody(row);
    } catch (error) {
      if (!isDamage(error)) throw error;
      found(`${placeOf(row)}: ${error.message}`);
    }
  }
  return examined;
}

type CurrentRow = Pick<Key, 'cluster' | 'namespace' | 'name'> &
  Readonly<{ shard: string; high: number; low: number; version: string; bytes: Uint8Array }>;

/** Every current object has the digest of its body (`slice-table.ts` I15). */
function checkDigests(database: Connection, found: Found): number {
  const rows = database.prepare<[], CurrentRow>(/*sql*/ `
    SELECT o.shard, o.cluster, o.namespace, o.name, o.digest_high AS high, o.digest_low AS low, c.version, c.body AS bytes
    FROM objects AS o JOIN changes AS c ON c.revision = o.revision WHERE typeof(c.body) = 'blob'`);
  let examined = 0;
  for (const row of rows.iterate()) {
    examined += 1;
    const { high, low } = digestOf(row, row);
    if (high !== row.high || low !== row.low) found(`the digest of ${placeOf(row)} does not match its body`);
  }
  return examined;
}

/** A canonical path exists only while its logical cluster has objects on the shard. */
function checkPaths(database: Connection, found: Found): number {
  const idle = database.prepare<[number], { shard: string; cluster: string; path: string }>(/*sql*/ `
    SELECT shard, cluster, path FROM paths AS p
    WHERE NOT EXISTS (SELECT 1 FROM objects AS o WHERE o.cluster = p.cluster AND o.shard = p.shard) LIMIT ?`);
  for (const { shard, cluster, path } of idle.all(problemsMax))
    found(`the path ${path} leads to ${cluster} on ${shard}, which has no objects there`);
  return countOf(database, 'paths');
}

type Place = Pick<ChangeRow, 'shard' | 'cluster' | 'namespace' | 'name'>;

function placeOf({ shard, cluster, namespace, name }: Place): string {
  return [shard, cluster, namespace, name].map((part) => JSON.stringify(part)).join('/');
}

function countOf(database: Connection, table: 'objects' | 'slices' | 'changes' | 'paths'): number {
  return database.prepare<[], number>(/*sql*/ `SELECT count(*) FROM ${table}`).pluck().get() ?? 0;
}
