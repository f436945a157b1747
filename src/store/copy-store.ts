/**
 * Copies a store into an empty one: the objects that are pushed or written at this cache, the
 * shards' pushers, and the removals of shards. It skips objects of removed shards, and objects that
 * links brought, because the links send them again.
 *
 * No slice counts as synced in the copy, so pushers send everything again. Equal objects are not
 * written again.
 */
import type { ShardState } from '../domain/claim.js';
import { CacheError } from '../domain/errors.js';
import type { StoredObject } from '../domain/object.js';
import type { Push, PushOutcome, Speaker } from '../domain/push.js';
import type { Scope } from '../domain/scope.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice } from '../domain/slice.js';
import { canonicalPathIn } from '../json/object-meta.js';
import { nestingMax, scanObject } from '../json/object-text.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { PushLane, Store } from '../domain/store-port.js';

/** `left`: objects that were not copied, because their shard is not local. */
export type Copied = Readonly<{ objects: number; bytes: number; shards: number; left: number }>;

/**
 * Calls `note` after each page with the number of objects copied so far. Throws CacheError if a
 * write fails, or if the copy differs from the source.
 */
export async function copyStore(from: Store, to: Store, note: (objects: number) => void): Promise<Copied> {
  if (to.state.names.size > 0) throw new CacheError('the store to copy to is not empty');
  const shards = new Map([...from.state.shards].map((state) => [state.shard, state]));
  const lane = to.writer.lane();
  const speakers = new Map<ShardName, Speaker>();
  for (const state of shards.values()) await copyShard(state, lane, speakers);

  let [objects, bytes, left] = [0, 0, 0];
  for (const resource of await from.objects.resources()) {
    const scope: Scope = { ...resource, shard: '*', cluster: '*' };
    for await (const page of snapshotPages(from.objects.snapshot(scope, from.revisions.published))) {
      const own = page.filter(({ key }) => isOwn(shards.get(key.shard)));
      await copyObjects(own, to, { lane, speakers });
      objects += own.length;
      left += page.length - own.length;
      for (const { body } of own) bytes += body.bytes.length;
      note(objects);
    }
  }
  await assertSame(from, to, shards);
  return { objects, bytes, left, shards: [...shards.values()].filter((state) => state.removed || isOwn(state)).length };
}

async function copyShard(state: ShardState, lane: PushLane, speakers: Map<ShardName, Speaker>): Promise<void> {
  const { shard, process, term, removed, via, plain } = state;
  if (removed) await pushed(lane, [{ kind: 'claim', ...state, via: undefined }]);
  else if (via === 'local' && !plain) {
    const [outcome] = await pushed(lane, [{ kind: 'acquire', shard, process, term, nowMs: 0 }]);
    if (outcome?.kind === 'acquired') speakers.set(shard, { kind: 'pusher', term: outcome.term });
  }
}

/** Objects of a shard that has a pusher become pushes of that pusher, all others plain writes. */
async function copyObjects(
  objects: readonly StoredObject[],
  to: Store,
  { lane, speakers }: Readonly<{ lane: PushLane; speakers: ReadonlyMap<ShardName, Speaker> }>,
): Promise<void> {
  const pushes: Push[] = [];
  const submitted = objects.flatMap(({ key, body }) => {
    const by = speakers.get(key.shard);
    const path = canonicalPathIn(scanObject(body.bytes, nestingMax));
    if (by !== undefined) pushes.push({ kind: 'upsert', key, body, path, by });
    return by === undefined ? [to.writer.submit({ kind: 'put', key, body, path, expect: 'absent' })] : [];
  });
  const [outcomes] = await Promise.all([Promise.all(submitted), pushed(lane, pushes)]);
  for (const outcome of outcomes)
    if (outcome.kind !== 'written') throw new CacheError(`an object was not copied: ${JSON.stringify(outcome)}`);
}

async function pushed(lane: PushLane, pushes: readonly Push[]): Promise<readonly PushOutcome[]> {
  const outcomes = pushes.length === 0 ? [] : await lane.push(pushes);
  const failed = outcomes.find(({ kind }) => kind !== 'written' && kind !== 'unchanged' && kind !== 'acquired');
  if (failed !== undefined) throw new CacheError(`a change was not copied: ${JSON.stringify(failed)}`);
  return outcomes;
}

/** Compares the digests of slices, which each store computes itself. */
async function assertSame(from: Store, to: Store, shards: ReadonlyMap<ShardName, ShardState>): Promise<void> {
  const copied = new Map([...to.state.slices].map(({ slice, digest }) => [formatSlice(slice), digest]));
  for (const { slice, objects, digest } of from.state.slices) {
    if (objects === 0 || !isOwn(shards.get(slice.shard))) continue;
    if (copied.get(formatSlice(slice)) !== digest)
      throw new CacheError(`the copy of ${formatSlice(slice)} differs from its source: do not use the copy`);
  }
}

function isOwn(state: ShardState | undefined): boolean {
  return state === undefined || state.via === 'local';
}
