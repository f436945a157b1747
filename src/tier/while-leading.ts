/** Work that only the leading server of a store does. */
import type { Peers } from '../domain/store-port.js';

/**
 * Calls `run` whenever this server leads, until `signal` is aborted or `run` resolves by itself.
 * The signal for `run` is also aborted when this server does not lead any more.
 */
export async function whileLeading(peers: Peers, signal: AbortSignal, run: (leading: AbortSignal) => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    if (peers.leadsSinceMs === undefined) {
      await news(peers, signal);
      continue;
    }
    const leading = new AbortController();
    const end = (): void => {
      if (signal.aborted || peers.leadsSinceMs === undefined) leading.abort();
    };
    const following = peers.follow(end);
    signal.addEventListener('abort', end);
    try {
      await run(leading.signal);
    } finally {
      following.cancel();
      signal.removeEventListener('abort', end);
    }
    if (!leading.signal.aborted) return;
  }
}

function news(peers: Peers, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const come = (): void => {
      following.cancel();
      signal.removeEventListener('abort', come);
      resolve();
    };
    const following = peers.follow(come);
    signal.addEventListener('abort', come);
  });
}
