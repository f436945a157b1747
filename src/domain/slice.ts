import { formatResource, type Resource } from './resource.js';
import type { ShardName } from './shard.js';

/** The objects of one type on one shard: the unit of a full sync and of freshness. */
export type Slice = Readonly<{ shard: ShardName; resource: Resource }>;

export function formatSlice({ shard, resource }: Slice): string {
  return `${shard}|${formatResource(resource)}`;
}

/** Faster than comparing both texts. */
export function isSameSlice({ shard, resource }: Slice, other: Slice): boolean {
  return (
    shard === other.shard &&
    resource.resource === other.resource.resource &&
    resource.group === other.resource.group &&
    resource.identity === other.resource.identity
  );
}
