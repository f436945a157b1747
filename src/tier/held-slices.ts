/**
 * Sends the cache at the other end what is held here of what comes over this link, so that it resumes from there, and syncs as empty what
 * does not cross any more. What another neighbour holds, and of which nothing is known here, is among it: that neighbour can be sent an `end`
 * only once this cache has one.
 * Bound: `askedMax` slices at a time that only others hold, a thousand of each of them at most (unknown-slices.ts).
 */
import type { Subscription } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import type { Neighbour } from '../domain/via.js';
import { frameBounds } from '../frames/frame-bounds.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { HeldSlice } from '../frames/frame.js';
import type { PublishedState } from '../domain/published-state.js';
import { AskedSlices } from './asked-slices.js';

export type HeldSlicesParts = Readonly<{
  known: PublishedState;
  /** Slices of a shard that neighbours hold, and that are to be asked about. */
  unknownOf: (shard: ShardName) => Iterable<Slice>;
  connection: FrameConnection;
}>;

const askedMax = 100_000;

export class HeldSlices {
  readonly #parts: HeldSlicesParts;
  readonly #neighbour: Neighbour;
  /** Shards of this neighbour, of which the other end knows what is held here. */
  readonly #sent = new Set<ShardName>();
  readonly #subscription: Subscription;
  /** Slices that only others hold. */
  readonly #asked = new AskedSlices(askedMax);

  constructor(parts: HeldSlicesParts, neighbour: Neighbour) {
    this.#parts = parts;
    this.#neighbour = neighbour;
    this.#subscription = parts.known.follow(({ shards, slices }) => {
      for (const state of shards) if (state.via !== neighbour || this.#isNew(state.shard)) this.#leave(state.shard);
      for (const { slice } of slices) this.#askInsteadOf(slice);
    });
  }

  isSent(shard: ShardName): boolean {
    return this.#sent.has(shard);
  }

  /** All of them, and the last position that this link brought; once, at the opening. */
  async sendAll(): Promise<void> {
    const { known, connection } = this.#parts;
    const position = known.link(this.#neighbour)?.position ?? '';
    const held: HeldSlice[] = [];
    for (const { shard, via } of known.shards) {
      if (via !== this.#neighbour) continue;
      this.#sent.add(shard);
      for (const { slice, filterHash, syncedTerm } of known.slicesOf(shard)) held.push({ slice, filterHash, syncedTerm });
      for (const slice of this.#unknownOf(shard)) held.push(slice);
    }
    for (let at = 0; at === 0 || at < held.length; at += frameBounds.namesPerFrame) {
      const isLast = at + frameBounds.namesPerFrame >= held.length;
      connection.send({ kind: 'resume', position, held: held.slice(at, at + frameBounds.namesPerFrame), isLast });
      await connection.drained();
    }
  }

  /** Those of a shard that comes from this neighbour now; what came from another one until now is stale. `sendAll` may not be done yet. */
  sendOf(shard: ShardName): void {
    const { known } = this.#parts;
    this.#sent.add(shard);
    // One that holds nothing needs an `end` as well: the other end may no longer know the slice.
    const held = [...known.slicesOf(shard)]
      .filter(({ filterHash }) => filterHash === '')
      .map(({ slice, filterHash, syncedTerm }): HeldSlice => ({ slice, filterHash, syncedTerm }));
    this.#send([...held, ...this.#unknownOf(shard)]);
  }

  /** Another neighbour holds it, and nothing is known of it here. */
  ask(slice: Slice): void {
    if (this.#sent.has(slice.shard)) this.#send(this.#heldElsewhere([slice]));
  }

  close(): void {
    this.#subscription.cancel();
  }

  #send(held: readonly HeldSlice[]): void {
    for (let at = 0; at < held.length; at += frameBounds.namesPerFrame)
      this.#parts.connection.send({ kind: 'resume', position: '', held: held.slice(at, at + frameBounds.namesPerFrame), isLast: false });
  }

  #unknownOf(shard: ShardName): readonly HeldSlice[] {
    return this.#heldElsewhere(this.#parts.unknownOf(shard));
  }

  #heldElsewhere(slices: Iterable<Slice>): readonly HeldSlice[] {
    // One may have become known in the very commit that is being followed.
    const asked = [...slices].filter((slice) => this.#parts.known.slice(slice) === undefined && this.#asked.add(slice));
    return asked.map((slice) => ({ slice, filterHash: '', syncedTerm: 0 }));
  }

  /** It is known, or its shard does not come from this neighbour any more. */
  #askInsteadOf(slice: Slice): void {
    let next = this.#asked.delete(slice);
    while (next !== undefined && !this.#sent.has(next.shard)) next = this.#asked.delete(next);
    if (next !== undefined) this.#send([{ slice: next, filterHash: '', syncedTerm: 0 }]);
  }

  /** What is asked about it is asked again when it is sent again. */
  #leave(shard: ShardName): void {
    this.#sent.delete(shard);
    for (const slice of this.#asked.of(shard)) this.#askInsteadOf(slice);
  }

  /** The shard may have left this neighbour and come back in one commit: then nothing of it is current. */
  #isNew(shard: ShardName): boolean {
    return ![...this.#parts.known.slicesOf(shard)].some(({ filterHash }) => filterHash !== '');
  }
}
