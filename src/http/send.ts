/**
 * Writes a stream of pieces to a response at the pace of its reader. The pieces of one tick are one write; the next is read when the
 * peer has taken them, so that no more waits here than the stream hands out at once. Whoever made a piece has taken room for it.
 */
import type { Exchange } from './exchange.js';

/** Resolves when the stream has ended and was handed over, or when the exchange has ended. */
export async function send(pieces: AsyncIterable<readonly Uint8Array[]>, exchange: Exchange): Promise<void> {
  if (exchange.isOver) return;
  for await (const batch of pieces) {
    await exchange.write(batch);
    if (exchange.isOver) return;
  }
  exchange.finish();
}
