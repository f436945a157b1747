/**
 * Sends the neighbour an inventory: the slices here of the shards whose via is that neighbour. The
 * neighbour resumes from the inventory, and sends an empty sync of each slice that does not cross
 * any more.
 *
 * The inventory includes slices that this cache does not know and another neighbour holds. This
 * cache can send that other neighbour an `end` only once it has received an `end` itself.
 *
 * Bound: `askedMax` unknown slices at a time. Each neighbour adds at most a thousand of them
 * (unknown-slices.ts).
 */
import type { Subscription } from '../../domain/ports.js';
import type { ShardName } from '../../domain/shard.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { Neighbour } from '../../domain/via.js';
import { frameBounds } from '../../frames/frame-bounds.js';
import type { FrameConnection } from '../../frames/frame-connection.js';
import type { InventorySlice } from '../../frames/frame.js';
import type { PublishedState } from '../../domain/published-state.js';
import { NamedSlices } from '../../domain/slices/named-slices.js';
import { RequestedSlices } from './requested-slices.js';

export type InventoryParts = Readonly<{
  known: PublishedState;
  /**
   * Slices of the shard that a neighbour holds and this cache asks about, because it does not know
   * them.
   */
  unknownOf: (shard: ShardName) => Iterable<Slice>;
  connection: FrameConnection;
}>;

const askedMax = 100_000;

export class Inventory {
  readonly #parts: InventoryParts;
  readonly #neighbour: Neighbour;
  readonly #sent = new Set<ShardName>();
  readonly #subscription: Subscription;
  /** Slices that this cache does not know, and that it asks this neighbour about. */
  readonly #asked = new RequestedSlices(askedMax);

  constructor(parts: InventoryParts, neighbour: Neighbour) {
    this.#parts = parts;
    this.#neighbour = neighbour;
    this.#subscription = parts.known.follow(({ shards, slices }) => {
      for (const state of shards) if (state.via !== neighbour || this.#hasNoCurrentSlice(state.shard)) this.#withdrawShard(state.shard);
      for (const { slice } of slices) this.#withdraw(slice);
    });
  }

  isSent(shard: ShardName): boolean {
    return this.#sent.has(shard);
  }

  /** Sends the whole inventory and the last position of this link, once, when the link opens. */
  async sendAll(): Promise<void> {
    const { known, connection } = this.#parts;
    const position = known.link(this.#neighbour)?.position ?? '';
    const held: InventorySlice[] = [];
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

  /**
   * Sends the inventory of a shard whose via has just become this neighbour: its stale slices,
   * because all slices from another neighbour are stale. `sendAll` may still be running.
   */
  sendOf(shard: ShardName): void {
    const { known } = this.#parts;
    this.#sent.add(shard);
    // A stale slice without objects is sent too: it needs an `end`, and the neighbour may not know
    // the slice any more.
    const held = [...known.slicesOf(shard)]
      .filter(({ filterHash }) => filterHash === '')
      .map(({ slice, filterHash, syncedTerm }): InventorySlice => ({ slice, filterHash, syncedTerm }));
    this.#send([...held, ...this.#unknownOf(shard)]);
  }

  /** Asks about a slice that another neighbour holds and this cache does not know. */
  request(slice: Slice): void {
    if (this.#sent.has(slice.shard)) this.#send(this.#heldElsewhere([slice]));
  }

  close(): void {
    this.#subscription.cancel();
  }

  #send(held: readonly InventorySlice[]): void {
    for (let at = 0; at < held.length; at += frameBounds.namesPerFrame)
      this.#parts.connection.send({ kind: 'resume', position: '', held: held.slice(at, at + frameBounds.namesPerFrame), isLast: false });
  }

  #unknownOf(shard: ShardName): readonly InventorySlice[] {
    return this.#heldElsewhere(this.#parts.unknownOf(shard));
  }

  #heldElsewhere(slices: Iterable<Slice>): readonly InventorySlice[] {
    // The commit that is being published may have made some of them known.
    const asked = [...slices].filter((slice) => this.#parts.known.slice(slice) === undefined && this.#asked.add(slice));
    return asked.map((slice) => ({ slice, filterHash: '', syncedTerm: 0 }));
  }

  /**
   * Withdraws the question about a slice. Asks about the next waiting slice whose shard comes from
   * this neighbour.
   */
  #withdraw(slice: Slice): void {
    let next = this.#asked.delete(slice);
    while (next !== undefined && !this.#sent.has(next.shard)) next = this.#asked.delete(next);
    if (next !== undefined) this.#send([{ slice: next, filterHash: '', syncedTerm: 0 }]);
  }

  /** Withdraws the questions about slices of the shard. `sendOf` asks again. */
  #withdrawShard(shard: ShardName): void {
    this.#sent.delete(shard);
    for (const slice of this.#asked.of(shard)) this.#withdraw(slice);
  }

  /**
   * Whether no slice of the shard is current, as after its via changed to another neighbour and
   * back within one commit.
   */
  #hasNoCurrentSlice(shard: ShardName): boolean {
    return ![...this.#parts.known.slicesOf(shard)].some(({ filterHash }) => filterHash !== '');
  }
}

/**
 * The inventory that the other end of a link sends while the link opens. Each frame is sorted when
 * it arrives, because sorting the whole inventory at once would block the event loop for half a
 * second.
 *
 * Bound: that of NamedSlices. A slice that is reported twice counts twice.
 */
export class PeerInventory {
  /** By the text of each slice. The sending half then owns this map. */
  readonly byShard = new Map<ShardName, Map<string, InventorySlice>>();
  readonly #named = new NamedSlices();
  #isCurrentWithAny = false;

  get isCurrentWithAny(): boolean {
    return this.#isCurrentWithAny;
  }

  /** Returns false if the other end reports too many slices. */
  update(held: readonly InventorySlice[]): boolean {
    for (const each of held) {
      this.#named.add(addToInventory(this.byShard, each));
      this.#isCurrentWithAny ||= each.filterHash !== '';
    }
    return !this.#named.isBeyond;
  }
}

/** Returns the text of the slice. */
export function addToInventory(byShard: Map<ShardName, Map<string, InventorySlice>>, held: InventorySlice): string {
  const { shard } = held.slice;
  const name = formatSlice(held.slice);
  byShard.set(shard, (byShard.get(shard) ?? new Map<string, InventorySlice>()).set(name, held));
  return name;
}
