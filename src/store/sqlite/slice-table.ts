/**
 * The counts of each slice, and whether it is synced (the table `slices`, also in memory). A commit
 * writes each slice that it changed once.
 *
 * I15 A row has exactly the number of the slice's objects, the bytes of their bodies and the sum of
 *     their digests, whoever wrote them. An empty slice that was never synced has no row.
 *
 * Bound: one row per shard and type.
 */
import assert from 'node:assert/strict';
import { entryOf } from '../../domain/base/entry-of.js';
import { addDigest, emptyDigest, formatDigest, subtractDigest, type Digest } from '../../domain/slices/digest.js';
import { isForgotten, type SliceState } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import { neverSynced, sameFacts, type SliceFacts } from '../decide.js';
import type { Connection } from './database.js';
import type { NumberedSlice, SliceRange } from '../syncs.js';

/** What a change adds to a slice, or removes from it. */
export type Counted = Readonly<{ bytes: number; digest: Digest }>;

type Facts = { -readonly [Name in keyof SliceFacts]: SliceFacts[Name] } & {
  objects: number;
  bytes: number;
  digest: Digest;
  changedMs: number;
};

type Rule = (facts: Readonly<Facts>) => SliceFacts;

type Row = Facts & { readonly id: number; readonly slice: Slice };

const nothing: Facts = {
  objects: 0,
  bytes: 0,
  digest: emptyDigest,
  changedMs: 0,
  ...neverSynced,
};

export class SliceTable {
  readonly #statements: ReturnType<typeof prepare>;
  readonly #rows = new Map<ShardName, Map<number, Row>>();
  /** The slices that the commit under way has changed, as they were before the commit. */
  readonly #before = new Map<Row, Facts | undefined>();
  #nowMs = 0;

  constructor(database: Connection) {
    this.#statements = prepare(database);
    for (const row of readRows(database)) this.#add(row);
  }

  /** Begins a commit. `nowMs` is the time of its changes. */
  open(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  /**
   * Counts a change that replaced the object `taken` by the object `put`. Undefined: there is none.
   */
  count(slice: Slice, id: number, put: (Counted & Pick<SliceState, 'cameOver'>) | undefined, taken: Counted | undefined): void {
    const row = this.#touch(slice, id);
    row.changedMs = this.#nowMs;
    if (put !== undefined) {
      row.objects += 1;
      row.bytes += put.bytes;
      row.digest = addDigest(row.digest, put.digest);
      row.cameOver = put.cameOver;
    }
    if (taken === undefined) return;
    row.objects -= 1;
    row.bytes -= taken.bytes;
    row.digest = subtractDigest(row.digest, taken.digest);
  }

  set(slice: Slice, id: number, facts: SliceFacts): void {
    Object.assign(this.#touch(slice, id), facts);
  }

  /** Derives new facts from the known ones. Does nothing for an unknown slice. */
  updateFacts({ shard }: Slice, id: number, rule: Rule): void {
    const known = this.#rows.get(shard)?.get(id);
    if (known !== undefined) this.#updateRow(known, rule);
  }

  updateAllFacts(range: SliceRange, rule: Rule): void {
    for (const row of this.#in(range)) this.#updateRow(row, rule);
  }

  facts({ shard }: Slice, id: number): SliceFacts {
    return this.#rows.get(shard)?.get(id) ?? neverSynced;
  }

  objectsOf({ shard }: Slice, id: number): number {
    return this.#rows.get(shard)?.get(id)?.objects ?? 0;
  }

  digestOf({ shard }: Slice, id: number): string {
    return formatDigest(this.#rows.get(shard)?.get(id)?.digest ?? emptyDigest);
  }

  /**
   * The slices of the range that have objects, ordered by text. Types get ids in order of arrival,
   * so an order by id could differ after a restart.
   */
  withObjects(range: SliceRange): readonly NumberedSlice[] {
    return this.#in(range)
      .filter(({ objects }) => objects > 0)
      .map(({ id, slice }) => ({ id, slice }))
      .toSorted((a, b) => (formatSlice(a.slice) < formatSlice(b.slice) ? -1 : 1));
  }

  /** Writes and returns the slices that the commit has changed. */
  write(): readonly SliceState[] {
    const changed: SliceState[] = [];
    for (const row of this.#before.keys()) {
      const { id, slice, objects, bytes, digest, changedMs, syncedTerm, everSynced, filterHash, cameOver } = row;
      assert(objects >= 0 && bytes >= 0, 'I15');
      if (isForgotten(row)) {
        this.#statements.remove.run(slice.shard, id);
        this.#rows.get(slice.shard)?.delete(id);
      } else {
        const { high, low } = digest;
        const synced = [syncedTerm, everSynced ? 1 : 0, filterHash, cameOver];
        this.#statements.set.run(slice.shard, id, objects, bytes, high, low, changedMs, ...synced);
      }
      changed.push(stateOf(row));
    }
    return changed;
  }

  keep(): void {
    this.#before.clear();
  }

  undo(): void {
    for (const [row, before] of this.#before) {
      if (before === undefined) this.#rows.get(row.slice.shard)?.delete(row.id);
      else this.#add(Object.assign(row, before));
    }
    this.#before.clear();
  }

  #updateRow(row: Row, rule: Rule): void {
    const { syncedTerm, everSynced, filterHash, cameOver } = rule(row);
    const now = { syncedTerm, everSynced, filterHash, cameOver };
    if (!sameFacts(row, now)) Object.assign(this.#touch(row.slice, row.id), now);
  }

  #in(range: SliceRange): readonly Row[] {
    if ('shard' in range) return [...(this.#rows.get(range.shard)?.values() ?? [])];
    return [...this.#rows.values()].flatMap((ofShard) => ofShard.get(range.resource) ?? []);
  }

  #touch(slice: Slice, id: number): Row {
    const known = this.#rows.get(slice.shard)?.get(id);
    if (known === undefined) {
      const row: Row = { ...nothing, id, slice: { shard: slice.shard, resource: slice.resource } };
      this.#add(row);
      this.#before.set(row, undefined);
      return row;
    }
    if (!this.#before.has(known)) {
      const { objects, bytes, digest, changedMs, syncedTerm, everSynced, filterHash, cameOver } = known;
      this.#before.set(known, { objects, bytes, digest, changedMs, syncedTerm, everSynced, filterHash, cameOver });
    }
    return known;
  }

  #add(row: Row): void {
    entryOf(this.#rows, row.slice.shard, () => new Map<number, Row>()).set(row.id, row);
  }
}

export function readSlices(database: Connection): readonly SliceState[] {
  return readRows(database).map(stateOf);
}

function stateOf({ slice, objects, bytes, digest, changedMs, syncedTerm, everSynced, filterHash, cameOver }: Row): SliceState {
  return { slice, objects, bytes, digest: formatDigest(digest), changedMs, syncedTerm, everSynced, filterHash, cameOver };
}

function readRows(database: Connection): readonly Row[] {
  type Read = Omit<Facts, 'everSynced' | 'digest'> &
    Digest & { id: number; shard: ShardName; group: string; resource: string; identity: string; everSynced: number };
  return database
    .prepare<
      [],
      Read
    >(/*sql*/ `SELECT s.shard, s.resource AS id, r.api_group AS "group", r.resource, r.identity, s.objects, s.bytes, s.digest_high AS high, s.digest_low AS low,
                 s.changed_ms AS changedMs, s.synced_term AS syncedTerm, s.ever_synced AS everSynced, s.filter_hash AS filterHash, s.came_over AS cameOver
               FROM slices AS s CROSS JOIN resources AS r ON r.id = s.resource`)
    .all()
    .map(({ id, shard, group, resource, identity, everSynced, high, low, ...facts }) => ({
      ...facts,
      id,
      slice: { shard, resource: { group, resource, identity } },
      digest: { high, low },
      everSynced: everSynced !== 0,
    }));
}

function prepare(database: Connection) {
  return {
    set: database.prepare(/*sql*/ `INSERT INTO slices (shard, resource, objects, bytes, digest_high, digest_low, changed_ms, synced_term, ever_synced, filter_hash, came_over)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (shard, resource) DO UPDATE SET objects = excluded.objects, bytes = excluded.bytes,
                 digest_high = excluded.digest_high, digest_low = excluded.digest_low, changed_ms = excluded.changed_ms,
                 synced_term = excluded.synced_term, ever_synced = excluded.ever_synced, filter_hash = excluded.filter_hash,
                 came_over = excluded.came_over`),
    remove: database.prepare(/*sql*/ `DELETE FROM slices WHERE shard = ? AND resource = ?`),
  };
}
