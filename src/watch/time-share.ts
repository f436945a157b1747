/** How long one turn of the event loop works for watchers before others get theirs. */
import type { Clock } from '../domain/ports.js';

const shareMs = 5;

/** Begins one; the result says whether its time is up. */
export function timeShare(clock: Clock): () => boolean {
  const endMs = clock.now() + shareMs;
  return () => clock.now() >= endMs;
}
