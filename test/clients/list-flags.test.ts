/**
 * Compares Strata's reading of list flags with that of pflag, which reads the flags of kcp's own
 * programs. An operator who starts Strata in their place must get each list read alike, or refused
 * alike. Needs `go` and the modules of go.mod; skipped with a log line without them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { readStringSlice } from '../../src/config/options/string-slice.js';
import { test } from '../support/test.js';
import { askInLines, buildGoProgram } from './installed.js';

const cases = 20_000;
const seed = Number(process.env['TEST_SEED'] ?? Date.now());

test('a list flag that is given once or several times is read, or refused, as pflag does', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-flags-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const built = await buildGoProgram(join(folder, 'list-flags'), { source: './list-flags', timeoutMs: 300_000 });
  if ('why' in built) {
    t.log(`SKIPPED (the only test beside pflag): ${built.why}`);
    t.pass();
    return;
  }

  t.log(`TEST_SEED=${seed}`);
  const values = fc.sample(fc.array(aValue(), { minLength: 1, maxLength: 3 }), { numRuns: cases, seed });
  const answers = await answersOf(built.program, values);

  t.is(answers.length, cases);
  t.true(answers.filter((answer) => answer === undefined).length > cases / 10);
  for (const [i, given] of values.entries()) t.deepEqual(readStringSlice(given.join('\n')), answers[i], JSON.stringify(given));
});

/** Values without line breaks, because pflag ignores everything after the first. */
function aValue(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.string({ unit: fc.constantFrom('"', ',', 'a', 'b', ' ', '\\', "'", 'é'), maxLength: 12 }),
    fc
      .array(fc.string({ unit: fc.constantFrom('"', ',', 'x', ' '), maxLength: 4 }), { maxLength: 4 })
      .map((texts) => texts.map(quoted).join(',')),
  );
}

function quoted(each: string): string {
  return `"${each.replaceAll('"', '""')}"`;
}

/** undefined if pflag refuses the values. */
async function answersOf(program: string, values: readonly (readonly string[])[]): Promise<readonly (readonly string[] | undefined)[]> {
  return (await askInLines(program, values)).map((answer) => {
    const { texts, refused } = answer as { texts: readonly string[]; refused?: string };
    return refused === undefined ? texts : undefined;
  });
}
