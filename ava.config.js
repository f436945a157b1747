/**
 * `npm test`: all that needs no process that is killed, no real client, no great numbers and no quiet machine, in entry files
 * (`test/support/entry-files.ts`). Files that are named on the command line run in workers of their own.
 *
 * Each file speaks HTTP/1.1 or HTTP/2 to its servers (`test/support/http-of-file.ts`). TEST_HTTP=other turns the choice round: `.ci/run` so runs what speaks HTTP
 * over both.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { writeEntryFiles } from './build/test/support/entry-files.js';
import { httpOfFile } from './build/test/support/http-of-file.js';

const asked = process.env['TEST_HTTP'];
const isMeasured = process.env['TEST_TIMES'] !== undefined;
const namesFiles = process.argv.slice(2).some((argument) => argument.startsWith('build/'));
const commit = readCommit();
const build = fileURLToPath(new URL('build', import.meta.url));
const all = readdirSync(build, { recursive: true, encoding: 'utf8' })
  .filter((file) => /^test\/.*\.test\.js$/.test(file))
  .filter((file) => !/^test\/(?:crash|e2e|clients|etcd|machines|package|sizes|hostile\/slow|entries)\/|^test\/contract\/sqlite-from-disk\./.test(file))
  .toSorted();
const files = asked === 'other' ? all.filter(speaksHttp) : all;

function readCommit() {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'no commit';
  }
}

/** To see how the server speaks it, and leaves the protocol to its client. */
function speaksHttp(file) {
  const others =
    /^test\/(?:demo|hostile|simulation|lookup|sender|tier)\/|^test\/web\/(?:hostile|send|slow-readers)\.test\.js$/;
  return !others.test(file) && /\b(?:aServer|TestServer|StrataProcess)\b/.test(readFileSync(`${build}/${file}`, 'utf8'));
}

const inEntries = namesFiles || isMeasured ? files : writeEntryFiles(build, files, (file) => httpOfFile(file, { asked, commit }));

export default {
  files: inEntries.map((file) => `build/${file}`),
  require: [
    ...(isMeasured ? ['./build/test/support/worker-times.js'] : []),
    './build/test/support/choose-http.js',
    './build/test/support/end-of-worker.js',
  ],
  environmentVariables: {
    TEST_HTTP: asked ?? 'by file',
    TEST_COMMIT: commit,
    // With the committer in a thread of its own, as in production.
    ...(asked === 'other' && { TEST_COMMITTER: 'thread' }),
  },
  timeout: '60s',
  // Each worker runs one test at a time (`test/support/test.ts`): enough of them that the processor is busy while some wait.
  concurrency: 5,
  // `npm run test:times`: the figures of a process are those of one file.
  ...(isMeasured && { workerThreads: false, concurrency: 1 }),
};
