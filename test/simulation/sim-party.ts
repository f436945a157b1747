/** Whoever sends a simulated tree changes of a shard: a pusher, a plain writer, or an operator. */
import type { Clock } from '../../src/domain/ports.js';
import type { Store } from '../../src/domain/store-port.js';
import type { ShardName } from '../../src/domain/shard.js';
import type { PlainWrites } from '../../src/intake/plain-writes.js';
import type { PublishedState } from '../../src/domain/published-state.js';

/** The parts of a running cache that a plain party uses. */
export type PartyPlace = Readonly<{ store: Store; known: PublishedState; plainWrites: PlainWrites; clock: Clock }>;

export interface SimParty {
  readonly shard: ShardName;
  /** The cache it is connected to has acknowledged everything. */
  readonly isQuiet: boolean;
}

/** It asks a cache by single requests. */
export interface PlainParty extends SimParty {
  /** Goes to a cache, and leaves the one before. Resolves when that is over; never if the cache dies. */
  run(place: PartyPlace): Promise<void>;
  leave(): void;
}
