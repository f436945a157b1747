/**
 * A lane of tests is one or more folders of test/: those that TEST_LANE names, or those of the
 * files on the command line. Without either it is `npm test`: all tests that kill no process and
 * need no real client, no great numbers and no quiet machine.
 *
 * `npm test` runs entry files (`test/support/entry-files.ts`). Each file in them speaks HTTP/1.1 or
 * HTTP/2 to its servers (`test/support/http-of-file.ts`). TEST_HTTP=other reverses that choice, so
 * that `.ci/run` tests over both.
 * Every other lane has long time limits, and runs each file in a process of its own. It runs one
 * file at a time, because a test that measures must have the machine to itself. Where nothing
 * measures, `.ci/run` runs several at a time.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { writeEntryFiles } from './build/test/support/entry-files.js';

/** With less free memory, tests use the disk; a container has 64 MiB in /dev/shm by default. */
const memoryBytesMin = 2 * 1024 ** 3;
const ofNpmTest = ['unit', 'integration', 'contract', 'simulation', 'house', 'support'];

const { TEST_LANE: lane, TEST_HTTP: asked, TEST_SIZES: sizes, TEST_TIMES: times, TEST_TREES: trees } = process.env;
const isMeasured = times !== undefined;
const build = fileURLToPath(new URL('build', import.meta.url));
/** The folder in each argument, or the folders of a glob's {several,folders}. */
const named = process.argv.slice(2).flatMap((argument) => /^build\/test\/\{?([a-z0-9,]+)\}?\//.exec(argument)?.[1].split(',') ?? []);
const folders = [...new Set(lane?.split(',') ?? (named.length > 0 ? named : ofNpmTest))];
const all = readdirSync(`${build}/test`, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.js'))
  .map((file) => `test/${file}`)
  .toSorted();
const inFolder = (folder) => all.filter((file) => file.startsWith(`test/${folder}/`));
for (const folder of folders) if (inFolder(folder).length === 0) throw new Error(`there are no tests in test/${folder}`);
const files = folders.flatMap(inFolder);

export default folders.every((folder) => ofNpmTest.includes(folder)) && lane === undefined ? quick() : patient();

function quick() {
  // Eight workers keep two processors busy. Threads that help to collect garbage would cost a
  // seventh more and save nothing. A test runs most code a few times, so V8 spends less if it
  // optimises code only after eight times the default run time.
  for (const flag of ['--no-parallel-scavenge', '--no-concurrent-marking', '--interrupt-budget=540672']) setFlagsFromString(flag);
  // At its start, Node reads all certificates that this names, a machine's hundreds: 40 ms for each
  // child.
  delete process.env.NODE_EXTRA_CA_CERTS;
  const chosen = asked === 'other' ? files.filter(speaksHttp) : files;
  const entries = named.length > 0 || isMeasured ? chosen : writeEntryFiles(build, chosen);
  return {
    files: entries.map((file) => `build/${file}`),
    require: [...measuring(), './build/test/support/end-of-worker.js'],
    environmentVariables: {
      TEST_HTTP: asked ?? 'by file',
      TEST_COMMIT: readCommit(),
      TEST_SIZES: sizes ?? (named.length > 0 || isMeasured ? 'all' : 'some'),
      ...inMemory(),
      // The committer has a thread of its own, as in production.
      ...(asked === 'other' && { TEST_COMMITTER: 'thread' }),
    },
    timeout: '60s',
    // Each worker runs one test at a time (`test/support/test.ts`). With this many, the processor
    // is busy while some tests wait.
    concurrency: 8,
    // `npm run test:times`: the figures of a process are those of one file.
    ...(isMeasured && { workerThreads: false, concurrency: 1 }),
  };
}

/**
 * Where tests put their folders, unless TMPDIR says it: in memory, if Linux has room there. On a
 * disk, each start, commit and stop of a server waits, and so does its whole worker. The other
 * lanes use the disk, and so does TEST_HTTP=other.
 */
function inMemory() {
  const memory = '/dev/shm';
  if (asked === 'other' || process.env.TMPDIR !== undefined || process.platform !== 'linux' || !existsSync(memory)) return {};
  const { bavail, bsize } = statfsSync(memory);
  if (bavail * bsize < memoryBytesMin) return {};
  const folder = mkdtempSync(`${memory}/strata-tests-`);
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return { TMPDIR: folder };
}

function patient() {
  const places = new Map(mixed(files).map((file, place) => [`${build}/${file}`, place]));
  return {
    files: files.map((file) => `build/${file}`),
    require: [...measuring(), './build/test/support/end-of-worker.js'],
    environmentVariables: { TEST_COMMITTER: 'thread', TEST_TREES: trees ?? '40' },
    // AVA drops this timeout for good if it ends within any test's t.timeout, even one of a test
    // that is over. So a test that is skipped must set none.
    timeout: '10m',
    // Each file runs in a process of its own, as the server does: its measurements are its own, and
    // AVA can end it if it hangs.
    workerThreads: false,
    concurrency: 1,
    sortTestFiles: (one, other) => places.get(one) - places.get(other),
  };
}

/**
 * The files of each folder, spread evenly over the whole lane. Files of one folder need the same
 * thing: those of etcd mostly wait, those of crashes mostly compute.
 */
function mixed(files) {
  const filesOf = (folder) => files.filter((file) => dirname(file) === folder);
  const shareOf = (file, index, all) => ({ file, share: (index + 0.5) / all.length });
  const shares = [...new Set(files.map(dirname))].flatMap((folder) => filesOf(folder).map(shareOf));
  return shares.toSorted((one, other) => one.share - other.share).map(({ file }) => file);
}

function measuring() {
  return isMeasured ? ['./build/test/support/worker-times.js'] : [];
}

function readCommit() {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'no commit';
  }
}

/** Whether the file starts a server: only those need to run over the other HTTP version too. */
function speaksHttp(file) {
  return file.startsWith('test/integration/') && /\b(?:aServer|TestServer)\b/.test(readFileSync(`${build}/${file}`, 'utf8'));
}
