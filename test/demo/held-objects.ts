/** Compares what caches hold with what they should. */
import { setTimeout as pause } from 'node:timers/promises';
import type { CacheProcess } from './cache-process.js';
import { idOf, type DealtObject } from './dealt-shards.js';

const pollMs = 50;
const namesShown = 3;

/** Waits until every cache holds exactly what it should; throws the difference after `withinMs`. */
export async function untilAsExpected(
  caches: readonly CacheProcess[],
  {
    expected,
    objects,
    withinMs,
    signal,
  }: Readonly<{
    expected: (cache: string) => readonly DealtObject[];
    objects: readonly DealtObject[];
    withinMs: number;
    signal: AbortSignal;
  }>,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (const cache of caches) {
    const wanted = new Set(expected(cache.name).map(({ id }) => id));
    for (;;) {
      const held = await heldBy(cache, objects);
      const missing = [...wanted].filter((id) => !held.has(id));
      const surplus = [...held].filter((id) => !wanted.has(id));
      if (missing.length === 0 && surplus.length === 0) break;
      if (performance.now() > deadline)
        throw new Error(`the cache ${cache.name} is wrong: it lacks ${some(missing)}, and has ${some(surplus)} too many`);
      await pause(pollMs, undefined, { signal });
    }
  }
}

/** The names of the objects that a cache holds, of every type in `objects`. */
async function heldBy({ client }: CacheProcess, objects: readonly DealtObject[]): Promise<ReadonlySet<string>> {
  const everywhere = (collection: string): string => collection.replace(/\/shards\/.*\/apis\//, '/shards/*/clusters/*/apis/');
  const held = new Set<string>();
  for (const collection of new Set(objects.map((object) => everywhere(object.collection)))) {
    const { items } = await client.list(collection);
    for (const item of items) held.add(idOf(collection, item));
  }
  return held;
}

function some(ids: readonly string[]): string {
  const names = ids.slice(0, namesShown).join(', ');
  return ids.length === 0 ? 'none' : `${ids.length} (${names}${ids.length > namesShown ? ', …' : ''})`;
}
