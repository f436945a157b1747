/**
 * `npm run bench`: asks the questions of this folder, one after the other, and prints a table.
 *
 *   npm run bench                 questions that together take less than ten minutes
 *   npm run bench -- --only=requests,list --objects=2000 --strict
 *                                 families or single questions
 *   npm run bench -- --all        also a million objects, a minute of mixed load, and trees
 *   npm run bench -- --against=https://localhost:8012 --cert=… --key=… [--ca=…] [--token=…]
 *       [--against-pid=…]         the same client asks another server in turns
 *   npm run bench -- --from=results.json --page=docs/bench.md
 *                                 the pages and pictures of an earlier run
 *   TEST_SERVER=/path/to/cache-server npm run bench
 *                                 another program is the measured server
 *
 * The measured server is a child process with its own folder, authority and port. Load comes from
 * further processes, and ceilings from another one. All of them end with this process, also on a
 * signal. It ends by itself after runMsMax, or longRunMsMax with --all. Exit codes: 0 · 1 a check
 * is broken, or with --strict a limit is missed · 2 wrong arguments · 130 interrupted.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { askInTurns } from './harness/ask-in-turns.js';
import { CleanUp } from './harness/clean-up.js';
import { describeMachine } from './harness/machine.js';
import { parseFlags, readOptions, UsageError, type Flags } from './harness/options.js';
import { Progress } from './harness/progress.js';
import { formatMarkdown, writePage, writePictures } from './harness/publish.js';
import { statusPath } from './harness/push-target.js';
import { families, misses, type Question } from './harness/question.js';
import { formatReport, type Report } from './harness/report.js';
import { SteadinessMeter } from './harness/steadiness.js';
import { openSurroundings } from './harness/surroundings.js';
import { questions } from './questions.js';

const runMsMax = 30 * 60_000;
const longRunMsMax = 180 * 60_000;
const exitBroken = 1;
const exitUsage = 2;
const exitInterrupted = 130;

async function run(flags: Flags, cleanUp: CleanUp): Promise<Report> {
  const chosen = chosenQuestions(flags);
  const options = readOptions(flags);
  const startedAt = new Date().toISOString();
  const startedMs = performance.now();
  const machine = describeMachine();
  await using stack = cleanUp;

  const folder = await mkdtemp(join(tmpdir(), 'strata-bench-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const progress = new Progress(
    process.stderr,
    chosen.reduce((sum, { rounds = () => 1 }) => sum + rounds(options), 0),
  );
  const asksOverHttp = chosen.some(({ needs = [] }) => needs.includes('http'));
  const bench = await openSurroundings({ flags, options, folder, progress, asksOverHttp }, stack);
  const has = {
    http: bench.http !== undefined,
    push: (await bench.server.client().raw('GET', statusPath)).status === 200,
    etcd: bench.startAnother !== undefined,
  };
  const steadiness = new SteadinessMeter();
  const asked = await askInTurns(
    chosen.filter((question) => canBeAsked(question, has, progress)),
    bench,
    () => {
      if (flags.profile !== undefined) process.kill(bench.server.pid, 'SIGUSR2');
      steadiness.sample();
    },
  );
  progress.end();
  return {
    startedAt,
    command: `npm run bench${process.argv.length > 2 ? ` -- ${commandLine()}` : ''}`,
    server: process.env['TEST_SERVER'] ?? 'Strata, this build',
    against: flags.against === undefined ? undefined : flags['against-name'],
    client: bench.http?.client.version,
    elapsedMs: performance.now() - startedMs,
    machine: { ...machine, steadiness: steadiness.read() },
    options,
    questions: asked,
    holds: asked.every(({ checks }) => checks.every(({ holds }) => holds)),
    limitsMissed: asked.flatMap(({ figures }) => figures).filter(misses).length,
  };
}

const lacks = { http: 'go is not installed', push: 'this server accepts no pushes', etcd: 'its store is not in etcd' };

function canBeAsked({ name, needs = [] }: Question, has: Readonly<Record<keyof typeof lacks, boolean>>, progress: Progress): boolean {
  const lacking = needs.find((need) => !has[need]);
  if (lacking !== undefined) progress.say(`${name}: left out, ${lacks[lacking]}`);
  return lacking === undefined;
}

/** The arguments without secrets and paths of this machine. */
function commandLine(): string {
  return process.argv
    .slice(2)
    .map((argument) => argument.replace(/^(--(?:ca|cert|key|token|out|profile|against-pid)=).*|^(--[\w-]+=)\/.*/, '$1$2…'))
    .join(' ');
}

/** Resolves when a signal or the time limit interrupts the run. */
function interruption({ all }: Flags): Promise<string> {
  return new Promise((resolved) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolved(signal));
    setTimeout(() => resolved('it took too long'), all ? longRunMsMax : runMsMax).unref();
  });
}

function chosenQuestions({ only, all }: Flags): readonly Question[] {
  if (only === undefined) return questions.filter(({ isLong }) => all || isLong === undefined);
  const names = only.split(',');
  const known = [...families, ...questions.map(({ name }) => name)];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new UsageError(`no question or family ${unknown}; there are ${known.join(', ')}`);
  return questions.filter(({ name, family, isLong }) => names.includes(name) || (names.includes(family) && (all || isLong === undefined)));
}

async function write(report: Report, { out }: Flags): Promise<string> {
  const file = out ?? join(dirname(fileURLToPath(import.meta.url)), 'results', `${report.startedAt.replaceAll(':', '-')}.json`);
  await mkdir(dirname(resolve(file)), { recursive: true });
  await writeFile(file, `${JSON.stringify(report, null, 2)}\n`);
  return file;
}

async function publish(report: Report, { svg, page }: Flags): Promise<void> {
  if (svg !== undefined) await writePictures(report, resolve(svg));
  if (page !== undefined) await writePage(formatMarkdown(report), resolve(page));
}

async function main(): Promise<number> {
  const flags = parseFlags();
  if (flags.from !== undefined) {
    await publish(JSON.parse(await readFile(flags.from, 'utf8')) as Report, flags);
    return 0;
  }
  await using cleanUp = new CleanUp();
  const running = run(flags, cleanUp);
  running.catch(() => {});
  const report = await Promise.race([running, interruption(flags)]);
  if (typeof report === 'string') {
    console.error(`stopping: ${report}`);
    return exitInterrupted;
  }
  console.log(formatReport(report));
  console.log(`results in ${await write(report, flags)}`);
  await publish(report, flags);
  return !report.holds || (flags.strict && report.limitsMissed > 0) ? exitBroken : 0;
}

process.exit(
  await main().catch((error: unknown) => {
    console.error(error instanceof UsageError ? error.message : error);
    return error instanceof UsageError ? exitUsage : exitBroken;
  }),
);
