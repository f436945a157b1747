/**
 * A lane of tests is one or more folders of test/, which TEST_LANE names, or those of the files named on the command line. Without either it is `npm test`: all that
 * needs no process that is killed, no real client, no great numbers and no quiet machine.
 *
 * `npm test` runs entry files (`test/support/entry-files.ts`). Each file there speaks HTTP/1.1 or HTTP/2 to its servers (`test/support/http-of-file.ts`);
 * TEST_HTTP=other turns the choice round: `.ci/run` so runs what speaks HTTP over both. Every other lane has each file in a process of its own, with patience; one at a time,
 * because what measures must have the machine. Where nothing measures, `.ci/run` has several at a time.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { writeEntryFiles } from './build/test/support/entry-files.js';
import { httpOfFile } from './build/test/support/http-of-file.js';

/** A container has 64 MiB by default. */
const memoryBytesMin = 2 * 1024 ** 3;
const ofNpmTest = ['unit', 'integration', 'contract', 'simulation', 'house', 'support'];

const { TEST_LANE: lane, TEST_HTTP: asked, TEST_SIZES: sizes, TEST_TIMES: times, TEST_TREES: trees } = process.env;
const isMeasured = times !== undefined;
const build = fileURLToPath(new URL('build', import.meta.url));
/** One folder, or a glob's {several,folders}. */
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
  // Eight heaps keep two processors busy: threads beside them that help to collect cost a seventh more, and save nothing.
  // A test runs most code a few times: V8 spends less if it optimises what has run eight times as long as it waits for by default.
  for (const flag of ['--no-parallel-scavenge', '--no-concurrent-marking', '--interrupt-budget=540672']) setFlagsFromString(flag);
  const commit = readCommit();
  // As it starts, Node reads all certificates that this names, a machine's hundreds: 40 ms for each child.
  delete process.env.NODE_EXTRA_CA_CERTS;
  const chosen = asked === 'other' ? files.filter(speaksHttp) : files;
  const entries = named.length > 0 || isMeasured ? chosen : writeEntryFiles(build, chosen, (file) => httpOfFile(file, { asked, commit }));
  return {
    files: entries.map((file) => `build/${file}`),
    require: [...measuring(), './build/test/support/choose-http.js', './build/test/support/end-of-worker.js'],
    environmentVariables: {
      TEST_HTTP: asked ?? 'by file',
      TEST_COMMIT: commit,
      TEST_SIZES: sizes ?? (named.length > 0 || isMeasured ? 'all' : 'some'),
      ...inMemory(),
      // With the committer in a thread of its own, as in production.
      ...(asked === 'other' && { TEST_COMMITTER: 'thread' }),
    },
    timeout: '60s',
    // Each worker runs one test at a time (`test/support/test.ts`): enough of them that the processor is busy while some wait.
    concurrency: 8,
    // `npm run test:times`: the figures of a process are those of one file.
    ...(isMeasured && { workerThreads: false, concurrency: 1 }),
  };
}

/**
 * Where tests put their folders, unless TMPDIR says it: in memory, if Linux has room there. On a disk each start, commit and stop of a server waits for it, and with it
 * all that its worker does. The other lanes are on the disk, as is what speaks the other HTTP.
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
  const places = new Map(files.map((file, place) => [`${build}/${file}`, place]));
  return {
    files: files.map((file) => `build/${file}`),
    require: [...measuring(), './build/test/support/end-of-worker.js'],
    environmentVariables: { TEST_COMMITTER: 'thread', TEST_TREES: trees ?? '40' },
    // AVA forgets it for good if it ends within the t.timeout of any test, though that has passed: a test that is skipped must set none.
    timeout: '10m',
    // Each file in a process of its own, as the server is: what it measures is its own, and if it hangs, AVA can end it.
    workerThreads: false,
    concurrency: 1,
    // As named: what takes longest is not begun last.
    sortTestFiles: (one, other) => places.get(one) - places.get(other),
  };
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

/** To see how the server speaks it. */
function speaksHttp(file) {
  return file.startsWith('test/integration/') && /\b(?:aServer|TestServer)\b/.test(readFileSync(`${build}/${file}`, 'utf8'));
}
