/**
 * Frames of a websocket: any bytes decode to a frame or are rejected, and a decoded frame encodes
 * to an equal one.
 */
import { test } from '../../support/test.js';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { BadFrame } from '../../../src/frames/bad-frame.js';
import type { Frame } from '../../../src/frames/frame.js';
import { readFrame, writeFrame } from '../../../src/frames/frame-codec.js';
import { plain, someFrames } from '../../support/frames/some-frames.js';
import { fuzz, mutatedBytes } from './fuzzing.js';

test('any bytes decode to a frame, which encodes to bytes that decode to the same, or are refused as a bad frame', (t) => {
  const law = (bytes: Uint8Array): void => {
    const frame = read(bytes);
    if (frame === undefined) return;
    const again = readFrame(writeFrame(frame));
    if (!isDeepStrictEqual(plain(again), plain(frame))) throw new Error(`read otherwise: ${JSON.stringify(plain(again))}`);
  };
  const bytes = fc.oneof({ weight: 5, arbitrary: mutatedBytes(someFrames.map(writeFrame)) }, { weight: 1, arbitrary: fc.uint8Array() });

  fuzz(t, bytes, law, { share: 5, sizeOf: ({ length }) => length, msPer10kB: 20 });
});

function read(bytes: Uint8Array): Frame | undefined {
  try {
    return readFrame(bytes);
  } catch (error) {
    if (error instanceof BadFrame) return undefined;
    throw error;
  }
}
