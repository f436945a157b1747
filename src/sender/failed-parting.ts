import { UpgradeRefused } from '../frames/upgrade-refused.js';
import type { Parting } from './reconnect.js';

/** For a failed connect. */
export function failedParting(error: unknown): Parting {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof UpgradeRefused)) return { lastedMs: 0, reason: undefined, message, retryAfterMs: undefined };
  return { lastedMs: 0, reason: error.reason === 'Forbidden' ? 'forbidden' : undefined, message, retryAfterMs: error.retryAfterMs };
}
