/**
 * Which via and which term has a shard, and which shards were removed: the table `shards`, held in memory as well. The committer
 * decides in queue order, so that nothing of an older process, or of a neighbour that has lost the shard, slips in after a
 * newer claim. domain/claim.ts decides which of two claims has it, and which term a pusher gets that comes.
 *
 *   known                      a pusher of 7     a link at S        a plain write
 *   nothing                    fenced            fenced             makes it local, plain, term 1
 *   local, 7                   passes            fenced             passes
 *   local, another             fenced            fenced             passes
 *   via S, whatever term       fenced            passes             refused, or takes it with the next term
 *   nobody's, of another cache fenced            fenced             refused, or takes it with the next term
 *   removed, or nobody's       fenced            fenced             makes it local, plain, with the next term
 *
 * I14 The order of what is known of a shard never falls (claim.ts R1), until the shard is forgotten. Bound: one entry per shard
 * that was ever claimed, written to or removed, and not forgotten.
 */
import { arrived, claimed, judgeClaim, removedAt, unknownShard, type Arrival, type Claim, type ShardState } from '../../domain/claim.js';
import type { PushOutcome, Speaker } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import type { Via } from '../../domain/via.js';
import { isForgettable, speaksFor } from '../decide.js';
import type { Connection } from './database.js';
import { readCacheId } from './meta.js';

export type Fenced = Extract<PushOutcome, { kind: 'fenced' }>;
export type Acquired = Extract<PushOutcome, { kind: 'acquired' }>;

export class ShardTable {
  readonly #statements: ReturnType<typeof prepare>;
  readonly #shards: Map<ShardName, ShardState>;
  /** The id of this cache, the origin of what becomes local. */
  readonly own: string;
  /** What the commit under way has changed, as it was before. */
  readonly #before = new Map<ShardName, ShardState | undefined>();

  constructor(database: Connection) {
    this.#statements = prepare(database);
    this.#shards = new Map(readShards(database).map((state) => [state.shard, state]));
    this.own = readCacheId(database);
  }

  known(shard: ShardName): ShardState | undefined {
    return this.#shards.get(shard);
  }

  /** A pusher comes for its shard. */
  acquire(arrival: Arrival): Acquired | Fenced {
    const known = this.#shards.get(arrival.shard);
    const state = arrived(this.own, known, arrival);
    if (state === undefined) return { kind: 'fenced', holder: known };
    if (state !== known) this.set(state);
    return { kind: 'acquired', term: state.term };
  }

  /** Undefined when the claim takes the shard, or stands already. */
  claim(claim: Claim): Fenced | undefined {
    const known = this.#shards.get(claim.shard);
    const verdict = judgeClaim(known, claim);
    if (verdict === 'refused') return { kind: 'fenced', holder: known };
    if (verdict === 'takes') this.set(claimed(claim));
    return undefined;
  }

  /** Undefined when the speaker has the shard. */
  refuse(shard: ShardName, by: Speaker): Fenced | undefined {
    const known = this.#shards.get(shard);
    if (known !== undefined && speaksFor(by, known)) return undefined;
    return { kind: 'fenced', holder: known };
  }

  remove(shard: ShardName, nowMs: number): void {
    this.set(removedAt(this.own, this.#shards.get(shard), { shard, nowMs }));
  }

  /** Undefined when the shard is forgotten: it was removed, and holds nothing. */
  forget(shard: ShardName, holds: boolean): Fenced | undefined {
    const known = this.#shards.get(shard);
    if (!isForgettable(known, holds)) return { kind: 'fenced', holder: known };
    this.#note(shard);
    this.#shards.delete(shard);
    this.#statements.remove.run(shard);
    return undefined;
  }

  /** The shards of a neighbour. */
  of(via: Via): readonly ShardState[] {
    return [...this.#shards.values()].filter((state) => state.via === via);
  }

  /** What the commit under way has changed. */
  get changed(): readonly ShardState[] {
    return [...this.#before.keys()].map((shard) => this.#shards.get(shard) ?? unknownShard(shard));
  }

  keep(): void {
    this.#before.clear();
  }

  undo(): void {
    for (const [shard, before] of this.#before) {
      if (before === undefined) this.#shards.delete(shard);
      else this.#shards.set(shard, before);
    }
    this.#before.clear();
  }

  set(state: ShardState): void {
    const { shard, term, process, removed, origin, via, plain } = state;
    this.#note(shard);
    this.#shards.set(shard, state);
    this.#statements.set.run(shard, term, process, removed ? 1 : 0, origin, via ?? '', plain ? 1 : 0);
  }

  #note(shard: ShardName): void {
    if (!this.#before.has(shard)) this.#before.set(shard, this.#shards.get(shard));
  }
}

export function readShards(database: Connection): readonly ShardState[] {
  type Row = Omit<ShardState, 'via' | 'removed' | 'plain'> & { via: Via | ''; removed: number; plain: number };
  return database
    .prepare<[], Row>(/*sql*/ `SELECT shard, term, process, removed, origin, via, plain FROM shards`)
    .all()
    .map(({ via, removed, plain, ...known }) => ({
      ...known,
      via: via === '' ? undefined : via,
      removed: removed !== 0,
      plain: plain !== 0,
    }));
}

function prepare(database: Connection) {
  return {
    remove: database.prepare(/*sql*/ `DELETE FROM shards WHERE shard = ?`),
    set: database.prepare(/*sql*/ `INSERT INTO shards (shard, term, process, removed, origin, via, plain) VALUES (?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (shard) DO UPDATE SET term = excluded.term, process = excluded.process,
                 removed = excluded.removed, origin = excluded.origin, via = excluded.via, plain = excluded.plain`),
  };
}
