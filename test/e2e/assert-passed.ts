import type { ExecutionContext } from 'ava';
import type { TestOutcome } from './live-kcp.js';

/**
 * Asserts that some test passed, that none failed, and that at least `atLeast` scenarios (subtests)
 * passed. A program that crashes before its first result fails by its exit code.
 */
export function assertPassed(
  t: ExecutionContext,
  { code, passed, failed, output }: TestOutcome,
  { atLeast }: Readonly<{ atLeast: number }>,
): void {
  const scenarios = passed.filter((name) => name.includes('/'));
  t.log(`${passed.length} passed: ${scenarios.length} scenarios`);
  t.deepEqual(failed, [], linesOf(failed, output).slice(-8_000));
  t.is(code, 0, output.slice(-8_000));
  t.true(passed.length > 0 && scenarios.length >= atLeast, output.slice(-8_000));
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
