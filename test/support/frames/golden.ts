/**
 * The golden bytes of a protocol version. Each frame has a line with its text, a line with its
 * bytes, and an empty line.
 */
import { protocolVersion, type Frame } from '../../../src/frames/frame.js';
import { writeFrame } from '../../../src/frames/frame-codec.js';
import { projectFile } from '../project.js';
import { plain } from './some-frames.js';

export const goldenFile = projectFile('test', 'clients', 'golden', 'frames', `v${protocolVersion}.txt`);

export function goldenText(frames: readonly Frame[]): string {
  return frames.map((frame) => `${JSON.stringify(plain(frame))}\n${Buffer.from(writeFrame(frame)).toString('hex')}\n`).join('\n');
}

/** The bytes of a golden file, in the order of the file. */
export function goldenBytes(text: string): readonly Uint8Array[] {
  return text.split('\n\n').map((entry) => Buffer.from(entry.trimEnd().split('\n').at(-1) ?? '', 'hex'));
}
