/**
 * Tells the cache at the other end what is held here of what comes over this link, so that it goes on from there, and lets go of what
 * does not cross any more.
 */
import type { Pushes } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { LinkSide } from '../domain/side.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { HeldSlice } from '../frames/frame.js';
import type { KnownShards } from '../intake/known-shards.js';

export type HeldSlicesParts = Readonly<{ store: Pick<Pushes, 'links' | 'slices'>; known: KnownShards; connection: FrameConnection }>;

const slicesPerFrame = 1_000;

export class HeldSlices {
  readonly #parts: HeldSlicesParts;
  readonly #side: LinkSide;

  constructor(parts: HeldSlicesParts, side: LinkSide) {
    this.#parts = parts;
    this.#side = side;
  }

  /** All of them, and up to where this link was told; once, at the opening. */
  async tellAll(): Promise<void> {
    const { store, known, connection } = this.#parts;
    const [links, slices] = await Promise.all([store.links(), store.slices()]);
    const position = links.find(({ side }) => side === this.#side)?.position ?? '';
    const held = slices
      .filter(({ slice }) => known.shard(slice.shard)?.side === this.#side)
      .map(({ slice, edge, stated }): HeldSlice => ({ slice, edge, stated }));
    for (let at = 0; at === 0 || at < held.length; at += slicesPerFrame) {
      const isLast = at + slicesPerFrame >= held.length;
      connection.send({ kind: 'resume', position, held: held.slice(at, at + slicesPerFrame), isLast });
      await connection.drained();
    }
  }

  /** Those of a shard that has come to this link's side; what was another side's until now is out of step. All may not be told yet. */
  tellOf(shard: ShardName): void {
    const { known, connection } = this.#parts;
    const held = [...known.slicesOf(shard)]
      .filter(({ edge, objects }) => edge === '' && objects > 0)
      .map(({ slice, edge, stated }): HeldSlice => ({ slice, edge, stated }));
    if (held.length > 0) connection.send({ kind: 'resume', position: '', held, isLast: false });
  }
}
