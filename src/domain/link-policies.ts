/** Everything that a cache lets through: to and from its parent, and from and to its children, each known by its name. */
import type { EdgePolicy } from './edge-policy.js';

/** `accept`: what may come up from the child. `offer`: what may go down to it. */
export type ChildPolicies = Readonly<{ accept: EdgePolicy; offer: EdgePolicy }>;

export type LinkPolicies = Readonly<{
  /** Up to the parent. */
  forward: EdgePolicy;
  /** Down from the parent. */
  follow: EdgePolicy;
  /** By the name of the child; '*' is for all that have no entry of their own. */
  children: ReadonlyMap<string, ChildPolicies>;
}>;

/** An entry of its own replaces that of '*' altogether; without either nothing crosses. */
export function policiesOfChild({ children }: Pick<LinkPolicies, 'children'>, name: string): ChildPolicies {
  return children.get(name) ?? children.get('*') ?? nothing;
}

const nothing: ChildPolicies = { accept: [], offer: [] };
