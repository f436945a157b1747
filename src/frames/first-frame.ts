import { BadFrame } from './bad-frame.js';
import type { Frame } from './frame.js';

/** The first frame of a connection, or what came instead. */
export async function firstFrame(frames: AsyncIterator<Frame>): Promise<Frame | string> {
  try {
    const { done, value } = await frames.next();
    return done === true ? 'the connection closed before a frame came' : value;
  } catch (error) {
    if (!(error instanceof BadFrame)) throw error;
    return error.message;
  }
}
