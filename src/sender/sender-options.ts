/** The identity of a sender, the URLs it sends to, and its bounds. */
import type { ShardName } from '../domain/shard.js';
import type { ReconnectBounds } from './reconnect.js';

export type SenderBounds = ReconnectBounds &
  Readonly<{
    welcomeTimeoutMs: number;
    /** How long a cache may acknowledge nothing while mutations are unacknowledged. */
    ackTimeoutMs: number;
    /** Maximum mutations in one frame, if the cache allows as many. */
    batchMutationsMax: number;
    /**
     * Maximum bytes in one frame, if the cache allows as many; a larger object gets a frame of its
     * own.
     */
    batchBytesMax: number;
    /** How often the sender reports to the cache how far each slice is behind. */
    statusIntervalMs: number;
    stateIntervalMs: number;
    /** How long an aborted `run` waits for acknowledgements and for its sources to end. */
    shutdownGraceMs: number;
    /** How many refused objects are logged from one sync to the next; all are counted. */
    refusalsLoggedMax: number;
  }>;

export type SenderOptions = SenderBounds &
  Readonly<{
    /** The shard whose objects are pushed. The certificate of the connection must speak for it. */
    shard: ShardName;
    /**
     * A random id of this sender; a connection with the same id is from the same sender. If two
     * senders push one shard, the later one waits as a standby.
     */
    process: string;
    /**
     * Instead of waiting as a standby, the sender takes the shard over, and its present pusher is
     * fenced.
     */
    takesOver: boolean;
    /**
     * The URLs of the cache, `wss://host:port/services/cache/connect`; tried in turn, at least one.
     */
    urls: readonly string[];
    /** Program and version, for the cache's log. */
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
