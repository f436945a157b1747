/**
 * An open connection that carries frames both ways; an interface, so that tests need no sockets.
 *
 * Bounds: `bufferedBytes` counts unsent bytes, and a sender of many frames waits for `drained`. At
 * most a few received messages wait unread; then the connection stops reading from the network.
 */
import { BadFrame } from './bad-frame.js';
import { reasonOfCode, type ByeReason } from './bye.js';
import type { Frame } from './frame.js';

/** How a connection was closed. */
export type Closing = Readonly<{
  /** The websocket close code of the peer; 1006 if the connection broke without one. */
  code: number;
  /** The text of the peer's close frame, if it had one. Strata's own programs send none. */
  reason?: string;
}>;

export interface FrameConnection {
  /** The other end's address or host, for the log. */
  readonly peer: string;
  /** Bytes handed to the socket that the network has not accepted yet. */
  readonly bufferedBytes: number;
  /** When a silent peer last showed that it is alive; undefined while it counts as present. */
  silentSinceMs(): number | undefined;
  /** Resolves when either end has closed the connection. */
  readonly closed: Promise<Closing>;
  /**
   * Sends at once. If more than `bufferedBytesMax` is unsent, the peer does not read, and the
   * connection is terminated. Does nothing while the connection is closing or closed.
   */
  send(frame: Frame): void;
  /** Resolves when at most `bufferedBytesLow` is unsent, or the connection has closed. */
  drained(): Promise<void>;
  /**
   * The received frames, in order, for one reader. Ends when the connection closes. The connection
   * stays open if the reader stops. Throws BadFrame at an invalid frame and reads nothing after it.
   */
  frames(): AsyncIterable<Frame>;
  /**
   * Sends a bye, then closes with the code of its reason. If the peer does not close within the
   * grace period, the connection is terminated.
   */
  close(reason: ByeReason, message: string, retryAfterMs?: number): void;
  /** Closes the connection at once, without a bye. */
  terminate(): void;
}

/**
 * The closing as fields of a log line. One of Strata's own codes is logged as the reason of a bye.
 */
export function closingFields({ code, reason }: Closing): Readonly<{ code: number; reason: string | undefined }> {
  return { code, reason: reasonOfCode(code) ?? reason };
}

/** Returns the first frame of a connection, or a text that says why there is none. */
export async function firstFrame(frames: AsyncIterator<Frame>): Promise<Frame | string> {
  try {
    const { done, value } = await frames.next();
    return done === true ? 'the connection closed before a frame came' : value;
  } catch (error) {
    if (!(error instanceof BadFrame)) throw error;
    return error.message;
  }
}
