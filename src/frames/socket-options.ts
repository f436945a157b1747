/**
 * What a websocket's peer may do to this process, the same at both ends. ws' options are all written out, its own defaults included.
 *
 * Bounds: a message has at most `frameBytesMax` bytes in at most fragmentsMax fragments. Of an incomplete message, pieces are kept as the
 * network brought them, at most one for each chunkBytesMin of that length. At most pongsMax answers to pings wait to be sent.
 */
import type { ClientOptions, ServerOptions } from 'ws';

export const subprotocol = 'strata.v1';
export const connectPath = '/services/cache/connect';

export type FrameSocketOptions = Readonly<{
  /** The longest message accepted. */
  frameBytesMax: number;
  /** `drained` resolves once no more than this is unsent. */
  bufferedBytesLow: number;
  /** With more unsent, the next frame cuts the peer off: it does not read. */
  bufferedBytesMax: number;
  pingIntervalMs: number;
  pongTimeoutMs: number;
  /** How long a peer may take to close in turn. */
  closeGraceMs: number;
}>;

/** We send whole messages. A proxy may cut one up, but not into crumbs. */
const fragmentsMax = 128;
/** The smallest TLS records in use; some peers begin with them. A peer that sends only smaller ones makes us keep more than it sends. */
const chunkBytesMin = 1024;
/** Small messages come in less than whole records. */
const chunksMin = 256;
/** A peer that pings and does not read the answers is cut off. */
const pongsMax = 60;

/** ws' own names for the limits, some of which its types do not know yet. */
export function websocketLimits({ frameBytesMax, closeGraceMs }: FrameSocketOptions): ServerOptions & ClientOptions {
  const limits = {
    maxPayload: frameBytesMax,
    maxFragments: fragmentsMax,
    maxBufferedChunks: chunksMin + Math.ceil(frameBytesMax / chunkBytesMin),
    maxPendingAutoPongs: pongsMax,
    perMessageDeflate: false,
    skipUTF8Validation: false,
    autoPong: true,
    // Several messages of one piece from the network come in one tick: frame-socket.ts has the bound.
    allowSynchronousEvents: true,
    closeTimeout: closeGraceMs,
  };
  return limits;
}
