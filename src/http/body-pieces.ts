/**
 * In what pieces a body comes. Each of them costs a call, however short it is: chunks or frames of a byte cost a hundred times what their bytes do, and everybody
 * waits. Node neither counts them nor says that they come, but hands each to `push`.
 *
 * Bound: `piecesMax` of them, where they are shorter than `pieceBytesMin` on average.
 */
import type { IncomingMessage } from 'node:http';

const piecesMax = 4_096;
const pieceBytesMin = 16;

/** Calls `end` once the pieces are too many and too short. To be called before the first of them can have come. */
export function limitPieces(request: IncomingMessage, end: () => void): void {
  let pieces = 0;
  let bytes = 0;
  const push = request.push.bind(request);
  request.push = (chunk: Buffer | null) => {
    pieces += 1;
    bytes += chunk?.length ?? 0;
    if (pieces > piecesMax && bytes < pieces * pieceBytesMin) end();
    return push(chunk);
  };
}
