/**
 * `npm test`. Each file speaks HTTP/1.1 or HTTP/2 to its servers, by its name and the commit, so that the next commits try the other one; a file that chooses for
 * itself keeps to that. TEST_HTTP=1 or TEST_HTTP=2 chooses for all, TEST_HTTP=other turns the choice round: `.ci/run` so runs what speaks HTTP over both.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const isOther = process.env['TEST_HTTP'] === 'other';

function commit() {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'no commit';
  }
}

/** What speaks HTTP to see how the server speaks it, and leaves the protocol to its client. */
function speakingHttp() {
  const others =
    /^(?:crash|e2e|clients|etcd|machines|package|demo|hostile|simulation|lookup|sender|tier)\/|^web\/(?:hostile|send|slow-readers)\.test\.js$|^store\/served-bounds\.test\.js$/;
  const built = new URL('build/test/', import.meta.url);
  return readdirSync(built, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.js') && !others.test(file))
    .filter((file) => /\b(?:aServer|TestServer|StrataProcess)\b/.test(readFileSync(new URL(file, built), 'utf8')))
    .map((file) => `build/test/${file}`);
}

export default {
  files: isOther
    ? speakingHttp()
    : [
        'build/test/**/*.test.js',
        '!build/test/{crash,e2e,clients,etcd,machines,package}/**',
        '!build/test/hostile/slow/**',
        '!build/test/contract/sqlite-from-disk.test.js',
      ],
  require: ['./build/test/support/choose-http.js', './build/test/support/end-of-worker.js'],
  environmentVariables: { TEST_HTTP: process.env['TEST_HTTP'] ?? 'by file', TEST_COMMIT: commit() },
  timeout: '60s',
  concurrency: 2,
};
