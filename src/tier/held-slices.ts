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

export type HeldSlicesParts = Readonly<{ store: Pick<Pushes, 'links'>; known: KnownShards; connection: FrameConnection }>;

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
    const links = store.links();
    // As it is now, with the position: most children hold nothing, and are not to cost a look at every slice.
    const held = [...known.shards]
      .filter(({ side }) => side === this.#side)
      .flatMap(({ shard }) => [...known.slicesOf(shard)])
      .map(({ slice, edge, stated }): HeldSlice => ({ slice, edge, stated }));
    const position = (await links).find(({ side }) => side === this.#side)?.position ?? '';
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
