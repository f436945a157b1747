/** What of the settings looks like a link that was meant to carry something, and carries nothing: one sentence each, for the log. */
import type { Settings } from './settings.js';

export function idleLinks({ parentUrls, parentForward, parentFollow }: Settings): readonly string[] {
  const hasParent = parentUrls.length > 0;
  const hasRules = parentForward.length > 0 || parentFollow.length > 0;
  if (hasParent && !hasRules)
    return ['parent.urls is given without parent.forward or parent.follow: nothing crosses the link to the parent'];
  if (!hasParent && hasRules) return ['parent.forward or parent.follow is given without parent.urls: this cache has no parent'];
  return [];
}
