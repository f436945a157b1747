/**
 * Decides a put or delete frame: the pushes for the store, and a refusal for each mutation that is
 * not admitted.
 */
import type { Refusal } from '../../domain/errors.js';
import type { Parsed } from '../../domain/parsed.js';
import type { Push } from '../../domain/push.js';
import type { FrameOf, PushedKey } from '../../frames/frame.js';
import { ownBuffer, type Allocate } from '../../json/text-edits.js';
import { admitKey, admitObject, type PushInputs } from '../admit/admit-push.js';

export type RefusedMutation = Readonly<{ sequence: number; key: PushedKey; refusal: Refusal }>;

export type AdmittedFrame = Readonly<{ pushes: readonly Push[]; refused: readonly RefusedMutation[] }>;

/**
 * For a refused object, the cache keeps the stored version, because the source still has the object
 * in some version.
 */
export function admitFrame(frame: FrameOf<'put' | 'delete'>, inputs: PushInputs): AdmittedFrame {
  const pushes: Push[] = [];
  const refused: RefusedMutation[] = [];
  const take = (admitted: Parsed<Push>, key: PushedKey, index: number): void => {
    if (admitted.kind === 'parsed') {
      pushes.push(admitted.value);
      return;
    }
    refused.push({ sequence: frame.sequence + index, key, refusal: admitted.refusal });
    const kept = admitKey('keep', key, inputs);
    if (frame.kind === 'put' && kept.kind === 'parsed') pushes.push(kept.value);
  };
  if (frame.kind === 'put') frame.objects.forEach((object, i) => take(admitObject(object, inputs), object, i));
  else frame.keys.forEach((key, i) => take(admitKey('retract', key, inputs), key, i));
  return { pushes, refused };
}

/**
 * Provides one buffer for all bodies of a frame, because allocating one for each body would cost
 * more than filling it. The bodies arrive and leave memory together, so no body keeps the memory of
 * the others in use for long.
 *
 * A body that does not fit any more gets its own buffer.
 */
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
