/**
 * A frame as it is admitted: in parts, between which the event loop turns, so that everybody else waits for a part and not for a
 * frame. An object of the usual 2.5 kB takes 20 µs. A byte takes 5 ns, 100 ns where somebody means harm: a full
 * part then takes 25 ms, a whole frame would take half a second.
 */
import type { Credit, Frame, FrameLimits, FrameOf } from '../frames/frame.js';

/** What is admitted in one turn of the event loop, but for the object that reaches it. */
export const turnMax: Credit = { mutations: 32, bytes: 256 * 1024 };

/** The frame itself when it needs no parts, or holds more than it may: the session refuses it then. */
export function partsOf<Each extends Frame>(frame: Each | FrameOf<'put'>, limits: FrameLimits): readonly (Each | FrameOf<'put'>)[] {
  return frame.kind === 'put' ? putParts(frame, limits) : [frame];
}

function putParts(frame: FrameOf<'put'>, { frameMutationsMax }: FrameLimits): readonly FrameOf<'put'>[] {
  if (frame.objects.length > frameMutationsMax) return [frame];
  // The position is reached with the last part.
  const { position: _, ...unreached } = frame;
  const parts: FrameOf<'put'>[] = [];
  let from = 0;
  let bytes = 0;
  frame.objects.forEach(({ body }, i) => {
    bytes += body?.length ?? 0;
    const isFull = bytes >= turnMax.bytes || i - from + 1 >= turnMax.mutations;
    if (!isFull || i === frame.objects.length - 1) return;
    parts.push({ ...unreached, sequence: frame.sequence + from, objects: frame.objects.slice(from, i + 1) });
    from = i + 1;
    bytes = 0;
  });
  if (parts.length === 0) return [frame];
  return [...parts, { ...frame, sequence: frame.sequence + from, objects: frame.objects.slice(from) }];
}
