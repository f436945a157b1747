import { formatResource, type Resource } from './resource.js';
import type { ShardName } from './shard.js';

/** The objects of one type on one shard: what is synced as a whole, and what freshness is reported of. */
export type Slice = Readonly<{ shard: ShardName; resource: Resource }>;

/** The one text for a slice, usable as the key of a map. */
export function formatSlice({ shard, resource }: Slice): string {
  return `${shard}|${formatResource(resource)}`;
}

/** Compares without making either text. */
export function isSameSlice({ shard, resource }: Slice, other: Slice): boolean {
  return (
    shard === other.shard &&
    resource.resource === other.resource.resource &&
    resource.group === other.resource.group &&
    resource.identity === other.resource.identity
  );
}
