/**
 * Reads the change log between two revisions, in chunks of rising revision, each in one short read
 * transaction.
 *
 * I10 No gap: a reader gets 410 as soon as its position is below the compacted revision.
 */
import { bytesOf, type Change, type MovedPath } from '../../domain/change.js';
import type { CanonicalPath } from '../../domain/cluster.js';
import { expired, Refused } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { History, LogChunk, LogType, Revisions, Touch } from '../../domain/store-port.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import { assertCovered } from '../compactor.js';
import { summedColumns, tombstone, type ChangeRow, type ChecksummedRow } from './change-row.js';
import type { Connection } from './database.js';
import type { Rows } from './rows.js';

const rowsMax = 256;
const chunkBytesMax = 256 * 1024;
/**
 * Larger for a link, because rows that were read beyond the end of a chunk are read again for the
 * next one.
 */
const everyChunkBytesMax = 1024 * 1024;

type Range = Readonly<{ after: Revision; upTo: Revision }>;

type IsWanted = (key: Key) => boolean;

type Reading = Readonly<{ isWanted: IsWanted; chunkBytesMax: number; takesMoves?: boolean }>;

/**
 * A row, and how the change moved the canonical path of its logical cluster: both null if it did
 * not; '' is no path.
 */
type LogRow = ChecksummedRow & Readonly<{ pathBefore: CanonicalPath | '' | null; pathAfter: CanonicalPath | '' | null }>;

type ChangeLogParts = Readonly<{
  revisions: Pick<Revisions, 'compacted' | 'format'>;
  turn: () => Promise<void>;
}>;

export class ChangeLog implements History {
  readonly #rows: Rows;
  readonly #revisions: ChangeLogParts['revisions'];
  readonly #turn: ChangeLogParts['turn'];
  readonly #statements: ReturnType<typeof prepare>;

  constructor(rows: Rows, { revisions, turn }: ChangeLogParts) {
    this.#rows = rows;
    this.#revisions = revisions;
    this.#turn = turn;
    this.#statements = prepare(rows.database);
  }

  async changes(type: LogType, range: Range, isWanted: IsWanted): Promise<LogChunk> {
    assertCovered(this.#revisions, range.after);
    return this.#rows.read(() => this.#chunk(this.#page(type, range), range, { isWanted, chunkBytesMax }));
  }

  async *everyChange(range: Range, isWanted: IsWanted): AsyncGenerator<LogChunk> {
    const reading = { isWanted, chunkBytesMax: everyChunkBytesMax, takesMoves: true };
    let position = range.after;
    while (position < range.upTo) {
      assertCovered(this.#revisions, position);
      const rest = { after: position, upTo: range.upTo };
      const chunk = this.#rows.read(() => this.#chunk(this.#everything(rest), rest, reading));
      position = chunk.upTo;
      yield chunk;
      await this.#turn();
    }
  }

  /** In SQLite, each change has a revision of its own. */
  hasSeveral(): boolean {
    return false;
  }

  /**
   * The log keeps all deletes above `tombstones_from`, which compaction may have raised further
   * than this thread knows.
   */
  remembers(after: Revision): boolean {
    return after >= (this.#statements.rememberedFrom.get() ?? 0);
  }

  /**
   * Reads the rows of the range that still exist: the newest row of each key, and all remembered
   * tombstones. If a key's newest row is above `upTo`, the key's last row in the range exists while
   * `upTo` is covered.
   */
  async *touched(scope: Scope, { after, upTo }: Range): AsyncGenerator<readonly Touch[]> {
    for (let end = upTo; end > after;) {
      assertCovered(this.#revisions, upTo);
      const rows = this.#rows.read(() => {
        if (!this.remembers(after))
          throw new Refused(expired(`the store no longer remembers what was deleted since ${this.#revisions.format(after)}`));
        return this.#pageBack(scope, { after, upTo: end });
      });
      end = rows.length < rowsMax ? after : (rows.at(-1)?.revision ?? after) - 1;
      const touched = rows.map((row) => this.#touch(row)).filter(({ key }) => matches(scope, key));
      if (touched.length > 0) yield touched;
      await this.#turn();
    }
  }

  #chunk(rows: readonly LogRow[], { upTo }: Range, { isWanted, takesMoves, chunkBytesMax: bytesMax }: Reading): LogChunk {
    const changes: Change[] = [];
    let bytes = 0;
    for (const row of rows) {
      const key = this.#rows.key(row);
      if (!isWanted(key) && !(takesMoves === true && row.pathBefore !== null)) continue;
      const change = this.#moved(row, this.#change(row, key));
      if (change === undefined) continue;
      changes.push(change);
      bytes += bytesOf(change);
      if (bytes >= bytesMax) return { changes, upTo: row.revision };
    }
    return { changes, upTo: rows.length < rowsMax ? upTo : (rows.at(-1)?.revision ?? upTo) };
  }

  /** The change of a row; undefined if the row was a put and has been compacted. */
  #change(row: ChangeRow, key: Key): Change | undefined {
    const { revision, replaced } = row;
    const previous = once(() => this.#rows.object(replaced));
    if (row.kind === tombstone) return { kind: 'delete', key, revision, resourceVersion: this.#revisions.format(revision), previous };
    const object = this.#rows.object(revision);
    return object && { kind: 'put', key, revision, object, created: replaced === 0, previous };
  }

  #moved({ pathBefore, pathAfter }: LogRow, change: Change | undefined): Change | undefined {
    if (change === undefined || pathBefore === null || pathAfter === null) return change;
    const movedPath: MovedPath = { before: pathBefore === '' ? undefined : pathBefore, after: pathAfter === '' ? undefined : pathAfter };
    return { ...change, movedPath };
  }

  #touch(row: ChangeRow): Touch {
    const kind = row.kind === tombstone ? 'delete' : 'put';
    return { key: this.#rows.key(row), kind, object: () => (kind === 'put' ? this.#rows.object(row.revision) : undefined) };
  }

  #pageBack(type: LogType, { after, upTo }: Range): readonly ChangeRow[] {
    const ids = this.#rows.resourceIds(type, 2);
    const [only] = ids;
    if (only === undefined) return [];
    const range = { after, upTo, isFalling: true };
    return ids.length === 1
      ? this.#rows.verifyRows(this.#statements.ofResourceBack.all(only, after, upTo, rowsMax), { ...range, resource: only })
      : this.#rows.verifyRows(this.#statements.ofAllBack.all(after, upTo, rowsMax), range);
  }

  #page(type: LogType, { after, upTo }: Range): readonly LogRow[] {
    const ids = this.#rows.resourceIds(type, 2);
    const [only] = ids;
    if (only === undefined) return [];
    if (ids.length > 1) return this.#everything({ after, upTo });
    return this.#rows.verifyRows(this.#statements.ofResource.all(only, after, upTo, rowsMax), { resource: only, after, upTo });
  }

  #everything({ after, upTo }: Range): readonly LogRow[] {
    return this.#rows.verifyRows(this.#statements.ofAll.all(after, upTo, rowsMax), { after, upTo });
  }
}

function once<T>(read: () => T): () => T {
  let memo: { value: T } | undefined;
  return () => (memo ??= { value: read() }).value;
}

function prepare(database: Connection) {
  const columns = `c.${summedColumns.replaceAll(', ', ', c.')}, m.before AS pathBefore, m.after AS pathAfter`;
  return {
    rememberedFrom: database.prepare<[], Revision>(/*sql*/ `SELECT value FROM meta WHERE name = 'tombstones_from'`).pluck(),
    ofResource: database.prepare<
      [number, Revision, Revision, number],
      LogRow
    >(/*sql*/ `SELECT ${columns} FROM changes AS c INDEXED BY changes_by_resource LEFT JOIN path_moves AS m ON m.revision = c.revision
               WHERE c.resource = ? AND c.revision > ? AND c.revision <= ? ORDER BY c.revision LIMIT ?`),
    ofResourceBack: database.prepare<
      [number, Revision, Revision, number],
      ChecksummedRow
    >(/*sql*/ `SELECT ${summedColumns} FROM changes INDEXED BY changes_by_resource
               WHERE resource = ? AND revision > ? AND revision <= ? ORDER BY revision DESC LIMIT ?`),
    ofAllBack: database.prepare<[Revision, Revision, number], ChecksummedRow>(
      /*sql*/ `SELECT ${summedColumns} FROM changes WHERE revision > ? AND revision <= ? ORDER BY revision DESC LIMIT ?`,
    ),
    ofAll: database.prepare<
      [Revision, Revision, number],
      LogRow
    >(/*sql*/ `SELECT ${columns} FROM changes AS c LEFT JOIN path_moves AS m ON m.revision = c.revision
               WHERE c.revision > ? AND c.revision <= ? ORDER BY c.revision LIMIT ?`),
  };
}
