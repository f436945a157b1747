import type { ClusterName } from './cluster.js';
import type { Key } from './key.js';
import type { ShardName } from './shard.js';
import type { Slice } from './slice.js';

/**
 * The objects that a list or a watch covers. '*' is the wildcard; an identity '*' covers every
 * identity of the resource (a list of PartialObjectMetadata in all logical clusters). `namespace`
 * and `name` narrow the scope.
 */
export type Scope = Readonly<{
  group: string;
  resource: string;
  identity: string;
  shard: ShardName | '*';
  cluster: ClusterName | '*';
  namespace?: string | undefined;
  name?: string | undefined;
}>;

export function scopeOfSlice({ shard, resource: { group, resource, identity } }: Slice): Scope {
  return { group, resource, identity, shard, cluster: '*' };
}

/** The ONE test of whether a key is in a scope. */
export function matches(scope: Scope, key: Key): boolean {
  return (
    scope.resource === key.resource.resource &&
    scope.group === key.resource.group &&
    (scope.identity === '*' || scope.identity === key.resource.identity) &&
    (scope.shard === '*' || scope.shard === key.shard) &&
    (scope.cluster === '*' || scope.cluster === key.cluster) &&
    (scope.namespace === undefined || scope.namespace === key.namespace) &&
    (scope.name === undefined || scope.name === key.name)
  );
}

/** The canonical text of a scope; two scopes with the same text cover the same objects. */
export function formatScope(scope: Scope): string {
  return JSON.stringify([
    scope.group,
    scope.resource,
    scope.identity,
    scope.shard,
    scope.cluster,
    scope.namespace ?? null,
    scope.name ?? null,
  ]);
}
