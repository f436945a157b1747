/**
 * Runs AVA in a project of its own with `end-of-worker.ts`. Finds a failed test whose run does not
 * end, does not say what was left open, or leaves children. A file that takes too much processor
 * time must fail its run.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { avaProgram } from '../../support/ava-program.js';
import { spawn } from '../../support/children.js';
import { findProjectRoot } from '../../house/sources.js';
import { until } from '../../support/test-server.js';

const root = findProjectRoot();
const children = fileURLToPath(new URL('../../support/children.js', import.meta.url));
const oneAfterTheOther = fileURLToPath(new URL('../../support/test.js', import.meta.url));
const endOfWorker = fileURLToPath(new URL('../../support/end-of-worker.js', import.meta.url));
const hasPdeathsig = process.platform === 'linux' && spawnSync('/usr/bin/setpriv', ['--pdeathsig', 'KILL', '--', 'true']).status === 0;

/** Source of a test that starts a child, leaves a server open, and then runs `last`. */
function leavesMuch(last: string): string {
  return `
import { createServer } from 'node:net';
import { writeFileSync } from 'node:fs';
import { test } from ${JSON.stringify(oneAfterTheOther)};
import { spawn } from ${JSON.stringify(children)};

test('it leaves a child', async (t) => {
  t.timeout(3_600_000);
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  writeFileSync('pid', String(child.pid));
  ${last}
});
`;
}

type Project = Readonly<{
  folder: string;
  run: () => Readonly<{ ended: Promise<unknown>; printed: () => string; code: () => number | null; kill: () => void }>;
}>;

async function aProject(t: ExecutionContext, text: string, workerThreads: boolean): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-ava-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const options = { files: ['*.test.js'], require: [endOfWorker], timeout: '1h', workerThreads };
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module', ava: options }));
  await writeFile(join(folder, 'it.test.js'), text);
  return {
    folder,
    run: () => {
      // The outer AVA marks its workers with these variables; the inner one must not inherit them.
      const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('AVA')));
      const child = spawn(process.execPath, [avaProgram], {
        cwd: folder,
        env: { ...env, CI: '1', TEST_PATIENCE_MS: '500', TEST_FILE_SECONDS: '0.2' },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let printed = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (printed += chunk.toString()));
      return { ended: once(child, 'close'), printed: () => printed, code: () => child.exitCode, kill: () => void child.kill('SIGKILL') };
    },
  };
}

async function pidOf({ folder }: Project): Promise<number> {
  return Number(await readFile(join(folder, 'pid'), 'utf8').catch(() => '0'));
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

for (const workerThreads of [true, false]) {
  const worker = workerThreads ? 'a thread' : 'a process';

  test(`a failing test in ${worker} ends its run, which says where it failed and what is left open, and leaves no child`, async (t) => {
    t.timeout(300_000);
    const project = await aProject(t, leavesMuch(`t.fail('this is the reason');`), workerThreads);
    const run = project.run();
    await run.ended;

    t.not(run.code(), 0);
    t.regex(
      run.printed(),
      /it leaves a child \(TEST_HTTP=[12]\)\nTestFailure[^]*it\.test\.js:13[^]*something is left open: .*TCPServerWrap[^]*this is the reason/i,
    );
    const pid = await pidOf(project);
    t.true(pid > 0);
    await until(() => !isRunning(pid));
  });

  test(`a test in ${worker} that is killed leaves no child`, async (t) => {
    t.timeout(300_000);
    if (!hasPdeathsig) {
      t.log('no setpriv here: what is killed cannot end its children');
      t.pass();
      return;
    }
    const project = await aProject(
      t,
      leavesMuch(workerThreads ? 'await new Promise(() => {});' : `process.kill(process.pid, 'SIGKILL');`),
      workerThreads,
    );
    const run = project.run();
    await until(async () => (await pidOf(project)) > 0, 120_000);
    const pid = await pidOf(project);
    if (workerThreads) run.kill();
    await run.ended;

    await until(() => !isRunning(pid));
    t.not(run.code(), 0);
  });
}

for (const [ms, code] of [
  [1_000, 1],
  [1, 0],
] as const) {
  test(`a file whose tests take ${ms} ms of processor time, with a bound of 200 ms, ${code === 0 ? 'passes' : 'fails its run'}`, async (t) => {
    t.timeout(300_000);
    if (process.platform !== 'linux') {
      t.log('not on Linux: nothing counts the time');
      t.pass();
      return;
    }
    const run = (await aProject(t, takesTime(ms), true)).run();
    await run.ended;

    t.is(run.code(), code);
    t[code === 0 ? 'notRegex' : 'regex'](run.printed(), /a-file took .* s of the processor: more than 0\.2 s/);
  });
}

/** Source of two tests that each take half of `ms` of processor time. */
function takesTime(ms: number): string {
  return `
process.env.TEST_FILE = 'a-file';
const { test } = await import(${JSON.stringify(oneAfterTheOther)});
for (const each of [1, 2]) {
  test('test ' + each, (t) => {
    const began = process.cpuUsage().user;
    // Asked seldom: the question takes more of the system than this loop of the processor.
    while (process.cpuUsage().user - began < ${ms * 500}) for (let i = 0; i < 1e6; i += 1);
    t.pass();
  });
}
`;
}
