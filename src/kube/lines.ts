/**
 * Cuts received bytes into the lines of a watch. A batch has the lines that one chunk completed.
 * The beginning of a line is kept until its end arrives, up to `lineBytesMax`.
 */
import { CacheError } from '../domain/errors.js';
import { GatheredBytes } from '../domain/gathered-bytes.js';

const newline = 0x0a;

/**
 * Lines without their newline. Bytes after the last newline are no complete event, and are dropped.
 */
export async function* lines(chunks: AsyncIterable<Uint8Array>, lineBytesMax: number): AsyncGenerator<readonly Uint8Array[], void> {
  const begun = new GatheredBytes();
  for await (const chunk of chunks) {
    const batch: Uint8Array[] = [];
    let from = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
      batch.push(begun.takeWholeWith(chunk.subarray(from, end)));
      from = end + 1;
    }
    if (from < chunk.length) {
      begun.add(chunk.subarray(from));
      if (begun.bytes > lineBytesMax) throw new CacheError(`an event of a watch has more than ${lineBytesMax} bytes`);
    }
    if (batch.length > 0) yield batch;
  }
}
