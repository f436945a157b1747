/**
 * Splits a frame into parts for admission. The event loop turns between two parts, so other peers
 * wait for one part and not for a whole frame. An object of the usual 2.5 kB takes 20 µs. A byte
 * takes 5 ns, and 100 ns in a hostile object. So a full part takes 25 ms at worst, where a whole
 * frame would take half a second.
 */
import type { Credit, Frame, FrameLimits, FrameOf, PushedKey } from '../../frames/frame.js';
import type { NumberedFrame } from './receiver-state.js';

/** The most that is admitted in one turn of the event loop. The last object may exceed it. */
export const turnMax: Credit = { mutations: 32, bytes: 256 * 1024 };

/**
 * Returns the frame itself if it needs no parts, or if it exceeds its limits: the session then
 * refuses it.
 */
export function partsOf(frame: NumberedFrame, { frameMutationsMax }: FrameLimits): readonly NumberedFrame[] {
  if (frame.kind !== 'put' && frame.kind !== 'delete') return [frame];
  const all = frame.kind === 'put' ? frame.objects : frame.keys;
  if (all.length > frameMutationsMax) return [frame];
  // Only the last part carries the position.
  const { position: _, ...unreached } = frame;
  return placesOf(all).map(({ from, to }, i, { length }) => part(i === length - 1 ? frame : unreached, from, to));
}

function placesOf(
  all: readonly (PushedKey & { readonly body?: Uint8Array | undefined })[],
): readonly Readonly<{ from: number; to: number }>[] {
  const places: { from: number; to: number }[] = [];
  let from = 0;
  let bytes = 0;
  all.forEach(({ cluster, namespace, name, body }, i) => {
    bytes += cluster.length + namespace.length + name.length + (body?.length ?? 0);
    const isFull = bytes >= turnMax.bytes || i - from + 1 >= turnMax.mutations;
    if (!isFull && i < all.length - 1) return;
    places.push({ from, to: i + 1 });
    from = i + 1;
    bytes = 0;
  });
  return places.length > 0 ? places : [{ from: 0, to: 0 }];
}

function part(frame: FrameOf<'put' | 'delete'>, from: number, to: number): NumberedFrame {
  const sequence = frame.sequence + from;
  return frame.kind === 'put'
    ? { ...frame, sequence, objects: frame.objects.slice(from, to) }
    : { ...frame, sequence, keys: frame.keys.slice(from, to) };
}

/** Each slice in a report counts as this many bytes. */
export const reportedSliceBytes = 128;

/**
 * The credit that a frame uses: the mutations of a numbered frame, and the bytes of its bodies or
 * reported slices. A sender may count more than the receiver.
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

export function exceeds(undecided: Credit, more: Credit, credit: Credit): boolean {
  return undecided.mutations + more.mutations > credit.mutations || undecided.bytes + more.bytes > credit.bytes;
}
