/**
 * Provides one buffer for all bodies of a frame, because a buffer for each body would cost more
 * than filling it. The bodies arrive and leave memory together, so no body keeps the memory of the
 * others in use for long.
 */
import { ownBuffer, type Allocate } from '../json/text-edits.js';

/** A piece that does not fit any more gets its own buffer. */
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
