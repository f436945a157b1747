/** How fresh what a command shows is, in words. */
import type { ResolvedFreshness } from '../lookup/path-answer.js';

/** The least fresh counts; where nothing is reported, nothing is current. */
export function formatFreshness(freshness: readonly Pick<ResolvedFreshness, 'current' | 'lagMs'>[]): string {
  if (freshness.length === 0 || !freshness.every(({ current }) => current)) return 'not current';
  return `current, ${Math.max(...freshness.map(({ lagMs }) => lagMs ?? 0))} ms behind`;
}
