/**
 * What each slice holds and how far it is stated: the table `slices`, held in memory as well and written once per commit and slice
 * that the commit touched.
 *
 * I15 A slice counts exactly its objects and the bytes of their bodies, whoever wrote them. A slice that holds nothing and was
 *     never stated has no row. Bound: one row per shard and type.
 */
import assert from 'node:assert/strict';
import type { Incarnation, SliceState } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import type { Connection } from './database.js';
import type { NumberedSlice, SliceRange } from './statements.js';

type Facts = { objects: number; bytes: number; changedMs: number; stated: Incarnation; synced: boolean };

type Row = Facts & { readonly id: number; readonly slice: Slice };

const nothing: Facts = { objects: 0, bytes: 0, changedMs: 0, stated: 0, synced: false };

export class SliceTable {
  readonly #statements: ReturnType<typeof prepare>;
  readonly #rows = new Map<ShardName, Map<number, Row>>();
  /** What the commit under way has touched, as it was. */
  readonly #before = new Map<Row, Facts | undefined>();
  #nowMs = 0;

  constructor(database: Connection) {
    this.#statements = prepare(database);
    for (const { id, ...state } of readSlices(database)) this.#add({ id, ...state });
  }

  /** Begins a commit: what changes from here on changed now. */
  open(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  /** A change of the slice has made it hold that many more, or fewer. */
  count(slice: Slice, id: number, objects: number, bytes: number): void {
    const row = this.#touch(slice, id);
    row.objects += objects;
    row.bytes += bytes;
    row.changedMs = this.#nowMs;
  }

  state(slice: Slice, id: number, incarnation: Incarnation): void {
    const row = this.#touch(slice, id);
    row.stated = incarnation;
    row.synced = true;
  }

  /** The slice counts as not stated. */
  doubt({ shard, resource }: Slice, id: number): void {
    const known = this.#rows.get(shard)?.get(id);
    if (known !== undefined && known.stated !== 0) this.#touch({ shard, resource }, id).stated = 0;
  }

  /** All of the range counts as never stated. */
  forgetStated(range: SliceRange): void {
    for (const { slice, id, stated, synced } of this.#in(range)) {
      if (stated !== 0 || synced) Object.assign(this.#touch(slice, id), { stated: 0, synced: false });
    }
  }

  /** The slices of the range that hold objects, by shard and id. */
  held(range: SliceRange): readonly NumberedSlice[] {
    return this.#in(range)
      .filter(({ objects }) => objects > 0)
      .map(({ id, slice }) => ({ id, slice }))
      .toSorted((a, b) => a.id - b.id || (a.slice.shard < b.slice.shard ? -1 : 1));
  }

  /** Writes what the commit has touched, and tells it. */
  write(): readonly SliceState[] {
    const told: SliceState[] = [];
    for (const { id, ...state } of this.#before.keys()) {
      const { slice, objects, bytes, changedMs, stated, synced } = state;
      assert(objects >= 0 && bytes >= 0, 'I15');
      if (isForgotten(state)) {
        this.#statements.remove.run(slice.shard, id);
        this.#rows.get(slice.shard)?.delete(id);
      } else this.#statements.set.run(slice.shard, id, objects, bytes, changedMs, stated, synced ? 1 : 0);
      told.push(state);
    }
    return told;
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
      const { objects, bytes, changedMs, stated, synced } = known;
      this.#before.set(known, { objects, bytes, changedMs, stated, synced });
    }
    return known;
  }

  #add(row: Row): void {
    const { shard } = row.slice;
    const ofShard = this.#rows.get(shard) ?? new Map<number, Row>();
    this.#rows.set(shard, ofShard.set(row.id, row));
  }
}

/** Whether nothing is left to tell of a slice. */
export function isForgotten({ objects, stated, synced }: Pick<SliceState, 'objects' | 'stated' | 'synced'>): boolean {
  return objects === 0 && stated === 0 && !synced;
}

export function readSlices(database: Connection): readonly (SliceState & Readonly<{ id: number }>)[] {
  type Read = Omit<Facts, 'synced'> & { id: number; shard: ShardName; group: string; resource: string; identity: string; synced: number };
  return database
    .prepare<
      [],
      Read
    >(/*sql*/ `SELECT s.shard, s.resource AS id, r.api_group AS "group", r.resource, r.identity, s.objects, s.bytes, s.changed_ms AS changedMs, s.stated, s.synced
               FROM slices AS s CROSS JOIN resources AS r ON r.id = s.resource`)
    .all()
    .map(({ id, shard, group, resource, identity, synced, ...facts }) => ({
      ...facts,
      id,
      slice: { shard, resource: { group, resource, identity } },
      synced: synced !== 0,
    }));
}

function prepare(database: Connection) {
  return {
    set: database.prepare(/*sql*/ `INSERT INTO slices (shard, resource, objects, bytes, changed_ms, stated, synced) VALUES (?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (shard, resource) DO UPDATE SET objects = excluded.objects, bytes = excluded.bytes, changed_ms = excluded.changed_ms, stated = excluded.stated, synced = excluded.synced`),
    remove: database.prepare(/*sql*/ `DELETE FROM slices WHERE shard = ? AND resource = ?`),
  };
}
