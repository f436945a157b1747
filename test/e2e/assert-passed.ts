/** What a run of kcp's own tests must show. */
import type { ExecutionContext } from 'ava';
import type { TestOutcome } from './live-kcp.js';

/** `atLeast`: how many scenarios a test that has such must have passed, so that one that ran nothing does not pass. */
export function assertPassed(
  t: ExecutionContext,
  { passed, failed, output }: TestOutcome,
  { atLeast }: Readonly<{ atLeast: number }>,
): void {
  const scenarios = passed.filter((name) => name.includes('/'));
  t.log(`${passed.length} passed: ${scenarios.length} scenarios`);
  t.deepEqual(failed, [], output.slice(-8_000));
  t.true(scenarios.length >= atLeast, output.slice(-8_000));
}
