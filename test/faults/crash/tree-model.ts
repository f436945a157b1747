/** Compares caches with shards: a cache holds all of each shard, or what policies let through. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { modelTypes, type ModelObject, type ModelShard } from './model-shard.js';
import type { TreeCache } from '../../support/crash/process-tree.js';

export type Reaches = (object: ModelObject, shard: ModelShard, cache: TreeCache) => boolean;

type Wanted = Readonly<{ caches: readonly TreeCache[]; shards: readonly ModelShard[]; reaches?: Reaches }>;

const convergeMsMax = 60_000;
const pollMs = 100;
const answerMsMax = 10_000;
const shownMax = 20;

/**
 * Waits until every cache holds exactly what it should; on a timeout, fails with the differences.
 */
export async function converge(t: ExecutionContext, when: string, wanted: Wanted, withinMs = convergeMsMax): Promise<void> {
  const deadline = performance.now() + withinMs;
  let late = wanted.caches;
  for (;;) {
    const found = await Promise.all(late.map((cache) => differences(cache, wanted).catch((error: unknown) => [String(error)])));
    late = late.filter((_, i) => found[i]!.length > 0);
    // A cache that was right may have changed meanwhile, so all are compared once more.
    if (late.length === 0 && (await Promise.all(wanted.caches.map((cache) => differences(cache, wanted)))).flat().length === 0) break;
    if (late.length === 0) late = wanted.caches;
    if (performance.now() > deadline) {
      t.deepEqual(found.flat().slice(0, shownMax), [], `${when}: ${found.flat().length} differences`);
      throw new Error(`not in ${withinMs} ms: ${when}`);
    }
    await sleep(pollMs);
  }
  t.pass();
}

/** The digest of each slice that holds objects, as the cache's status reports it. */
export async function digestsOf(cache: TreeCache): Promise<Readonly<Record<string, string>>> {
  const { shards } = await cache.status();
  const slices = shards.flatMap(({ shard, slices: all }) => all.filter(({ objects }) => objects > 0).map((slice) => ({ shard, slice })));
  return Object.fromEntries(slices.map(({ shard, slice }) => [`${shard} ${slice.resource}`, slice.digest ?? 'none']));
}

/** What the cache lacks of these shards, and what it has left over. */
export async function differences(cache: TreeCache, { shards, reaches = () => true }: Wanted): Promise<readonly string[]> {
  const found: string[] = [];
  const names = new Set<string | undefined>(shards.map(({ name }) => name));
  for (const type of modelTypes) {
    const { items } = await cache.client.list(`/services/cache/shards/*/clusters/*/apis/${type.group}/${type.version}/${type.resource}`, {
      timeoutMs: answerMsMax,
    });
    const held = new Set(
      items
        .filter(({ metadata: { annotations } }) => names.has(annotations?.['kcp.io/shard']))
        .map(({ metadata: { annotations, name, labels } }) => `${annotations?.['kcp.io/shard']} ${name} ${labels?.['turn']}`),
    );
    const wanted = new Set(
      shards.flatMap((shard) =>
        shard.objects
          .filter((object) => object.type === type && reaches(object, shard, cache))
          .map(({ name, turn }) => `${shard.name} ${name} ${turn}`),
      ),
    );
    for (const each of wanted) if (!held.has(each)) found.push(`${cache.name} misses ${type.resource} ${each}`);
    for (const each of held) if (!wanted.has(each)) found.push(`${cache.name} has ${type.resource} ${each} left over`);
  }
  return found;
}
