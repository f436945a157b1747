/**
 * What a websocket may do to us, the same at both ends. ws' options are all written out, its own defaults included.
 *
 * Bounds: a message is at most `frameBytesMax` long, in at most fragmentsMax fragments; of one that is not complete, at most a
 * piece for each chunkBytesMin of that is kept as the network brought it; at most pongsMax answers to pings wait to be sent.
 */
import type { ClientOptions, ServerOptions } from 'ws';

export const subprotocol = 'strata.v1';
export const connectPath = '/services/cache/connect';

export type FrameSocketOptions = Readonly<{
  /** The longest message taken. */
  frameBytesMax: number;
  /** So little must be unsent for `drained` to resolve. */
  bufferedBytesLow: number;
  /** With more unsent, the next frame cuts the peer off: it does not read. */
  bufferedBytesMax: number;
  pingIntervalMs: number;
  pongTimeoutMs: number;
  /** How long a peer may take to close in turn. */
  closeGraceMs: number;
}>;

/** We send whole messages; something between the ends may cut one up, but not into crumbs. */
const fragmentsMax = 128;
/** The smallest TLS records in use, which some begin with. A peer that sends smaller ones throughout makes us keep more than it sends. */
const chunkBytesMin = 1024;
/** Small messages come in less than whole records. */
const chunksMin = 256;
/** A peer that asks and does not read the answers is cut off. */
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
