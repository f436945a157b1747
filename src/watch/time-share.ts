/** How long watchers may use one turn of the event loop. */
import type { Clock } from '../domain/ports.js';

const shareMs = 5;

/** Starts a time slice; the returned function says whether it is over. */
export function timeShare(clock: Clock): () => boolean {
  const endMs = clock.now() + shareMs;
  return () => clock.now() >= endMs;
}
