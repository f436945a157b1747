/** Whoever connects to a simulated cache and sends it changes of a shard: a pusher, a plain writer, or an operator. */
import type { Clock, Store } from '../../src/domain/ports.js';
import type { Resource } from '../../src/domain/resource.js';
import type { ShardName } from '../../src/domain/shard.js';
import type { PlainOrigin } from '../../src/intake/plain-origin.js';
import type { KnownShards } from '../../src/intake/known-shards.js';

/** The parts of a running cache that a party uses. */
export type PartyPlace = Readonly<{ store: Store; known: KnownShards; plainOrigin: PlainOrigin; clock: Clock }>;

export interface SimParty {
  readonly shard: ShardName;
  /** The cache it is connected to has acknowledged everything. */
  readonly isQuiet: boolean;
  /** Whether it is connected now and the cache has its full sync; never so for a plain writer. */
  readonly isConnected: boolean;
  /** The types it may report on. */
  readonly resources: readonly Resource[];
  /** The age of the oldest change of a type that the cache has not acknowledged; undefined: no report on the type. */
  lagMs(resource: Resource): number | undefined;
  /** It joins a tree, whose time this is. */
  begin(time: Pick<Clock, 'now'>): void;
  /** Connects to a cache, and leaves the one before. Resolves when that is over; never if the cache dies. */
  run(place: PartyPlace): Promise<void>;
  leave(): void;
}
