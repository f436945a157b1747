/** What the sending half of a link needs, and its bounds. */
import type { BoundedLog } from '../../diagnostics/bounded-log.js';
import type { Log } from '../../diagnostics/log.js';
import type { Clock } from '../../domain/ports.js';
import type { History, Store } from '../../domain/store-port.js';
import type { Neighbour } from '../../domain/via.js';
import type { Slice } from '../../domain/slice.js';
import type { FrameConnection } from '../../frames/frame-connection.js';
import type { Credit, FrameLimits } from '../../frames/frame.js';
import type { PeerInventory } from './inventory.js';
import type { LinkSenderBounds } from './link-sender-queue.js';
import type { FreshnessOf } from './outgoing-reports.js';
import type { OutgoingClaimsParts } from './outgoing-claims.js';

export type LinkSenderParts = Readonly<{
  store: Pick<Store, 'objects' | 'revisions' | 'commits' | 'paths' | 'state'>;
  /** Reads the change log through the chunks that all links of this cache share. */
  history: Pick<History, 'everyChange'>;
  /** Whether this cache holds the whole slice, or nothing of the slice can ever come here. */
  isSynced: (slice: Slice) => boolean;
  /** Whether the shard's via could bring a slice that this cache does not know. */
  canCome: (slice: Slice) => boolean;
  /** Asks the shard's via about a slice that the other end holds and this cache does not know. */
  unknown: (slice: Slice) => void;
  connection: FrameConnection;
  freshnessOf: FreshnessOf;
  /**
   * Whether all neighbours that this cache ever had, except `but`, are connected and know all
   * shards behind them.
   */
  isComplete: (but: Neighbour) => boolean;
  clock: Clock;
  random: () => number;
  turn: () => Promise<void>;
  log: Log;
  /** For events that a peer can cause as often as it likes. */
  boundedLog: BoundedLog;
}> &
  Pick<OutgoingClaimsParts, 'inventory' | 'claimFor'>;

export type LinkSenderOptions = LinkSenderBounds &
  Readonly<{
    /** How often the sender sends its position while no object crosses. */
    progressIntervalMs: number;
    /** The link closes if the other end owes acknowledgements and sends none for this long. */
    ackTimeoutMs: number;
    /** How often the sender sends the digests of all slices. */
    digestIntervalMs: number;
  }>;

/** What the other end has sent about itself. */
export type Receiver = Readonly<{ position: string; held: PeerInventory; credit: Credit; limits: FrameLimits }>;
