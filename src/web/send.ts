/**
 * Writes a stream of pieces to a response at the pace of its reader. What one tick brings is written corked, as one; the
 * next is asked for when the socket has drained, so that no more waits here than the stream hands out at once.
 */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';

/** Whether the reader went away. An HTTP/2 response does not know by itself that its stream is gone. */
export function isGone(response: ServerResponse): boolean {
  const { destroyed, stream } = response as ServerResponse & { stream?: Writable };
  return destroyed || stream?.destroyed === true;
}

/** Resolves when the stream has ended and was handed to the socket, or when the reader went away. */
export async function send(pieces: AsyncIterable<readonly Uint8Array[]>, response: ServerResponse): Promise<void> {
  if (isGone(response)) return;
  const gone = new AbortController();
  const onClose = (): void => gone.abort();
  response.once('close', onClose);
  try {
    for await (const batch of pieces) {
      if (gone.signal.aborted) return;
      if (!write(batch, response)) await drained(response, gone.signal);
      if (gone.signal.aborted) return;
    }
    response.end();
  } finally {
    response.off('close', onClose);
  }
}

function write(batch: readonly Uint8Array[], response: ServerResponse): boolean {
  if (batch.length > 1) response.cork?.();
  let ready = true;
  for (const piece of batch) ready = response.write(piece);
  if (batch.length > 1) response.uncork?.();
  return ready;
}

async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  if (signal.aborted || isGone(response)) return;
  try {
    await once(response, 'drain', { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
