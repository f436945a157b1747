/**
 * An open connection that carries frames both ways. An interface, so that rooms are tested without sockets.
 *
 * Bounds: `bufferedBytes` counts what is not sent yet, and whoever sends much waits for `drained`. At most a few frames that came are
 * kept unread; then the peer waits.
 */
import type { ByeReason } from './bye.js';
import type { Frame } from './frame.js';

export interface FrameConnection {
  /** The other end's name, for the log. */
  readonly peer: string;
  /** Encoded and handed to the socket, but not taken by the network yet. */
  readonly bufferedBytes: number;
  /** When the silent peer was last known to be there; undefined while it counts as there. */
  silentSinceMs(): number | undefined;
  /** Resolves once it is closed, by either end, with the websocket close code: 1006 when it broke without one. */
  readonly closed: Promise<Readonly<{ code: number }>>;
  /**
   * Sends at once. If far more is unsent than `drained` waits for, the peer counts as not reading and is cut off instead.
   * Once the connection closes, nothing is sent and nothing thrown.
   */
  send(frame: Frame): void;
  /** Resolves when little enough is buffered for more to be sent, or the connection is closed. */
  drained(): Promise<void>;
  /**
   * What comes, in order, to its one reader. Ends when the connection closes; the connection stays open when the reader stops.
   * Throws BadFrame at what is not a valid frame; nothing is read after it.
   */
  frames(): AsyncIterable<Frame>;
  /** Sends a bye, then closes with the code of the reason. A peer that does not close in turn is cut off after a grace. */
  close(reason: ByeReason, message: string, retryAfterMs?: number): void;
  /** Cuts it off. */
  terminate(): void;
}
