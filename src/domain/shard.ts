/** The name of a kcp server that owns objects and pushes them. `*` is a scope, never a shard. */
declare const shardName: unique symbol;
export type ShardName = string & { readonly [shardName]: true };

/**
 * The pattern that kcp's own cache server enforces, so that every shard name valid there is valid
 * here.
 */
const shardPattern = /^[a-z0-9-:]{1,61}$/;

/** The shard that has the logical cluster `root`; kcp fixes its name (`corev1alpha1.RootShard`). */
export const rootShard = 'root' as ShardName;

export function parseShardName(text: string): ShardName | undefined {
  return shardPattern.test(text) ? (text as ShardName) : undefined;
}
