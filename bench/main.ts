/**
 * `npm run bench`: asks the questions of this folder, one after the other, on one server, and prints a table.
 *
 *   npm run bench -- --only=list,loop --objects=2000 --strict
 *   TEST_SERVER=/path/to/cache-server npm run bench      the same questions to another program
 *
 * The server is a child process with a folder, an authority and a port of its own; load comes from two further processes, and
 * the ceilings from a fourth. Everything ends with this one, by a signal too, and by itself after runMsMax.
 * Exit codes: 0 · 1 a check is broken, or with --strict a limit is missed · 2 wrong arguments · 130 interrupted.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { StrataProcess } from '../test/support/strata-process.js';
import { create } from './create.js';
import { declaredTypes } from './declared-types.js';
import { delay } from './delay.js';
import { fanOut } from './fan-out.js';
import { flood } from './flood.js';
import { goClient } from './go-client.js';
import { BareProcess } from './harness/bare-process.js';
import { CleanUp } from './harness/clean-up.js';
import { LoadProcess } from './harness/load-process.js';
import { LoopSampler } from './harness/loop-sampler.js';
import { describeMachine } from './harness/machine.js';
import { readProcessorMs } from './harness/process-usage.js';
import { statusPath } from './harness/push-target.js';
import { misses, type Bench, type BenchOptions, type Question } from './harness/question.js';
import { formatReport, type Asked, type Report } from './harness/report.js';
import { list } from './list.js';
import { hotObject } from './hot-object.js';
import { lookUp } from './look-up.js';
import { loop } from './loop.js';
import { memory } from './memory.js';
import { push } from './push.js';
import { pushDelay } from './push-delay.js';
import { resync } from './resync.js';
import { startTogether } from './start-together.js';
import { tierChildren } from './tier-children.js';
import { tierDelay } from './tier-delay.js';
import { tierFilter } from './tier-filter.js';
import { tierMove } from './tier-move.js';
import { tierReturn } from './tier-return.js';
import { tierSlices } from './tier-slices.js';
import { tierSync } from './tier-sync.js';
import { watchList } from './watch-list.js';

/** In this order: the first fills the server, the last two measure the whole run. Questions that push come after those that read the first objects. */
const questions: readonly Question[] = [
  create,
  list,
  watchList,
  startTogether,
  fanOut,
  delay,
  goClient,
  push,
  resync,
  pushDelay,
  flood,
  tierDelay,
  tierSync,
  tierFilter,
  tierSlices,
  tierMove,
  tierChildren,
  tierReturn,
  lookUp,
  declaredTypes,
  hotObject,
  memory,
  loop,
];

const runMsMax = 15 * 60_000;
const exitBroken = 1;
const exitUsage = 2;
const exitInterrupted = 130;

class UsageError extends Error {}

function parseFlags() {
  try {
    return parseArgs({
      options: {
        only: { type: 'string' },
        objects: { type: 'string', default: '10000' },
        rounds: { type: 'string', default: '9' },
        writers: { type: 'string', default: '16' },
        informers: { type: 'string', default: '32' },
        watchers: { type: 'string', default: '32' },
        'updates-max': { type: 'string', default: '40000' },
        'update-seconds': { type: 'string', default: '8' },
        'settle-seconds': { type: 'string', default: '10' },
        /** Flags for the measured server. */
        flag: { type: 'string', multiple: true, default: [] },
        /** A folder for the V8 CPU profiles of the measured server, written when it stops. */
        profile: { type: 'string' },
        out: { type: 'string' },
        strict: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

type Flags = ReturnType<typeof parseFlags>;

async function run(flags: Flags, cleanUp: CleanUp): Promise<Report> {
  const chosen = chosenQuestions(flags);
  const options = readOptions(flags);
  const startedAt = new Date().toISOString();
  const machine = describeMachine();
  await using stack = cleanUp;

  const folder = await mkdtemp(join(tmpdir(), 'strata-bench-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const environment = flags.profile === undefined ? {} : profileEnvironment(resolve(flags.profile));
  const server = stack.use(await StrataProcess.start({ flags: flags.flag, environment }));
  const target = { port: server.port, certificate: server.master.certificate, key: server.master.key };
  const bare = stack.use(await BareProcess.start(target));
  const load = stack.use(new LoadProcess());
  const secondLoad = stack.use(new LoadProcess());
  const sampler = stack.use(new LoopSampler(server.client()));

  const spans = new Map<string, { fromMs: number; toMs: number }>();
  const bench: Bench = {
    server,
    target,
    bare,
    load,
    secondLoad,
    loop: sampler,
    spans,
    folder,
    options,
    acknowledged: { resourceVersions: [] },
  };
  const asked: Asked[] = [];
  const takesPushes = (await server.client().raw('GET', statusPath)).status === 200;
  for (const { name, asks, pushes, ask } of chosen) {
    if (pushes === true && !takesPushes) {
      console.error(`${name}: left out, this server accepts no pushes`);
      continue;
    }
    console.error(`${name}: ${asks}`);
    const fromMs = performance.now();
    const processorMs = await readProcessorMs(server.pid);
    const answer = await ask(bench);
    const toMs = performance.now();
    spans.set(name, { fromMs, toMs });
    if (flags.profile !== undefined) process.kill(server.pid, 'SIGUSR2');
    asked.push({ name, asks, elapsedMs: toMs - fromMs, serverProcessorMs: (await readProcessorMs(server.pid)) - processorMs, ...answer });
  }
  return {
    startedAt,
    server: process.env['TEST_SERVER'] ?? 'strata, this build',
    machine,
    options,
    questions: asked,
    holds: asked.every(({ checks }) => checks.every(({ holds }) => holds)),
    limitsMissed: asked.flatMap(({ figures }) => figures).filter(misses).length,
  };
}

function profileEnvironment(folder: string): Record<string, string> {
  return { NODE_OPTIONS: `--import=${new URL('harness/profile.js', import.meta.url).href}`, BENCH_PROFILE: folder };
}

/** Resolves when the run is cut short: by a signal, or because it takes too long. */
function interruption(): Promise<string> {
  return new Promise((resolved) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolved(signal));
    setTimeout(() => resolved('it took too long'), runMsMax).unref();
  });
}

function chosenQuestions({ only }: Flags): readonly Question[] {
  if (only === undefined) return questions;
  const names = only.split(',');
  const unknown = names.find((name) => !questions.some((question) => question.name === name));
  if (unknown !== undefined) throw new UsageError(`no question ${unknown}; there are ${questions.map(({ name }) => name).join(', ')}`);
  const named = questions.filter(({ name }) => names.includes(name));
  return named.every(({ pushes }) => pushes) ? named : questions.filter((question) => question === create || named.includes(question));
}

type CountName = 'objects' | 'rounds' | 'writers' | 'informers' | 'watchers' | 'updates-max' | 'update-seconds' | 'settle-seconds';

function parseCount(flags: Flags, name: CountName): number {
  const value = Number(flags[name]);
  if (!Number.isInteger(value) || value < 1) throw new UsageError(`--${name} must be a whole number above 0`);
  return value;
}

function readOptions(flags: Flags): BenchOptions {
  const count = (name: CountName): number => parseCount(flags, name);
  const options = {
    objects: count('objects'),
    rounds: count('rounds'),
    writers: count('writers'),
    informers: count('informers'),
    watchers: count('watchers'),
    updatesMax: count('updates-max'),
    updateMsMax: count('update-seconds') * 1_000,
    settleMs: count('settle-seconds') * 1_000,
  };
  if (options.objects < options.writers) throw new UsageError('every writer needs an object');
  return options;
}

async function write(report: Report, { out }: Flags): Promise<string> {
  const file = out ?? join(dirname(fileURLToPath(import.meta.url)), 'results', `${report.startedAt.replaceAll(':', '-')}.json`);
  await mkdir(dirname(resolve(file)), { recursive: true });
  await writeFile(file, `${JSON.stringify(report, null, 2)}\n`);
  return file;
}

async function main(): Promise<number> {
  const flags = parseFlags();
  await using cleanUp = new CleanUp();
  const running = run(flags, cleanUp);
  running.catch(() => {});
  const report = await Promise.race([running, interruption()]);
  if (typeof report === 'string') {
    console.error(`stopping: ${report}`);
    return exitInterrupted;
  }
  console.log(formatReport(report));
  console.log(`results in ${await write(report, flags)}`);
  return !report.holds || (flags.strict && report.limitsMissed > 0) ? exitBroken : 0;
}

process.exit(
  await main().catch((error: unknown) => {
    console.error(error instanceof UsageError ? error.message : error);
    return error instanceof UsageError ? exitUsage : exitBroken;
  }),
);
