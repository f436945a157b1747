/** The credit that a frame uses. */
import type { Credit, Frame } from '../frames/frame.js';

/** Each slice in a report counts as this many bytes. */
export const reportedSliceBytes = 128;

/**
 * Counts the mutations of a numbered frame, and the bytes of its bodies. A sender may count more
 * for itself.
 */
export function creditOf(frame: Frame): Credit {
  switch (frame.kind) {
    case 'put':
      return { mutations: frame.objects.length, bytes: frame.objects.reduce((sum, { body }) => sum + (body?.length ?? 0), 0) };
    case 'delete':
      return { mutations: frame.keys.length, bytes: 0 };
    case 'report':
      return { mutations: 1, bytes: frame.freshness.length * reportedSliceBytes };
    default:
      return { mutations: 1, bytes: 0 };
  }
}

export function exceeds(unsettled: Credit, more: Credit, credit: Credit): boolean {
  return unsettled.mutations + more.mutations > credit.mutations || unsettled.bytes + more.bytes > credit.bytes;
}
