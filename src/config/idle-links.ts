/**
 * Finds policies of a link over which nothing can pass, which is probably a mistake. Returns one
 * sentence each, for the log.
 */
import { shardsNamedBy } from '../domain/link-policies.js';
import type { Settings } from './settings.js';

export function idleLinks({ parentUrls, parentForward, parentFollow, children }: Settings): readonly string[] {
  const hasParent = parentUrls.length > 0;
  const hasRules = parentForward.length > 0 || parentFollow.length > 0;
  const warnings: string[] = [];
  if (hasParent && !hasRules)
    warnings.push('parent.urls is given without parent.forward or parent.follow: nothing crosses the link to the parent');
  if (!hasParent && hasRules) warnings.push('parent.forward or parent.follow is given without parent.urls: this cache has no parent');
  for (const [name, { accept }] of children)
    if (accept.length > 0 && shardsNamedBy(accept).length === 0)
      warnings.push(
        `children.${name}.accept names no shard: nothing is accepted, because a child may claim only shards that are named, or shards: ['*']`,
      );
  return warnings;
}
