/**
 * Sends the cache at the other end what is held here of what comes over this link, so that it resumes from there, and syncs as empty what
 * does not cross any more.
 */
import type { Pushes, Subscription } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { Neighbour } from '../domain/via.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { HeldSlice } from '../frames/frame.js';
import type { KnownShards } from '../intake/known-shards.js';

export type HeldSlicesParts = Readonly<{ store: Pick<Pushes, 'links' | 'follow'>; known: KnownShards; connection: FrameConnection }>;

const slicesPerFrame = 1_000;

export class HeldSlices {
  readonly #parts: HeldSlicesParts;
  readonly #neighbour: Neighbour;
  /** Shards of this neighbour, of which the other end knows what is held here. */
  readonly #sent = new Set<ShardName>();
  readonly #subscription: Subscription;

  constructor(parts: HeldSlicesParts, neighbour: Neighbour) {
    this.#parts = parts;
    this.#neighbour = neighbour;
    this.#subscription = parts.store.follow(({ shards }) => {
      for (const state of shards) if (state.via !== neighbour || this.#isNew(state.shard)) this.#sent.delete(state.shard);
    });
  }

  isSent(shard: ShardName): boolean {
    return this.#sent.has(shard);
  }

  /** All of them, and the last position that this link brought; once, at the opening. */
  async sendAll(): Promise<void> {
    const { store, known, connection } = this.#parts;
    const position = (await store.links()).find(({ neighbour }) => neighbour === this.#neighbour)?.position ?? '';
    const held: HeldSlice[] = [];
    for (const { shard, via } of known.shards) {
      if (via !== this.#neighbour) continue;
      this.#sent.add(shard);
      for (const { slice, filterHash, syncedTerm } of known.slicesOf(shard)) held.push({ slice, filterHash, syncedTerm });
    }
    for (let at = 0; at === 0 || at < held.length; at += slicesPerFrame) {
      const isLast = at + slicesPerFrame >= held.length;
      connection.send({ kind: 'resume', position, held: held.slice(at, at + slicesPerFrame), isLast });
      await connection.drained();
    }
  }

  /** Those of a shard that comes from this neighbour now; what came from another one until now is stale. `sendAll` may not be done yet. */
  sendOf(shard: ShardName): void {
    const { known, connection } = this.#parts;
    this.#sent.add(shard);
    // One that holds nothing needs an `end` as well: the other end may no longer know the slice.
    const held = [...known.slicesOf(shard)]
      .filter(({ filterHash }) => filterHash === '')
      .map(({ slice, filterHash, syncedTerm }): HeldSlice => ({ slice, filterHash, syncedTerm }));
    if (held.length > 0) connection.send({ kind: 'resume', position: '', held, isLast: false });
  }

  close(): void {
    this.#subscription.cancel();
  }

  /** The shard may have left this neighbour and come back in one commit: then nothing of it is current. */
  #isNew(shard: ShardName): boolean {
    return ![...this.#parts.known.slicesOf(shard)].some(({ filterHash }) => filterHash !== '');
  }
}
