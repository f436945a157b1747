/**
 * An open connection on which frames travel both ways, as the rooms that use it see it: they are tested without sockets.
 *
 * Bounds: what is not sent yet is counted in `bufferedBytes`, and who sends much waits for `drained`; what has come and is not
 * read yet is held to a few frames, behind which the peer waits.
 */
import type { ByeReason } from './bye.js';
import type { Frame } from './frame.js';

export interface FrameConnection {
  /** Whom this connects to, for the log. */
  readonly peer: string;
  /** Encoded and handed to the socket, but not taken by the network yet. */
  readonly bufferedBytes: number;
  /** When the peer was there for sure, where that is too long ago for it to count as there: this process was paused, and knows no better yet. */
  silentSinceMs(): number | undefined;
  /** Resolves once it is closed, by whichever side, with the websocket close code: 1006 when it broke without one. */
  readonly closed: Promise<Readonly<{ code: number }>>;
  /**
   * Sends at once. Where far more is unsent than `drained` waits for, the connection is cut off instead: its peer does not read.
   * Nothing is sent, and nothing thrown, once it closes.
   */
  send(frame: Frame): void;
  /** Resolves when little enough is buffered for more to be sent, or the connection is closed. */
  drained(): Promise<void>;
  /**
   * What comes, in order, to its one reader. Ends when the connection closes, and closes nothing when the reader stops.
   * Throws BadFrame at what is no frame; nothing is read behind it.
   */
  frames(): AsyncIterable<Frame>;
  /** Says why, then closes with the code of the reason; a peer that does not close in turn is cut off after a grace. */
  close(reason: ByeReason, message: string, retryAfterMs?: number): void;
  /** Cuts it off. */
  terminate(): void;
}
