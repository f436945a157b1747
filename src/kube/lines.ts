/**
 * Cuts what arrives into the lines of a watch. A batch is what one chunk completed; the beginning of a line is held until its
 * end arrives, `lineBytesMax` at most.
 */
import { CacheError } from '../domain/errors.js';

const newline = 0x0a;

/** Lines without their newline. What follows the last one is no event, and is dropped with the stream. */
export async function* lines(chunks: AsyncIterable<Uint8Array>, lineBytesMax: number): AsyncGenerator<readonly Uint8Array[], void> {
  let begun: Uint8Array[] = [];
  let begunBytes = 0;
  for await (const chunk of chunks) {
    const batch: Uint8Array[] = [];
    let from = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
      const rest = chunk.subarray(from, end);
      batch.push(begun.length === 0 ? rest : Buffer.concat([...begun, rest]));
      begun = [];
      begunBytes = 0;
      from = end + 1;
    }
    if (from < chunk.length) {
      begun.push(chunk.subarray(from));
      begunBytes += chunk.length - from;
      if (begunBytes > lineBytesMax) throw new CacheError(`an event of a watch has more than ${lineBytesMax} bytes`);
    }
    if (batch.length > 0) yield batch;
  }
}
