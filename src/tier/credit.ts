/**
 * How much a link may have sent and not yet acknowledged. The sender holds what waits for an acknowledgement, so a peer may
 * grant less than this end allows itself, never more.
 */
import type { Credit } from '../frames/frame.js';

export const creditMax: Credit = { mutations: 16_384, bytes: 64 * 1024 * 1024 };

export function capCredit({ mutations, bytes }: Credit, max: Credit): Credit {
  return { mutations: Math.min(mutations, max.mutations), bytes: Math.min(bytes, max.bytes) };
}
