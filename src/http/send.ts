/**
 * Writes a stream of pieces to a response at the pace of its reader. What one tick brings is written as one; the next is asked for when the
 * peer has taken it, so that no more waits here than the stream hands out at once. Room was taken for each piece by who made it.
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
