/**
 * What each slice holds and how far it is stated: the table `slices`, held in memory as well and written once per commit and slice
 * that the commit touched.
 *
 * I15 A slice counts exactly its objects and the bytes of their bodies, and sums up exactly their digests, whoever wrote them. A
 *     slice that holds nothing and was never stated has no row. Bound: one row per shard and type.
 */
import assert from 'node:assert/strict';
import { addDigest, emptyDigest, formatDigest, subtractDigest, type Digest } from '../../domain/digest.js';
import { isForgotten, type Incarnation, type SliceState } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import type { Connection } from './database.js';
import type { NumberedSlice, SliceRange } from './statements.js';

/** What a change has put into a slice, or taken out. */
export type Counted = Readonly<{ bytes: number; digest: Digest }>;

type Facts = { objects: number; bytes: number; digest: Digest; changedMs: number; stated: Incarnation; synced: boolean; edge: string };

type Row = Facts & { readonly id: number; readonly slice: Slice };

const nothing: Facts = { objects: 0, bytes: 0, digest: emptyDigest, changedMs: 0, stated: 0, synced: false, edge: '' };

export class SliceTable {
  readonly #statements: ReturnType<typeof prepare>;
  readonly #rows = new Map<ShardName, Map<number, Row>>();
  /** What the commit under way has touched, as it was. */
  readonly #before = new Map<Row, Facts | undefined>();
  #nowMs = 0;

  constructor(database: Connection) {
    this.#statements = prepare(database);
    for (const row of readRows(database)) this.#add(row);
  }

  /** Begins a commit: what changes from here on changed now. */
  open(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  /** A change of the slice has put one object in the place of another; undefined where there is or was none. */
  count(slice: Slice, id: number, put: Counted | undefined, taken: Counted | undefined): void {
    const row = this.#touch(slice, id);
    row.changedMs = this.#nowMs;
    if (put !== undefined) {
      row.objects += 1;
      row.bytes += put.bytes;
      row.digest = addDigest(row.digest, put.digest);
    }
    if (taken === undefined) return;
    row.objects -= 1;
    row.bytes -= taken.bytes;
    row.digest = subtractDigest(row.digest, taken.digest);
  }

  /** `edge`: of the link that has stated it; '' for a pusher. */
  state(slice: Slice, id: number, incarnation: Incarnation, edge: string): void {
    const row = this.#touch(slice, id);
    row.stated = incarnation;
    row.synced = true;
    row.edge = edge;
  }

  /** The slice counts as not stated and as out of step, but with `edge`. */
  doubt({ shard }: Slice, id: number, edge = ''): void {
    const known = this.#rows.get(shard)?.get(id);
    if (known !== undefined) this.#doubt(known, edge);
  }

  /** So do all of a shard, for they come from another side now. */
  doubtAll(shard: ShardName): void {
    for (const row of this.#in({ shard })) this.#doubt(row);
  }

  /** All slices of the shard are out of step with the link they come over. */
  leaveStep(shard: ShardName): void {
    for (const row of this.#in({ shard })) if (row.edge !== '') this.#touch(row.slice, row.id).edge = '';
  }

  /** All slices of the shard count as stated by this incarnation, though nobody said so. */
  assume(shard: ShardName, incarnation: Incarnation): void {
    for (const row of this.#in({ shard })) {
      const { slice, id, stated, synced, edge } = row;
      // What this very commit has emptied again is no slice.
      if (!isForgotten(row) && (stated !== incarnation || !synced)) this.state(slice, id, incarnation, edge);
    }
  }

  edgeOf({ shard }: Slice, id: number): string {
    return this.#rows.get(shard)?.get(id)?.edge ?? '';
  }

  objectsOf({ shard }: Slice, id: number): number {
    return this.#rows.get(shard)?.get(id)?.objects ?? 0;
  }

  digestOf({ shard }: Slice, id: number): string {
    return formatDigest(this.#rows.get(shard)?.get(id)?.digest ?? emptyDigest);
  }

  /** All of the range counts as never stated. */
  forgetStated(range: SliceRange): void {
    for (const { slice, id, stated, synced, edge } of this.#in(range)) {
      if (stated !== 0 || synced || edge !== '') Object.assign(this.#touch(slice, id), { stated: 0, synced: false, edge: '' });
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
    for (const row of this.#before.keys()) {
      const { id, slice, objects, bytes, digest, changedMs, stated, synced, edge } = row;
      assert(objects >= 0 && bytes >= 0, 'I15');
      if (isForgotten(row)) {
        this.#statements.remove.run(slice.shard, id);
        this.#rows.get(slice.shard)?.delete(id);
      } else {
        const { high, low } = digest;
        this.#statements.set.run(slice.shard, id, objects, bytes, high, low, changedMs, stated, synced ? 1 : 0, edge);
      }
      told.push(stateOf(row));
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

  #doubt({ slice, id, stated, edge: before }: Row, edge = ''): void {
    if (stated !== 0 || before !== edge) Object.assign(this.#touch(slice, id), { stated: 0, edge });
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
      const { objects, bytes, digest, changedMs, stated, synced, edge } = known;
      this.#before.set(known, { objects, bytes, digest, changedMs, stated, synced, edge });
    }
    return known;
  }

  #add(row: Row): void {
    const { shard } = row.slice;
    const ofShard = this.#rows.get(shard) ?? new Map<number, Row>();
    this.#rows.set(shard, ofShard.set(row.id, row));
  }
}

export function readSlices(database: Connection): readonly SliceState[] {
  return readRows(database).map(stateOf);
}

function stateOf({ slice, objects, bytes, digest, changedMs, stated, synced, edge }: Row): SliceState {
  return { slice, objects, bytes, digest: formatDigest(digest), changedMs, stated, synced, edge };
}

function readRows(database: Connection): readonly Row[] {
  type Read = Omit<Facts, 'synced' | 'digest'> &
    Digest & { id: number; shard: ShardName; group: string; resource: string; identity: string; synced: number };
  return database
    .prepare<
      [],
      Read
    >(/*sql*/ `SELECT s.shard, s.resource AS id, r.api_group AS "group", r.resource, r.identity, s.objects, s.bytes, s.digest_high AS high, s.digest_low AS low,
                 s.changed_ms AS changedMs, s.stated, s.synced, s.edge
               FROM slices AS s CROSS JOIN resources AS r ON r.id = s.resource`)
    .all()
    .map(({ id, shard, group, resource, identity, synced, high, low, ...facts }) => ({
      ...facts,
      id,
      slice: { shard, resource: { group, resource, identity } },
      digest: { high, low },
      synced: synced !== 0,
    }));
}

function prepare(database: Connection) {
  return {
    set: database.prepare(/*sql*/ `INSERT INTO slices (shard, resource, objects, bytes, digest_high, digest_low, changed_ms, stated, synced, edge)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (shard, resource) DO UPDATE SET objects = excluded.objects, bytes = excluded.bytes,
                 digest_high = excluded.digest_high, digest_low = excluded.digest_low, changed_ms = excluded.changed_ms,
                 stated = excluded.stated, synced = excluded.synced, edge = excluded.edge`),
    remove: database.prepare(/*sql*/ `DELETE FROM slices WHERE shard = ? AND resource = ?`),
  };
}
