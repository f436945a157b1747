/**
 * How much a link may have sent and not yet acknowledged. The sender keeps everything that is not
 * acknowledged in memory, so a peer may lower the limit of this end, but never raise it.
 */
import type { Credit } from '../frames/frame.js';

export const creditMax: Credit = { mutations: 16_384, bytes: 64 * 1024 * 1024 };

export function capCredit({ mutations, bytes }: Credit, max: Credit): Credit {
  return { mutations: Math.min(mutations, max.mutations), bytes: Math.min(bytes, max.bytes) };
}
