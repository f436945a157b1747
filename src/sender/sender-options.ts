/** Who a sender speaks for, where it sends to, and its bounds. */
import type { ShardName } from '../domain/shard.js';
import type { ReconnectBounds } from './reconnect.js';

export type SenderBounds = ReconnectBounds &
  Readonly<{
    /** How long a cache may take to answer hello with welcome. */
    welcomeTimeoutMs: number;
    /** How long a cache may acknowledge nothing of what is under way to it. */
    ackTimeoutMs: number;
    /** How many mutations go into one frame, if the cache allows as many. */
    batchMutationsMax: number;
    /** How many bytes go into one frame, if the cache allows as many; a larger object goes alone. */
    batchBytesMax: number;
    /** How often the cache is sent how fresh each slice is. */
    statusIntervalMs: number;
    /** `states` yields no more often than this. */
    stateIntervalMs: number;
    /** How long an aborted `run` waits for acknowledgements and for its sources to end. */
    shutdownGraceMs: number;
    /** How many refused objects of one sync, and of the changes behind it, are logged; all are counted. */
    refusalsLoggedMax: number;
  }>;

export type SenderOptions = SenderBounds &
  Readonly<{
    /** The shard whose objects are pushed. The certificate of the connection must speak for it. */
    shard: ShardName;
    /** A random id of this sender: whoever connects with it again is the same one. Of two for one shard the later waits as a standby. */
    process: string;
    /** It does not wait: the shard's present pusher ends as `fenced`. */
    takesOver: boolean;
    /** Where the cache is reached, each `wss://host:port/services/cache/connect`; tried in turn, at least one. */
    urls: readonly string[];
    /** Program and version, for the log of the cache. */
    agent: string;
  }>;

export const defaultSenderBounds: SenderBounds = Object.freeze({
  backoffBaseMs: 200,
  backoffMaxMs: 30_000,
  lastedMs: 10_000,
  retryAfterMaxMs: 300_000,
  welcomeTimeoutMs: 10_000,
  ackTimeoutMs: 60_000,
  batchMutationsMax: 128,
  batchBytesMax: 262_144,
  statusIntervalMs: 5_000,
  stateIntervalMs: 250,
  shutdownGraceMs: 5_000,
  refusalsLoggedMax: 100,
});
