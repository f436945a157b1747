/**
 * Tells the cache at the other end what is held here of what comes over this link, so that it goes on from there, and lets go of what
 * does not cross any more.
 */
import type { Pushes, Subscription } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { LinkSide } from '../domain/side.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { HeldSlice } from '../frames/frame.js';
import type { KnownShards } from '../intake/known-shards.js';

export type HeldSlicesParts = Readonly<{ store: Pick<Pushes, 'links' | 'follow'>; known: KnownShards; connection: FrameConnection }>;

const slicesPerFrame = 1_000;

export class HeldSlices {
  readonly #parts: HeldSlicesParts;
  readonly #side: LinkSide;
  /** Shards of this side, of which the other end knows what is held here. */
  readonly #told = new Set<ShardName>();
  readonly #subscription: Subscription;

  constructor(parts: HeldSlicesParts, side: LinkSide) {
    this.#parts = parts;
    this.#side = side;
    this.#subscription = parts.store.follow(({ shards }) => {
      for (const state of shards) if (state.side !== side || this.#isNew(state.shard)) this.#told.delete(state.shard);
    });
  }

  isTold(shard: ShardName): boolean {
    return this.#told.has(shard);
  }

  /** All of them, and up to where this link was told; once, at the opening. */
  async tellAll(): Promise<void> {
    const { store, known, connection } = this.#parts;
    const position = (await store.links()).find(({ side }) => side === this.#side)?.position ?? '';
    const held: HeldSlice[] = [];
    for (const { shard, side } of known.shards) {
      if (side !== this.#side) continue;
      this.#told.add(shard);
      for (const { slice, edge, stated } of known.slicesOf(shard)) held.push({ slice, edge, stated });
    }
    for (let at = 0; at === 0 || at < held.length; at += slicesPerFrame) {
      const isLast = at + slicesPerFrame >= held.length;
      connection.send({ kind: 'resume', position, held: held.slice(at, at + slicesPerFrame), isLast });
      await connection.drained();
    }
  }

  /** Those of a shard that has come to this side; what was another side's until now is out of step. All may not be told yet. */
  tellOf(shard: ShardName): void {
    const { known, connection } = this.#parts;
    this.#told.add(shard);
    // One that holds nothing is in need of an `end` as well: the other end may know nothing of it any more.
    const held = [...known.slicesOf(shard)]
      .filter(({ edge }) => edge === '')
      .map(({ slice, edge, stated }): HeldSlice => ({ slice, edge, stated }));
    if (held.length > 0) connection.send({ kind: 'resume', position: '', held, isLast: false });
  }

  close(): void {
    this.#subscription.cancel();
  }

  /** It may have left this side and come back in one commit: then nothing of it is in step. */
  #isNew(shard: ShardName): boolean {
    return ![...this.#parts.known.slicesOf(shard)].some(({ edge }) => edge !== '');
  }
}
