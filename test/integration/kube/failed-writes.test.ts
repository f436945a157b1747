/**
 * A server resets a connection while its client is about to write twice. Node then neither writes
 * nor reads on the connection, and reports nothing (http2-sessions.ts).
 */
import { once } from 'node:events';
import { setImmediate as immediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { test } from '../../support/test.js';
import { Http2Sessions } from '../../../src/kube/http2-sessions.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { selfSigned } from '../../support/test-authority.js';
import { until } from '../../support/test-server.js';

/**
 * Answers each request with `a`, and leaves the answer open. Ends the first answer with `b` and
 * resets its connection when asked to. It has a thread of its own, so that this also happens while
 * the client's thread waits.
 */
const server = `
const { createSecureServer } = require('node:http2');
const { parentPort, workerData } = require('node:worker_threads');
const { cert, key, isReset } = workerData;
let socket, first;
const server = createSecureServer({ cert, key });
server.on('connection', (opened) => (socket ??= opened));
server.on('stream', (stream) => {
  stream.on('error', () => {});
  stream.respond();
  stream.write('a');
  first ??= stream;
});
parentPort.once('message', () => {
  first.once('close', () => {
    socket.once('close', () => {
      Atomics.store(isReset, 0, 1);
      Atomics.notify(isReset, 0);
    });
    socket.resetAndDestroy();
  });
  first.end('b');
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

test('requests on a connection that Node can no longer write to fail within 10 s, and later ones are answered', async (t) => {
  const { certificate: cert, key } = selfSigned(['127.0.0.1']);
  const isReset = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(server, { eval: true, workerData: { cert, key, isReset } });
  t.teardown(() => worker.terminate());
  const [port] = (await once(worker, 'message')) as [number];
  const clock = new ManualClock();
  const sessions = new Http2Sessions({ origin: `https://127.0.0.1:${port}`, tls: { ca: cert }, clock });
  const over = new AbortController();
  t.teardown(() => (over.abort(), sessions.close()));
  const ask = async () => (await sessions.request({ path: '/', headers: {}, signal: over.signal }))!;
  const first = await ask();
  await once(first.body, 'data');

  worker.postMessage('reset');
  Atomics.wait(isReset, 0, 0);
  const stuck = [await ask()];
  // The first write fails in the native part of this turn, and the end of the first answer is read
  // in the next one.
  await new Promise<void>((resolve) => setImmediate(resolve));
  stuck.push(await ask());
  await once(first.stream, 'close');
  for (let turns = 0; turns < 20; turns += 1) await immediate();
  if (sessions.size === 0) t.log('this version of Node notices the reset by itself');

  clock.advance(5_000);
  await immediate();
  clock.advance(5_000);

  await until(() => stuck.every(({ stream }) => stream.closed) && sessions.size === 0);
  const later = await ask();
  t.deepEqual(await once(later.body, 'data'), [Buffer.from('a')]);
});
