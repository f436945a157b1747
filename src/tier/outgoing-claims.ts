/**
 * The claims that one link is to tell: of every shard that the policies cover and whose side is not the other end, at the opening and
 * whenever one has changed; and of those that were removed. Bound: one entry per shard.
 */
import type { ShardName } from '../domain/shard.js';
import { flows, type LinkSide } from '../domain/side.js';
import type { FrameOf } from '../frames/frame.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { Edges } from './edges.js';

const shardsPerTurn = 500;

export class OutgoingClaims {
  readonly #known: KnownShards;
  readonly #to: LinkSide;
  readonly #due = new Set<ShardName>();

  constructor(known: KnownShards, to: LinkSide) {
    this.#known = known;
    this.#to = to;
    this.addAll();
  }

  add(shard: ShardName): void {
    this.#due.add(shard);
  }

  addAll(): void {
    for (const { shard } of this.#known.shards) this.#due.add(shard);
  }

  get isDue(): boolean {
    return this.#due.size > 0;
  }

  /** What is to be told in one turn of the event loop; it is not due any more. */
  take(edges: Edges): readonly FrameOf<'claim'>[] {
    const claims: FrameOf<'claim'>[] = [];
    let looked = 0;
    for (const shard of this.#due) {
      if (looked >= shardsPerTurn) break;
      looked += 1;
      this.#due.delete(shard);
      const state = this.#known.shard(shard);
      if (state === undefined || !edges.coverShard(shard) || !(state.removed || flows(state.side, this.#to))) continue;
      const { incarnation, moves, removed } = state;
      claims.push({ kind: 'claim', shard, incarnation, moves, removed });
    }
    return claims;
  }
}
