/**
 * Decides what follows a connection that ended or was never made: which URL next and after how long, or that it is over.
 *
 *   how it ended                                 next URL    wait
 *   broke after it had lasted                    the same    jitter below the base: what was sent can be resumed there
 *   shutdown                                     the next    jitter only, if there is another URL to go to
 *   fenced, forbidden, unsupported               –           over: coming back would change nothing; unless the cache names a wait
 *   anything else                                the next    what the cache asked for, and jitter that doubles with each failure
 *
 * R1 A wait is at most `retryAfterMaxMs` + `backoffMaxMs`, whatever the cache asks for.
 * R2 After a connection that lasted, the next failure counts as the first. One that was replaced has not lasted: otherwise two processes
 *    that both believe to be this one would take turns at full speed.
 */
import type { ByeReason } from '../frames/bye.js';
import { UpgradeRefused } from '../frames/upgrade-refused.js';

/** Why a cache refuses this sender, however often it comes back. */
export type FinalReason = Extract<ByeReason, 'fenced' | 'forbidden' | 'unsupported'>;

export function isFinal(reason: ByeReason | undefined): reason is FinalReason {
  return reason === 'fenced' || reason === 'forbidden' || reason === 'unsupported';
}

export type BackoffBounds = Readonly<{ backoffBaseMs: number; backoffMaxMs: number }>;

export type ReconnectBounds = BackoffBounds &
  Readonly<{
    /** A connection that was open this long after its welcome, or after it became a standby, has lasted. */
    lastedMs: number;
    retryAfterMaxMs: number;
  }>;

/** Which URL is tried, and how many failures in a row came before. */
export type Attempt = Readonly<{ urlIndex: number; failures: number }>;

/** How a connection ended. */
export type Parting = Readonly<{
  /** Since the welcome, or since it waited as a standby; 0 when there was neither. */
  lastedMs: number;
  /** Undefined: it broke, or was ended from here. */
  reason: ByeReason | undefined;
  message: string;
  retryAfterMs: number | undefined;
}>;

/** How one ended that was never made. */
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

/** Full jitter: anything between nothing and a bound that doubles with each failure, so that many do not come back together. */
export function backoffMs(failures: number, random: () => number, { backoffBaseMs, backoffMaxMs }: BackoffBounds): number {
  return random() * Math.min(backoffMaxMs, backoffBaseMs * 2 ** (failures - 1));
}
