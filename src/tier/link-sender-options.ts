/** What the sending half of a link needs, and its bounds. */
import type { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import type { History, Store } from '../domain/store-port.js';
import type { Neighbour } from '../domain/via.js';
import type { Slice } from '../domain/slice.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { Credit, FrameLimits } from '../frames/frame.js';
import type { HeldThere } from './held-there.js';
import type { LinkSenderBounds } from './link-sender-queue.js';
import type { FreshnessOf } from './outgoing-reports.js';
import type { OutgoingClaimsParts } from './outgoing-claims.js';

export type LinkSenderParts = Readonly<{
  store: Pick<Store, 'objects' | 'revisions' | 'commits' | 'paths' | 'state'>;
  /** The change log, as all links of this cache read it. */
  history: Pick<History, 'everyChange'>;
  /** Whether all of a slice is here, or nothing of it can ever come here. */
  isSynced: (slice: Slice) => boolean;
  /** Whether a slice of which nothing is known here can come from where its shard lives. */
  canCome: (slice: Slice) => boolean;
  /** The other end holds such a slice. */
  unknown: (slice: Slice) => void;
  connection: FrameConnection;
  freshnessOf: FreshnessOf;
  /** Whether all neighbours this cache ever had, except `but`, are connected and know all shards behind them. */
  isComplete: (but: Neighbour) => boolean;
  clock: Clock;
  random: () => number;
  /** Gives the event loop back. */
  turn: () => Promise<void>;
  log: Log;
  /** For events that a peer can cause as often as it likes. */
  boundedLog: BoundedLog;
}> &
  Pick<OutgoingClaimsParts, 'heldHere' | 'claimFor'>;

export type LinkSenderOptions = LinkSenderBounds &
  Readonly<{
    /** How often a link over which nothing crosses sends its position. */
    progressIntervalMs: number;
    /** How long the other end may acknowledge nothing of what is under way to it. */
    ackTimeoutMs: number;
    /** How often the digests of all slices are sent. */
    digestIntervalMs: number;
  }>;

/** What the other end has sent about itself. */
export type Receiver = Readonly<{ position: string; held: HeldThere; credit: Credit; limits: FrameLimits }>;
