import type { ExecutionContext } from 'ava';
import type { TestOutcome } from './live-kcp.js';

/**
 * Asserts that no test failed, and that at least `atLeast` scenarios (subtests) passed, so that a
 * run without any fails.
 */
export function assertPassed(
  t: ExecutionContext,
  { passed, failed, output }: TestOutcome,
  { atLeast }: Readonly<{ atLeast: number }>,
): void {
  const scenarios = passed.filter((name) => name.includes('/'));
  t.log(`${passed.length} passed: ${scenarios.length} scenarios`);
  t.deepEqual(failed, [], linesOf(failed, output).slice(-8_000));
  t.true(scenarios.length >= atLeast, output.slice(-8_000));
}

/**
 * The output of these tests. Go mixes the lines of parallel tests, and prints a test's name before
 * its lines.
 */
function linesOf(tests: readonly string[], output: string): string {
  let current = '';
  const lines = output.split('\n').filter((line) => {
    current = /^=== [A-Z]+\s+(\S+)/.exec(line)?.[1] ?? current;
    return line.includes('--- FAIL') || tests.some((name) => current === name || current.startsWith(`${name}/`));
  });
  return lines.join('\n');
}
