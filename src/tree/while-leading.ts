/** Work that only the leading server of a store does. */
import type { Peers } from '../domain/store-port.js';
import { Notifier } from '../sender/notifier.js';

/**
 * Calls `run` whenever this server leads, until `signal` is aborted or `run` resolves by itself.
 * The signal for `run` is also aborted when this server does not lead any more.
 */
export async function whileLeading(peers: Peers, signal: AbortSignal, run: (leading: AbortSignal) => Promise<void>): Promise<void> {
  const notifier = new Notifier();
  let leading = new AbortController();
  const check = (): void => {
    if (signal.aborted || peers.leadsSinceMs === undefined) leading.abort();
    notifier.notify();
  };
  const following = peers.follow(check);
  signal.addEventListener('abort', check);
  try {
    while (!signal.aborted) {
      const seen = notifier.notified;
      if (peers.leadsSinceMs === undefined) {
        await notifier.after(seen, signal);
        continue;
      }
      leading = new AbortController();
      await run(leading.signal);
      if (!leading.signal.aborted) return;
    }
  } finally {
    following.cancel();
    signal.removeEventListener('abort', check);
  }
}
