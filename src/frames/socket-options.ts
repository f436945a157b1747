/**
 * Limits that protect this process from a websocket's peer, the same at both ends. All options of
 * ws are written out, even defaults.
 *
 * Bounds: a message has at most `frameBytesMax` bytes in at most fragmentsMax fragments. The pieces
 * of an incomplete message are kept as the network delivered them, at most one for each
 * chunkBytesMin. At most pongsMax pongs wait to be sent.
 */
import type { ClientOptions, ServerOptions } from 'ws';

export const subprotocol = 'strata.v1';
export const connectPath = '/services/cache/connect';

export type FrameSocketOptions = Readonly<{
  frameBytesMax: number;
  /** `drained` resolves once no more than this is unsent. */
  bufferedBytesLow: number;
  /**
   * If more is unsent, the next frame terminates the connection, because the peer does not read.
   */
  bufferedBytesMax: number;
  pingIntervalMs: number;
  pongTimeoutMs: number;
  closeGraceMs: number;
}>;

/** Senders here send whole messages. A proxy may fragment a message, but not into tiny pieces. */
const fragmentsMax = 128;
/**
 * The smallest TLS records in use; some peers begin with them. If a peer sends smaller ones, the
 * kept pieces take more memory than their bytes.
 */
const chunkBytesMin = 1024;
/** Small messages arrive in pieces smaller than a TLS record. */
const chunksMin = 256;
/** A peer that pings and does not read the pongs is disconnected. */
const pongsMax = 60;

/** ws' own names for the limits; its types lack some of them. */
export function websocketLimits({ frameBytesMax, closeGraceMs }: FrameSocketOptions): ServerOptions & ClientOptions {
  const limits = {
    maxPayload: frameBytesMax,
    maxFragments: fragmentsMax,
    maxBufferedChunks: chunksMin + Math.ceil(frameBytesMax / chunkBytesMin),
    maxPendingAutoPongs: pongsMax,
    perMessageDeflate: false,
    skipUTF8Validation: false,
    autoPong: true,
    // ws may deliver several messages of one network read in one tick; frame-socket.ts bounds them.
    allowSynchronousEvents: true,
    closeTimeout: closeGraceMs,
  };
  return limits;
}
