/** Anyone who changes a shard in a simulated tree: a pusher, a plain writer, or an operator. */
import type { Clock } from '../../src/domain/ports.js';
import type { Store } from '../../src/domain/store-port.js';
import type { ShardName } from '../../src/domain/shard.js';
import type { PlainWrites } from '../../src/intake/writes/plain-writes.js';
import type { PublishedState } from '../../src/domain/published-state.js';

/** The parts of a running cache that a plain party uses. */
export type PartyPlace = Readonly<{ store: Store; known: PublishedState; plainWrites: PlainWrites; clock: Clock }>;

export interface SimParty {
  readonly shard: ShardName;
  /** The party's cache has acknowledged everything. */
  readonly isQuiet: boolean;
}

/** A party that sends single requests to a cache. */
export interface PlainParty extends SimParty {
  /**
   * Moves from its present cache to this one. Resolves when the party is done there; never if the
   * cache dies.
   */
  run(place: PartyPlace): Promise<void>;
  leave(): void;
}
