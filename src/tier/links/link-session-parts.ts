/** What a session of a link needs, its peer, and how it ended. */
import type { PushOutcome } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import type { Neighbour } from '../../domain/via.js';
import type { ByeReason } from '../../frames/bye.js';
import type { Credit, FrameLimits, FrameOf } from '../../frames/frame.js';
import type { EqualFilters } from '../filters/link-filters.js';
import type { HeldRemovals } from '../../intake/shards/held-removals.js';
import type { IntakeRules } from '../../intake/push/receiver-state.js';
import type { LinkReceiverParts } from './link-receiver.js';
import type { LinkSenderParts } from './link-sender-options.js';
import type { Routes } from '../routes.js';

export type LinkSessionParts = Omit<LinkSenderParts, 'connection' | 'claimFor' | 'inventory'> &
  Pick<LinkReceiverParts, 'metrics' | 'reported'> &
  Readonly<{
    rules: IntakeRules;
    /**
     * Slices of the shard that a neighbour holds and this cache asks about, because it does not
     * know them.
     */
    unknownOf: (shard: ShardName) => Iterable<Slice>;
    /** The store has accepted the id of the other end. */
    met: () => void;
    removals: HeldRemovals;
    /**
     * The parent has sent its id and those above it. Returns 'loop' if this cache is among them.
     */
    routed: (route: readonly string[]) => 'loop' | undefined;
    /** The policies of both ends are known, or have changed. */
    settled: () => void;
    equalFilters: EqualFilters;
    /** The other end has removed objects that a sync of this cache did not name. */
    swept: (frame: FrameOf<'swept'>) => Promise<void>;
    routes: Pick<Routes, 'receiveClaim' | 'room' | 'down' | 'claimFor'>;
    /**
     * Whether the position that the other end sends back shows, for the first time, that this store
     * was rolled back (rollback.ts).
     */
    isRolledBack: (neighbour: Neighbour, position: string) => boolean;
  }>;

/** The cache at the other end, as its greeting describes it. */
export type LinkPeer = Readonly<{ neighbour: Neighbour; cacheId: string; credit: Credit; limits: FrameLimits }>;

/** How the session ended: with the bye of either end. Without a reason, the connection broke. */
export type LinkEnd = Readonly<{ reason: ByeReason | undefined; message: string; retryAfterMs: number | undefined }>;

/** The message to the other end when the store refuses its id. */
export function whyNotMet(outcome: Extract<PushOutcome, { kind: 'bound' | 'full' }>): string {
  if (outcome.kind === 'bound') return `the id of this cache is that of ${outcome.name}: was its disk copied?`;
  return 'too many caches were children here: some are to be forgotten';
}
