/**
 * `npm run test:mutants`: plants wrong changes into compiled modules, one after the other, and runs
 * the module's tests on each. It prints each change that they do not notice. It chooses the changes
 * at random, or reads them from the results of an earlier run, to compare two checkouts:
 *
 *   npm run test:mutants -- --count 300 --seed 1 --also ../before --results after.jsonl
 *   npm run test:mutants -- --root ../before --plant after.jsonl --results before.jsonl
 *
 * It changes the build of that checkout, and restores it at the end: nothing else may run from it.
 */
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { findProjectRoot } from '../../house/sources.js';
import { spawn } from '../children.js';
import { seeded } from '../crash/random.js';
import { mutantsOf, planted, type Mutant } from './mutants.js';

type Result = Mutant & Readonly<{ isKilled: boolean; seconds: number }>;

/** AVA fails on an entry without any test. */
const noTest = `import test from 'ava';\ntest('nothing', (t) => t.pass());\n`;
/** A mutant can loop for ever. */
const runMsMax = 300_000;

const { values: options } = parseArgs({
  options: {
    root: { type: 'string', default: findProjectRoot() },
    count: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    module: { type: 'string', multiple: true, default: [] },
    also: { type: 'string' },
    plant: { type: 'string' },
    results: { type: 'string' },
  },
});
const build = join(options.root, 'build');
/**
 * Tests wait, so several workers are faster than one. A worker for each file would take longer to
 * start than most tests run.
 */
const entries = Array.from({ length: 4 }, (_, i) => join(build, 'test', 'unit', 'mutants', `entry-${i}.test.js`));

const mutants = options.plant === undefined ? chosen() : readMutants(options.plant);
const sound = new Set<string>();
const survivors: Result[] = [];
let missing = 0;
for (const mutant of mutants) {
  const result = await tried(mutant);
  if (result === undefined) {
    missing++;
    continue;
  }
  if (!result.isKilled) survivors.push(result);
  if (options.results !== undefined) appendFileSync(options.results, `${JSON.stringify(result)}\n`);
  process.stderr.write(result.isKilled ? '.' : 'S');
}
rmSync(dirname(entries[0]!), { recursive: true, force: true });
process.stdout.write(`\n${mutants.length - missing} mutants, ${survivors.length} of them not noticed; ${missing} are not in this build\n`);
for (const { file, line, column, before, after } of survivors) {
  process.stdout.write(`${file}: ${line.trim()}\n  column ${column}: ${before} → ${after === '' ? 'nothing' : after}\n`);
}

function chosen(): readonly Mutant[] {
  const folders = [build, ...(options.also === undefined ? [] : [join(options.also, 'build')])];
  const files = readdirSync(join(build, 'src'), { recursive: true, encoding: 'utf8' })
    .map((file) => join('src', file))
    .filter((file) => file.endsWith('.js') && testFolders(moduleOf(file)).length > 0)
    .filter((file) => options.module.length === 0 || options.module.includes(moduleOf(file)))
    .filter((file) => folders.every((folder) => existsSync(join(folder, file))));
  const left = files.toSorted().flatMap((file) => {
    const [text, ...others] = folders.map((folder) => readFileSync(join(folder, file), 'utf8'));
    return mutantsOf(file, [text!, ...others]);
  });
  const random = seeded(Number(options.seed));
  const count = Math.min(left.length, Number(options.count));
  return Array.from({ length: count }, () => left.splice(random.below(left.length), 1)[0]!);
}

function readMutants(file: string): readonly Mutant[] {
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Mutant);
}

/** Returns undefined if this build has no such line. */
async function tried(mutant: Mutant): Promise<Result | undefined> {
  const path = join(build, mutant.file);
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const wrong = planted(text, mutant);
  if (wrong === undefined) return undefined;
  const module = moduleOf(mutant.file);
  if (!sound.has(module) && !(await passes(module, 'inherit'))) throw new Error(`the tests of ${module} fail without a mutant`);
  sound.add(module);
  const began = performance.now();
  writeFileSync(path, wrong);
  try {
    const isKilled = !(await passes(module));
    return { ...mutant, isKilled, seconds: Math.round((performance.now() - began) / 1000) };
  } finally {
    writeFileSync(path, text);
  }
}

async function passes(module: string, stdio: 'inherit' | 'ignore' = 'ignore'): Promise<boolean> {
  const files = testFolders(module).flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.js'))
      .map((name) => join(folder, name)),
  );
  mkdirSync(dirname(entries[0]!), { recursive: true });
  for (const [i, entry] of entries.entries()) {
    const imports = files.filter((_file, at) => at % entries.length === i).map((file) => `import './${relative(dirname(entry), file)}';\n`);
    writeFileSync(entry, imports.length > 0 ? imports.join('') : noTest);
  }
  const ava = join(options.root, 'node_modules', 'ava', 'entrypoints', 'cli.mjs');
  const run = spawn(process.execPath, [ava, '--fail-fast', '--timeout=60s', ...entries.map((entry) => relative(options.root, entry))], {
    cwd: options.root,
    stdio,
    env: { TEST_SIZES: 'some', ...process.env, CI: '1' },
  });
  const late = setTimeout(() => run.kill('SIGKILL'), runMsMax);
  const [code] = (await once(run, 'exit')) as [number | null];
  clearTimeout(late);
  return code === 0;
}

/** The last folder is that of older checkouts, which have neither unit nor integration. */
function testFolders(module: string): readonly string[] {
  return [join('unit', module), join('integration', module), module]
    .map((folder) => join(build, 'test', folder))
    .filter((folder) => existsSync(folder));
}

/**
 * The folder of src that holds the file. For a file of src itself it is the file's name, for which
 * there are no tests.
 */
function moduleOf(file: string): string {
  return file.split('/')[1]!;
}
