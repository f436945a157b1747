import { BadFrame } from './bad-frame.js';
import type { Frame } from './frame.js';

/** Returns the first frame of a connection, or a text that says why there is none. */
export async function firstFrame(frames: AsyncIterator<Frame>): Promise<Frame | string> {
  try {
    const { done, value } = await frames.next();
    return done === true ? 'the connection closed before a frame came' : value;
  } catch (error) {
    if (!(error instanceof BadFrame)) throw error;
    return error.message;
  }
}
