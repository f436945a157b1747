/**
 * The claims that one link is to tell: of every shard that the policies cover and whose side is not the other end, at the opening and
 * whenever one has changed; and of those that were removed. Bound: one entry per shard.
 */
import type { ShardName } from '../domain/shard.js';
import { flows, type LinkSide } from '../domain/side.js';
import type { FrameOf } from '../frames/frame.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { Edges } from './edges.js';

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

  /** What is to be told now; it is not due any more. */
  take(edges: Edges): readonly FrameOf<'claim'>[] {
    const claims: FrameOf<'claim'>[] = [];
    for (const shard of this.#due) {
      const state = this.#known.shard(shard);
      if (state === undefined || !edges.coverShard(shard) || !(state.removed || flows(state.side, this.#to))) continue;
      const { incarnation, moves, removed } = state;
      claims.push({ kind: 'claim', shard, incarnation, moves, removed });
    }
    this.#due.clear();
    return claims;
  }
}
