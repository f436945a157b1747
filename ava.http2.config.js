/**
 * The tests that speak HTTP through `KubeClient`, once more over HTTP/2: what opens a server and leaves the protocol to its client.
 * Part of `npm test`; the first run is over HTTP/1.1.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** These speak HTTP only to write what they then look at in another way, or choose the protocol themselves. */
const leftOut = /^(?:crash|e2e|clients|etcd|machines|package|demo|hostile|simulation|lookup|sender|tier)\/|^web\/(?:hostile|send|slow-readers)\.test\.js$|^store\/served-bounds\.test\.js$/;
const speaksHttp = /\b(?:aServer|TestServer|StrataProcess)\b/;

const built = new URL('build/test/', import.meta.url);
const files = readdirSync(built, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.js') && !leftOut.test(file) && speaksHttp.test(readFileSync(new URL(file, built), 'utf8')))
  .map((file) => `build/test/${file}`);

console.log(`Once more over HTTP/2: ${files.length} files of tests that speak HTTP`);

export default {
  files,
  require: ['./build/test/support/end-of-worker.js'],
  environmentVariables: { TEST_HTTP: '2' },
  timeout: '60s',
  concurrency: 2,
};
