/**
 * Decides what follows a connection that ended or failed to open: the next URL and the wait, or the
 * end of the sender.
 *
 *  how it ended                     next URL    wait
 *  broke after it had lasted        the same    jitter below the base: that cache can resume
 *  shutdown                         the next    jitter only, if there is another URL
 *  fenced, forbidden, unsupported   –           the sender ends, unless the cache asks for a wait
 *  anything else                    the next    what the cache asks for, and jitter that doubles
 *                                               with each failure
 *
 * R1 A wait is at most `retryAfterMaxMs` + `backoffMaxMs`, whatever the cache asks for.
 * R2 After a connection that lasted, the next failure counts as the first. A connection that ended
 *    as `replaced` has not lasted: otherwise two processes with the same id would replace each
 *    other at full speed.
 */
import type { ByeReason } from '../frames/bye.js';
import { UpgradeRefused } from '../frames/upgrade-refused.js';

/** Reasons for which a cache refuses this sender, however often it reconnects. */
export type FinalReason = Extract<ByeReason, 'fenced' | 'forbidden' | 'unsupported'>;

export function isFinal(reason: ByeReason | undefined): reason is FinalReason {
  return reason === 'fenced' || reason === 'forbidden' || reason === 'unsupported';
}

export type BackoffBounds = Readonly<{ backoffBaseMs: number; backoffMaxMs: number }>;

export type ReconnectBounds = BackoffBounds &
  Readonly<{
    /**
     * A connection has lasted if it was open this long after its welcome, or after it became a
     * standby.
     */
    lastedMs: number;
    retryAfterMaxMs: number;
  }>;

/** The URL to try, and the number of failures in a row before it. */
export type Attempt = Readonly<{ urlIndex: number; failures: number }>;

export type Parting = Readonly<{
  /** Time since the welcome, or since the connection became a standby; 0 without either. */
  lastedMs: number;
  /** Undefined: the connection broke, or this end closed it. */
  reason: ByeReason | undefined;
  message: string;
  retryAfterMs: number | undefined;
}>;

export function failedParting(error: unknown): Parting {
  const message = error instanceof Error ? error.message : String(error);
  const refused = error instanceof UpgradeRefused ? error : undefined;
  return { lastedMs: 0, reason: refused?.reason === 'Forbidden' ? 'forbidden' : undefined, message, retryAfterMs: refused?.retryAfterMs };
}

export type Reconnect = Readonly<{ kind: 'connect'; attempt: Attempt; afterMs: number }> | Readonly<{ kind: 'end'; reason: FinalReason }>;

export const firstAttempt: Attempt = { urlIndex: 0, failures: 0 };

export function reconnect(
  { urlIndex, failures }: Attempt,
  { lastedMs, reason, retryAfterMs }: Parting,
  { urls, random, bounds }: Readonly<{ urls: number; random: () => number; bounds: ReconnectBounds }>,
): Reconnect {
  if (isFinal(reason) && retryAfterMs === undefined) return { kind: 'end', reason };

  const lasted = lastedMs >= bounds.lastedMs && reason !== 'replaced';
  const next: Attempt = {
    urlIndex: lasted && reason === undefined ? urlIndex : (urlIndex + 1) % urls,
    failures: lasted ? 1 : failures + 1,
  };
  const askedMs = reason === 'shutdown' && urls > 1 ? 0 : Math.min(Math.max(retryAfterMs ?? 0, 0), bounds.retryAfterMaxMs);
  return { kind: 'connect', attempt: next, afterMs: askedMs + backoffMs(next.failures, random, bounds) };
}

/**
 * Full jitter: random between 0 and a bound that doubles with each failure, so that many senders do
 * not reconnect together.
 */
export function backoffMs(failures: number, random: () => number, { backoffBaseMs, backoffMaxMs }: BackoffBounds): number {
  return random() * Math.min(backoffMaxMs, backoffBaseMs * 2 ** (failures - 1));
}
