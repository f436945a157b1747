/**
 * Has recheck judge each regular expression of the built code: whether some text makes it take more
 * than linear time. Would find `\d+\.?\d*`, which divides a row of digits in two ways. With it, an
 * Accept header of 62,000 digits held the event loop for seven seconds in one turn.
 *
 * The test fails if recheck cannot judge an expression in its time. It skips expressions that code
 * builds at run time, which three files do.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { parse, type Node } from 'acorn';
import { full } from 'acorn-walk';
import { test } from '../../support/test.js';
import { check } from 'recheck';
import { projectFile } from '../../support/project.js';

/**
 * A step of recheck that runs out of time gives a wrong answer, "vulnerable" or "unknown". By
 * default each step has one second, which is too little beside other tests.
 */
const patienceMs = 60_000;
const patience = { timeout: 4 * patienceMs, attackTimeout: patienceMs, incubationTimeout: patienceMs, seedingTimeout: patienceMs };
/** Files that build expressions, of constants and of what an operator configures. */
const puttingTogether = ['config/options/command-options.js', 'config/options/quantity.js', 'domain/cluster.js'];

type Expression = Readonly<{ source: string; flags: string; file: string }>;

function expressionsIn(file: string, text: string): Readonly<{ literals: readonly Expression[]; isPuttingTogether: boolean }> {
  const literals: Expression[] = [];
  let isPuttingTogether = false;
  full(parse(text, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true }), (node) => {
    const { regex, callee } = node as Node & { regex?: { pattern: string; flags: string }; callee?: { name?: string } };
    if (regex !== undefined) literals.push({ source: regex.pattern, flags: regex.flags, file });
    if (callee?.name === 'RegExp') isPuttingTogether = true;
  });
  return { literals, isPuttingTogether };
}

test('no regular expression takes more than linear time, whatever a peer sends', async (t) => {
  t.timeout(5 * 60_000);
  const folder = projectFile('build/src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'));
  const read = files.map((file) => ({ file, ...expressionsIn(file, readFileSync(`${folder}/${file}`, 'utf8')) }));
  const literals = new Map(read.flatMap((each) => each.literals).map((each) => [`/${each.source}/${each.flags}`, each]));
  t.true(literals.size > 100);

  const judged: { status: string; text: string }[] = [];
  // One at a time: if many wait for one processor, recheck gives up or reports false findings.
  for (const [text, { source, flags, file }] of literals) {
    const judgement = await check(source, flags, patience);
    const why = judgement.status === 'unknown' ? judgement.error.kind : judgement.complexity.summary;
    judged.push({ status: judgement.status, text: `${text} in ${file}: ${why}` });
  }

  t.deepEqual(
    judged.filter(({ status }) => status !== 'safe').map(({ text }) => text),
    [],
  );
  t.deepEqual(
    read
      .filter((each) => each.isPuttingTogether)
      .map(({ file }) => file)
      .toSorted(),
    puttingTogether,
  );
});
