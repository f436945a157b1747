/** How long one turn of the event loop works for watchers before others get theirs. */
import type { Clock } from '../domain/ports.js';

const sliceMs = 5;

/** Begins one; the result says whether its time is up. */
export function slice(clock: Clock): () => boolean {
  const endMs = clock.now() + sliceMs;
  return () => clock.now() >= endMs;
}
