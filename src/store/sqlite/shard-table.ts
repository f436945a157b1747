/**
 * Which via and which term a shard has, and which shards were removed (the table `shards`, also
 * held in memory). The committer decides in queue order. So after a newer claim, no push of an
 * older process, or of a neighbour that has lost the shard, takes effect. domain/claim.ts decides
 * which of two claims has the shard, and which term a new pusher gets.
 *
 *   known                       pusher, term 7   link to S   plain write
 *   nothing                     fenced           fenced      makes it local, plain, term 1
 *   local, term 7               accepted         fenced      accepted
 *   local, another term         fenced           fenced      accepted
 *   via S, any term             fenced           accepted    refused, or takes it, next term
 *   no via, of another cache    fenced           fenced      refused, or takes it, next term
 *   removed, or no via          fenced           fenced      makes it local, plain, next term
 *
 * I14 No state that is earlier in the order of claims replaces a later one (claim.ts R1).
 *
 * Bound: one entry per shard that was ever claimed, written to or removed.
 */
import { arrived, claimed, decideClaim, removedAt, type Arrival, type Claim, type ShardState } from '../../domain/claim.js';
import type { PushOutcome, Speaker } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import type { Via } from '../../domain/via.js';
import { speaksFor } from '../decide.js';
import type { Connection } from './database.js';
import { readCacheId } from './life.js';

export type Fenced = Extract<PushOutcome, { kind: 'fenced' }>;
export type Acquired = Extract<PushOutcome, { kind: 'acquired' }>;

export class ShardTable {
  readonly #statements: ReturnType<typeof prepare>;
  readonly #shards: Map<ShardName, ShardState>;
  /** This cache's id, which is the origin of shards that become local. */
  readonly own: string;
  /** The shards that the commit under way has changed, as they were before the commit. */
  readonly #before = new Map<ShardName, ShardState | undefined>();

  constructor(database: Connection) {
    this.#statements = prepare(database);
    this.#shards = new Map(readShards(database).map((state) => [state.shard, state]));
    this.own = readCacheId(database);
  }

  known(shard: ShardName): ShardState | undefined {
    return this.#shards.get(shard);
  }

  acquire(arrival: Arrival): Acquired | Fenced {
    const known = this.#shards.get(arrival.shard);
    const state = arrived(this.own, known, arrival);
    if (state === undefined) return { kind: 'fenced', holder: known };
    if (state !== known) this.set(state);
    return { kind: 'acquired', term: state.term };
  }

  /** Undefined if the claim is accepted, or if the shard already has it. */
  claim(claim: Claim): Fenced | undefined {
    const known = this.#shards.get(claim.shard);
    const verdict = decideClaim(known, claim);
    if (verdict === 'refused') return { kind: 'fenced', holder: known };
    if (verdict === 'takes') this.set(claimed(claim));
    return undefined;
  }

  /** Undefined if the speaker has the shard. */
  refuse(shard: ShardName, by: Speaker): Fenced | undefined {
    const known = this.#shards.get(shard);
    if (known !== undefined && speaksFor(by, known)) return undefined;
    return { kind: 'fenced', holder: known };
  }

  remove(shard: ShardName, nowMs: number): void {
    this.set(removedAt(this.own, this.#shards.get(shard), { shard, nowMs }));
  }

  withVia(via: Via): readonly ShardState[] {
    return [...this.#shards.values()].filter((state) => state.via === via);
  }

  get changed(): readonly ShardState[] {
    return [...this.#before.keys()].flatMap((shard) => this.#shards.get(shard) ?? []);
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
    if (!this.#before.has(shard)) this.#before.set(shard, this.#shards.get(shard));
    this.#shards.set(shard, state);
    this.#statements.set.run(shard, term, process, removed ? 1 : 0, origin, via ?? '', plain ? 1 : 0);
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
    set: database.prepare(/*sql*/ `INSERT INTO shards (shard, term, process, removed, origin, via, plain) VALUES (?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (shard) DO UPDATE SET term = excluded.term, process = excluded.process,
                 removed = excluded.removed, origin = excluded.origin, via = excluded.via, plain = excluded.plain`),
  };
}
