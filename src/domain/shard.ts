/** The name of a kcp server that owns objects and pushes them. `*` is a scope, never a shard. */
declare const shardName: unique symbol;
export type ShardName = string & { readonly [shardName]: true };

/** The pattern kcp's own cache server enforces, so that whoever names a shard there can name it here. */
const shardPattern = /^[a-z0-9-:]{1,61}$/;

/** The shard that has the logical cluster `root`, as kcp names it (`corev1alpha1.RootShard`); nobody can choose another name. */
export const rootShard = 'root' as ShardName;

/** A shard name, or undefined when the text is not one. */
export function parseShardName(text: string): ShardName | undefined {
  return shardPattern.test(text) ? (text as ShardName) : undefined;
}
