/** What a frame takes of the credit that its sender was granted. */
import type { Credit, Frame } from '../frames/frame.js';

/** What a slice counts as in a report. */
export const reportedSliceBytes = 128;

/** Of a numbered frame. Bytes are those of bodies: what else the sender counts is its own affair. */
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
