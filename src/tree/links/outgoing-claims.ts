/**
 * The claims that one link has to send: this cache's choice for every shard, when the link opens
 * and after each change. In each second, the link sends the first `perShardMax` claims of a shard
 * at once. Of further claims it sends only the newest, when the second is over.
 *
 * Bound: one entry per shard.
 */
import type { Clock } from '../../domain/ports.js';
import type { ShardName } from '../../domain/shard.js';
import type { Neighbour } from '../../domain/via.js';
import type { FrameConnection } from '../../frames/frame-connection.js';
import type { FrameOf } from '../../frames/frame.js';
import type { PublishedState } from '../../domain/published-state.js';
import type { Inventory } from './inventory.js';

export type OutgoingClaimsParts = Readonly<{
  known: PublishedState;
  connection: Pick<FrameConnection, 'send'>;
  /** Sends the inventory of the shards that arrive over this link. */
  inventory: Pick<Inventory, 'isSent' | 'sendOf'>;
  claimFor: (to: Neighbour, shard: ShardName) => FrameOf<'claim'> | undefined;
  clock: Clock;
  /** There is more to send. */
  notify: () => void;
}>;

const shardsPerTurn = 500;
const perShardMax = 4;
const paceMs = 1_000;

export class OutgoingClaims {
  readonly #parts: OutgoingClaimsParts;
  readonly #to: Neighbour;
  readonly #due = new Set<ShardName>();
  /** How many claims of each shard were sent in the present second. */
  readonly #sent = new Map<ShardName, number>();
  readonly #later = new Set<ShardName>();
  #cancelPace: (() => void) | undefined;

  constructor(parts: OutgoingClaimsParts, to: Neighbour) {
    this.#parts = parts;
    this.#to = to;
    this.addAll();
  }

  add(shard: ShardName): void {
    if ((this.#sent.get(shard) ?? 0) < perShardMax) this.#due.add(shard);
    else this.#later.add(shard);
  }

  addAll(): void {
    for (const { shard } of this.#parts.known.shards) this.add(shard);
  }

  /** Sends as many due claims as one turn of the event loop may. Returns false if none is left. */
  send(): boolean {
    const { clock, claimFor } = this.#parts;
    let sent = 0;
    for (const shard of this.#due) {
      if (sent >= shardsPerTurn) break;
      this.#due.delete(shard);
      const claim = claimFor(this.#to, shard);
      if (claim === undefined) continue;
      this.#sendOne(claim);
      sent += 1;
      this.#sent.set(shard, (this.#sent.get(shard) ?? 0) + 1);
    }
    if (sent > 0) this.#cancelPace ??= clock.after(paceMs, () => this.#beginAnew());
    return this.#due.size > 0;
  }

  close(): void {
    this.#cancelPace?.();
  }

  #sendOne(claim: FrameOf<'claim'>): void {
    const { connection, inventory } = this.#parts;
    if (claim.isYours && !inventory.isSent(claim.shard)) {
      // The other end may still send the shard because of an earlier choice of this cache. Revoke
      // that choice, so that the other end starts over with the inventory that follows.
      connection.send({ ...claim, isYours: false });
      inventory.sendOf(claim.shard);
    }
    connection.send(claim);
  }

  #beginAnew(): void {
    this.#cancelPace = undefined;
    this.#sent.clear();
    for (const shard of this.#later) this.#due.add(shard);
    this.#later.clear();
    this.#parts.notify();
  }
}
