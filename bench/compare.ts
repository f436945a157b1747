/**
 * `npm run bench:compare -- <ref> [--runs=3] [-- options of bench]`: is this build faster or slower
 * than that of another commit?
 *
 *   this ── that │ that ── this │ this ── that │ …
 *      run 1     │    run 2     │    run 3
 *
 * Runs alternate, and each build goes first in turn, so that other load on the machine affects
 * both. The harness of this checkout measures both servers, and each run has a new store. The table
 * shows medians and the spread of the runs, and marks a difference that is smaller than the spread.
 *
 * The other commit is unpacked from the repository into a temporary folder and built there. It uses
 * this checkout's node_modules if it locks the same packages, else its own. A worktree would leave
 * traces in the repository. Bound: `runs` × 2 runs, each of bounded time.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { builtMain, projectFile } from '../test/support/project.js';
import { CleanUp } from './harness/clean-up.js';
import { median } from './harness/statistics.js';
import { formatNumber, formatTable, type Report } from './harness/report.js';

const run = promisify(execFile);
const buildMsMax = 10 * 60_000;
const exitBroken = 1;
const exitUsage = 2;
const exitInterrupted = 130;

/** A build to measure. `program` starts its server. */
type Build = Readonly<{ name: string; program: string }>;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { runs: { type: 'string', default: '3' } } });
  const [ref, ...benchOptions] = positionals;
  const runs = Number(values.runs);
  if (ref === undefined || !Number.isInteger(runs) || runs < 1) {
    console.error('usage: bench:compare [--runs=3] <ref> [-- options of bench]');
    return exitUsage;
  }
  await using cleanUp = new CleanUp();
  const comparing = compare({ ref, runs, benchOptions }, cleanUp);
  comparing.catch(() => {});
  const interrupted = new Promise<undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(undefined));
  });
  const table = await Promise.race([comparing, interrupted]);
  if (table === undefined) return exitInterrupted;
  console.log(table);
  return 0;
}

async function compare(
  { ref, runs, benchOptions }: Readonly<{ ref: string; runs: number; benchOptions: readonly string[] }>,
  cleanUp: CleanUp,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-compare-'));
  cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
  const { stdout } = await run('git', ['rev-parse', '--short', '--verify', `${ref}^{commit}`], { cwd: projectFile() });
  const commit = stdout.trim();
  console.error(`building ${commit}`);
  const that: Build = { name: commit, program: await writeProgram(join(folder, 'that'), await build(commit, join(folder, 'checkout'))) };
  const current: Build = { name: 'this build', program: await writeProgram(join(folder, 'this'), builtMain()) };

  const reports = new Map<Build, Report[]>([
    [that, []],
    [current, []],
  ]);
  for (let round = 0; round < runs; round++) {
    for (const one of round % 2 === 0 ? [that, current] : [current, that]) {
      console.error(`run ${round + 1} of ${runs}: ${one.name}`);
      reports.get(one)!.push(await measure(one, join(folder, 'report.json'), benchOptions, cleanUp));
    }
  }
  return describe(that, reports.get(that)!, current, reports.get(current)!);
}

/**
 * Returns the path of the compiled main.js of a commit. Types are not checked, because the commit's
 * tests do not matter here.
 */
async function build(commit: string, checkout: string): Promise<string> {
  await mkdir(checkout);
  const archive = join(checkout, '..', 'checkout.tar');
  await run('git', ['archive', '--format=tar', `--output=${archive}`, commit], { cwd: projectFile() });
  await run('tar', ['-xf', archive, '-C', checkout]);
  const [ours, theirs] = await Promise.all([projectFile(), checkout].map((root) => readFile(join(root, 'package-lock.json'), 'utf8')));
  if (ours === theirs) await symlink(join(projectFile(), 'node_modules'), join(checkout, 'node_modules'));
  else await run('npm', ['ci', '--ignore-scripts=false'], { cwd: checkout, timeout: buildMsMax });
  await run(join(checkout, 'node_modules', '.bin', 'tsc'), ['--outDir', 'build', '--noCheck'], { cwd: checkout, timeout: buildMsMax });
  return join(checkout, 'build', 'src', 'main.js');
}

/**
 * Writes a program that is called like upstream's server, so that both builds start in the same
 * way.
 */
async function writeProgram(folder: string, main: string): Promise<string> {
  const program = join(folder, 'cache-server');
  await mkdir(folder);
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${main}' cache-server "$@"\n`);
  await chmod(program, 0o755);
  return program;
}

async function measure({ name, program }: Build, file: string, benchOptions: readonly string[], cleanUp: CleanUp): Promise<Report> {
  const bench = fileURLToPath(new URL('./main.js', import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [bench, `--out=${file}`, ...benchOptions], {
    env: { ...process.env, TEST_SERVER: program },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const exited = once(child, 'exit') as Promise<[number | null]>;
  cleanUp.defer(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    await exited;
  });
  const [code] = await exited;
  if (code !== 0) throw new Error(`the benchmark of ${name} ended with ${code}: ${errors}`);
  return JSON.parse(await readFile(file, 'utf8')) as Report;
}

function describe(that: Build, thatReports: readonly Report[], current: Build, currentReports: readonly Report[]): string {
  const thatFigures = figuresOf(thatReports);
  const rows = [...figuresOf(currentReports)].map(([name, { values, unit }]) => {
    const before = thatFigures.get(name)?.values ?? [];
    const change = (median(values) / median(before) - 1) * 100;
    const isNoise = Math.min(...values) <= Math.max(...before) && Math.min(...before) <= Math.max(...values);
    return [
      name,
      unit,
      summary(before),
      summary(values),
      Number.isFinite(change) ? `${change > 0 ? '+' : ''}${change.toFixed(1)} %` : '',
      isNoise ? 'within the spread' : '',
    ];
  });
  return `\n${formatTable(['figure', 'unit', that.name, current.name, 'change', ''], rows)}\n`;
}

type Series = { values: number[]; unit: string };

function figuresOf(reports: readonly Report[]): ReadonlyMap<string, Series> {
  const all = new Map<string, Series>();
  for (const { questions } of reports) {
    for (const { name: question, figures, serverProcessorMs } of questions) {
      for (const { name, value, unit } of [...figures, { name: "server's processor time", value: serverProcessorMs / 1_000, unit: 's' }]) {
        const series = all.get(`${question}: ${name}`) ?? { values: [], unit };
        series.values.push(value);
        all.set(`${question}: ${name}`, series);
      }
    }
  }
  return all;
}

function summary(values: readonly number[]): string {
  if (values.length === 0) return '';
  return `${formatNumber(median(values))} (${formatNumber(Math.min(...values))}…${formatNumber(Math.max(...values))})`;
}

process.exit(
  await main().catch((error: unknown) => {
    console.error(error);
    return exitBroken;
  }),
);
