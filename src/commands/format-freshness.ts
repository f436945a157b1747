/** Formats how fresh the output of a command is. */
import type { ResolvedFreshness } from '../lookup/path-answer.js';

/** The least fresh report counts. Without any report the result is not current. */
export function formatFreshness(freshness: readonly Pick<ResolvedFreshness, 'current' | 'lagMs'>[]): string {
  if (freshness.length === 0 || !freshness.every(({ current }) => current)) return 'not current';
  return `current, ${Math.max(...freshness.map(({ lagMs }) => lagMs ?? 0))} ms behind`;
}
