/**
 * All link policies of a cache: those with its parent, and those with its children, by their names.
 */
import type { LinkPolicy } from './link-policy.js';
import type { ShardName } from './shard.js';

/** `accept`: the objects that the child may send. `offer`: those that it may receive. */
export type ChildPolicies = Readonly<{ accept: LinkPolicy; offer: LinkPolicy }>;

export type LinkPolicies = Readonly<{
  /** The objects that this cache may send to the parent. */
  forward: LinkPolicy;
  /** The objects that this cache may receive from the parent. */
  follow: LinkPolicy;
  /** By the name of the child; '*' applies to all children without an entry of their own. */
  children: ReadonlyMap<string, ChildPolicies>;
}>;

/** A child's own entry replaces that of '*' entirely; without either, nothing crosses. */
export function policiesOfChild({ children }: Pick<LinkPolicies, 'children'>, name: string): ChildPolicies {
  return children.get(name) ?? children.get('*') ?? nothing;
}

export function shardsNamedBy(policy: LinkPolicy): readonly ShardName[] | '*' {
  const named = new Set<ShardName>();
  for (const { shards } of policy) {
    if (shards === '*') return '*';
    for (const shard of shards ?? []) named.add(shard);
  }
  return [...named];
}

/**
 * The rules for objects from a child. A child may send only shards that the policy names, so a rule
 * without `shards` applies to the shards that the other rules name. If they name none, that rule
 * accepts nothing.
 */
export function acceptedFromChild(policy: LinkPolicy): LinkPolicy {
  const shards = shardsNamedBy(policy);
  return policy.flatMap((rule) => {
    if (rule.shards !== undefined) return [rule];
    return shards.length === 0 ? [] : [{ ...rule, shards }];
  });
}

/**
 * The shards that a child may not claim although its accept names '*': another entry's accept names
 * them, and the child's own does not.
 */
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
