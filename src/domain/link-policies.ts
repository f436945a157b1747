/** Everything that a cache lets through: to and from its parent, and from and to its children, each known by its name. */
import type { LinkPolicy } from './link-policy.js';
import type { ShardName } from './shard.js';

/** `accept`: what may come up from the child. `offer`: what may go down to it. */
export type ChildPolicies = Readonly<{ accept: LinkPolicy; offer: LinkPolicy }>;

export type LinkPolicies = Readonly<{
  /** Up to the parent. */
  forward: LinkPolicy;
  /** Down from the parent. */
  follow: LinkPolicy;
  /** By the name of the child; '*' is for all that have no entry of their own. */
  children: ReadonlyMap<string, ChildPolicies>;
}>;

/** An entry of its own replaces that of '*' altogether; without either nothing crosses. */
export function policiesOfChild({ children }: Pick<LinkPolicies, 'children'>, name: string): ChildPolicies {
  return children.get(name) ?? children.get('*') ?? nothing;
}

/** The shards that the rules name, '*' where one of them writes out that it is for all. */
export function shardsNamedBy(policy: LinkPolicy): readonly ShardName[] | '*' {
  const named = new Set<ShardName>();
  for (const { shards } of policy) {
    if (shards === '*') return '*';
    for (const shard of shards ?? []) named.add(shard);
  }
  return [...named];
}

/**
 * What a policy accepts from a child, which speaks for no shard but those that the policy names. A rule without `shards` is for those that the
 * other rules name, and accepts nothing where they name none.
 */
export function acceptedFromChild(policy: LinkPolicy): LinkPolicy {
  const shards = shardsNamedBy(policy);
  return policy.flatMap((rule) => {
    if (rule.shards !== undefined) return [rule];
    return shards.length === 0 ? [] : [{ ...rule, shards }];
  });
}

/** The shards that a child may not claim though its accept is for '*': another entry's accept names them, and its own does not. */
export function shardsOfOthers({ children }: Pick<LinkPolicies, 'children'>, name: string): ReadonlySet<ShardName> {
  const own = policiesOfChild({ children }, name);
  const others = new Set<ShardName>();
  if (shardsNamedBy(own.accept) !== '*') return others;
  for (const each of children.values()) for (const shard of each === own ? [] : namesIn(each.accept)) others.add(shard);
  for (const shard of namesIn(own.accept)) others.delete(shard);
  return others;
}

function namesIn(policy: LinkPolicy): readonly ShardName[] {
  return policy.flatMap(({ shards = [] }) => (shards === '*' ? [] : shards));
}

const nothing: ChildPolicies = { accept: [], offer: [] };
