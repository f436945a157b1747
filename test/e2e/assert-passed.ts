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
  t.deepEqual(failed, [], linesOf(failed, output).slice(-8_000));
  t.true(scenarios.length >= atLeast, output.slice(-8_000));
}

/** What the tests of these names have printed; Go prints the lines of parallel tests among each other, and names the test before its lines. */
function linesOf(tests: readonly string[], output: string): string {
  let current = '';
  const lines = output.split('\n').filter((line) => {
    current = /^=== [A-Z]+\s+(\S+)/.exec(line)?.[1] ?? current;
    return line.includes('--- FAIL') || tests.some((name) => current === name || current.startsWith(`${name}/`));
  });
  return lines.join('\n');
}
