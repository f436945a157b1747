/**
 * Which of a caller's groups are passed on. Pure.
 *
 * GROUPS-1 Some are for traffic within kcp, and never passed on, whatever an option says: whoever is in one by its certificate would be let in everywhere.
 */
export type GroupRules = Readonly<{
  /** Patterns: a group, or its beginning and '*'. Empty: all. */
  passed: readonly string[];
  dropped: readonly string[];
}>;

const neverPassed: readonly string[] = [
  'system:masters',
  'system:kcp:logical-cluster-admin',
  'system:kcp:initializer:*',
  'system:kcp:terminator:*',
];

/** Sorted, each once. */
export function passedGroups(groups: readonly string[], { passed, dropped }: GroupRules): readonly string[] {
  const isDropped = (group: string): boolean => [...neverPassed, ...dropped].some((pattern) => matches(pattern, group));
  const isPassed = (group: string): boolean => passed.length === 0 || passed.some((pattern) => matches(pattern, group));
  return [...new Set(groups)].filter((group) => isPassed(group) && !isDropped(group)).toSorted();
}

function matches(pattern: string, group: string): boolean {
  return pattern.endsWith('*') ? group.startsWith(pattern.slice(0, -1)) : group === pattern;
}
