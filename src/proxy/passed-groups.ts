/**
 * Which groups of a caller are passed on. Pure.
 *
 * GROUPS-1 Groups for traffic within kcp are never passed on, whatever an option says. A caller
 *    with such a group in its certificate would have access everywhere.
 */
export type GroupRules = Readonly<{
  /** Patterns: a group, or a prefix and '*'. Empty: all groups pass. */
  passed: readonly string[];
  dropped: readonly string[];
}>;

const neverPassed: readonly string[] = [
  'system:masters',
  'system:kcp:logical-cluster-admin',
  'system:kcp:initializer:*',
  'system:kcp:terminator:*',
];

/** Sorted, without duplicates. */
export function passedGroups(groups: readonly string[], { passed, dropped }: GroupRules): readonly string[] {
  const isDropped = (group: string): boolean => [...neverPassed, ...dropped].some((pattern) => matches(pattern, group));
  const isPassed = (group: string): boolean => passed.length === 0 || passed.some((pattern) => matches(pattern, group));
  return [...new Set(groups)].filter((group) => isPassed(group) && !isDropped(group)).toSorted();
}

function matches(pattern: string, group: string): boolean {
  return pattern.endsWith('*') ? group.startsWith(pattern.slice(0, -1)) : group === pattern;
}
