/**
 * Which incarnation holds a shard, and which shards were removed: the table `shards`, held in memory as well. Decided in the
 * committer, in queue order, so that nothing of an older process slips in behind a newer one's claim.
 *
 *   known             claim 7                     push of 7
 *   none              7                           fenced
 *   5                 7                           fenced
 *   7                 7                           passes
 *   7, removed        fenced                      fenced
 *   9                 fenced                      fenced
 *
 * I14 An incarnation never falls. Bound: one entry per shard that ever claimed or was removed.
 */
import type { Incarnation, PushOutcome, ShardState } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import type { Connection } from './database.js';

export type Fenced = Extract<PushOutcome, { kind: 'fenced' }>;

export class Fence {
  readonly #statements: ReturnType<typeof prepare>;
  readonly #shards: Map<ShardName, ShardState>;
  /** What the commit under way has changed, as it was. */
  readonly #before = new Map<ShardName, ShardState | undefined>();

  constructor(database: Connection) {
    this.#statements = prepare(database);
    this.#shards = new Map(readShards(database).map((state) => [state.shard, state]));
  }

  /** Undefined when the shard is this incarnation's now. */
  claim(shard: ShardName, incarnation: Incarnation): Fenced | undefined {
    const known = this.#shards.get(shard);
    if (known !== undefined && known.incarnation >= incarnation) return this.refuse(shard, incarnation);
    this.#set({ shard, incarnation, removed: false });
    return undefined;
  }

  /** Undefined when the shard is this incarnation's. */
  refuse(shard: ShardName, incarnation: Incarnation): Fenced | undefined {
    const known = this.#shards.get(shard);
    if (known !== undefined && known.incarnation === incarnation && !known.removed) return undefined;
    return { kind: 'fenced', holder: known?.incarnation ?? 0, removed: known?.removed ?? false };
  }

  remove(shard: ShardName, nowMs: number): void {
    this.#set({ shard, incarnation: Math.max(this.#shards.get(shard)?.incarnation ?? 0, nowMs) + 1, removed: true });
  }

  /** A plain writer, which has no incarnation, makes a removed shard one of its own. */
  revive(shard: ShardName): void {
    const known = this.#shards.get(shard);
    if (known?.removed === true) this.#set({ shard, incarnation: known.incarnation + 1, removed: false });
  }

  /** What the commit under way has changed. */
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

  #set(state: ShardState): void {
    const { shard, incarnation, removed } = state;
    if (!this.#before.has(shard)) this.#before.set(shard, this.#shards.get(shard));
    this.#shards.set(shard, state);
    this.#statements.set.run(shard, incarnation, removed ? 1 : 0);
  }
}

export function readShards(database: Connection): readonly ShardState[] {
  return database
    .prepare<[], { shard: ShardName; incarnation: Incarnation; removed: number }>(/*sql*/ `SELECT shard, incarnation, removed FROM shards`)
    .all()
    .map(({ shard, incarnation, removed }) => ({ shard, incarnation, removed: removed !== 0 }));
}

function prepare(database: Connection) {
  return {
    set: database.prepare(/*sql*/ `INSERT INTO shards (shard, incarnation, removed) VALUES (?, ?, ?)
               ON CONFLICT (shard) DO UPDATE SET incarnation = excluded.incarnation, removed = excluded.removed`),
  };
}
