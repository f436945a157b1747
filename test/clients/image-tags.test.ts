/**
 * Checks the image tags in the docs and deploy/ with the semver library and constraints of
 * kcp-operator. The operator must start each image as a current kcp. Needs `go` and the modules of
 * go.mod; skipped with a log line without them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { documentedTags, readsAsVersion } from '../support/documented-tags.js';
import { test } from '../support/test.js';
import { askInLines, buildGoProgram } from './installed.js';

const cases = 20_000;
const seed = Number(process.env['TEST_SEED'] ?? Date.now());

/** Constraints of kcp-dev/kcp-operator at 406169b3, by the flag that depends on them. */
const constraints = {
  '--client-ca-file of a cache server': '~0.29.2 || ~0.30.2 || >=0.31.0',
  '--requestheader-client-ca-file of a front proxy': '~0.31.6 || >=0.32.3',
} as const;

type Answer = Readonly<{ isVersion: boolean; isPassed: boolean }>;

test('kcp-operator passes every flag to an image with a documented tag, and `readsAsVersion` knows what it reads as a version', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-tags-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const built = await buildGoProgram(join(folder, 'image-tags'), { source: './image-tags', timeoutMs: 300_000 });
  if ('why' in built) {
    t.log(`SKIPPED (the only test beside Masterminds/semver): ${built.why}`);
    t.pass();
    return;
  }
  const ask = async (tags: readonly string[], constraint: string) =>
    (await askInLines(
      built.program,
      tags.map((tag) => ({ tag, constraint })),
    )) as readonly Answer[];
  const tags = [...documentedTags().values()].flat();
  t.true(tags.length >= 5, `${tags.length} tags`);

  for (const [flag, constraint] of Object.entries(constraints)) {
    for (const [i, { isPassed }] of (await ask(tags, constraint)).entries()) t.true(isPassed, `${flag} with ${tags[i]}`);
    t.deepEqual(
      (await ask(['0.1.0', '0.1.0-strata', 'v0.29', '1', 'v0.32.3'], constraint)).map(({ isPassed }) => isPassed),
      [false, false, false, true, true],
      flag,
    );
  }

  t.log(`TEST_SEED=${seed}`);
  const random = fc.sample(aTag(), { numRuns: cases, seed });
  const answers = await ask(random, '*');
  const versions = answers.filter(({ isVersion }) => isVersion).length;
  t.true(versions > cases / 10 && versions < cases / 2, `${versions} versions`);
  for (const [i, { isVersion }] of answers.entries()) t.is(readsAsVersion(random[i]!), isVersion, JSON.stringify(random[i]));
});

function aTag(): fc.Arbitrary<string> {
  const number = fc.oneof(fc.nat({ max: 99 }).map(String), fc.constantFrom('0', '00', '01', '', 'x'));
  const numbers = fc.array(number, { minLength: 1, maxLength: 4 }).map((each) => each.join('.'));
  const rest = fc.string({ unit: fc.constantFrom('0', '1', '9', 'a', 'Z', '-', '.', '_', '+'), maxLength: 6 });
  const behind = fc.oneof(
    fc.constant(''),
    rest,
    rest.map((text) => `-${text}`),
    rest.map((text) => `+${text}`),
  );
  return fc.tuple(fc.constantFrom('', 'v', 'V', 'strata-'), numbers, behind).map((parts) => parts.join(''));
}
