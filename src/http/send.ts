/**
 * Writes a stream of pieces to a response at the pace of its reader. The pieces of one tick are one
 * write. The next pieces are read when the response accepts more, so only one batch waits here. The
 * producer of a piece has reserved memory for it.
 */
import type { Exchange } from './exchange.js';

/** Resolves when the answer is finished, or the exchange has ended. */
export async function send(pieces: AsyncIterable<readonly Uint8Array[]>, exchange: Exchange): Promise<void> {
  if (exchange.isOver) return;
  for await (const batch of pieces) {
    await exchange.write(batch);
    if (exchange.isOver) return;
  }
  exchange.finish();
}
