/** Whoever connects to a simulated cache and sends it of a shard: a pusher, a plain writer, or an operator. */
import type { Clock, Store } from '../../src/domain/ports.js';
import type { Resource } from '../../src/domain/resource.js';
import type { ShardName } from '../../src/domain/shard.js';
import type { PlainOrigin } from '../../src/intake/plain-origin.js';
import type { KnownShards } from '../../src/intake/known-shards.js';

/** What of a running cache a party speaks to. */
export type PartyPlace = Readonly<{ store: Store; known: KnownShards; plainOrigin: PlainOrigin; clock: Clock }>;

export interface SimParty {
  readonly shard: ShardName;
  /** The cache it is connected to has answered for everything. */
  readonly isQuiet: boolean;
  /** Whether it holds a connection now, and the cache has all it had to sync: a plain writer has none. */
  readonly isConnected: boolean;
  /** The types it may report on. */
  readonly resources: readonly Resource[];
  /** How old the oldest change of a type is that the cache has not answered for; undefined: it says nothing of the type. */
  lagMs(resource: Resource): number | undefined;
  /** It belongs to a tree from now on, whose time this is. */
  begin(time: Pick<Clock, 'now'>): void;
  /** Connects to a cache, and leaves the one before. Resolves when that is over; never if the cache dies. */
  run(place: PartyPlace): Promise<void>;
  leave(): void;
}
