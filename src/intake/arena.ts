/**
 * One buffer for the bodies of a frame, cut off piece by piece: a buffer for each would cost more than filling it. They come
 * together and leave the memory together, so none holds the others for long.
 */
import { ownBuffer, type Allocate } from '../json/text-edits.js';

/** What does not fit any more gets a buffer of its own. */
export function arena(bytes: number): Allocate {
  let buffer: Uint8Array | undefined;
  let used = 0;
  return (length) => {
    if (used + length > bytes) return ownBuffer(length);
    buffer ??= ownBuffer(bytes);
    used += length;
    return buffer.subarray(used - length, used);
  };
}
