/** F8, G12, G13: clients that read nothing cost a bounded amount of memory and delay nobody. */
import { test } from '../support/test.js';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { aPath, anApiExport } from '../support/objects.js';
import { aServer, hurried, until } from '../support/test-server.js';

const mebibyte = 1024 * 1024;

/** Memory of this thread alone, because other test files run in the same process. */
function heldBytes(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('100 clients that never read their watch hold little memory, delay no other watch, and are gone after their deadline', async (t) => {
  const server = await aServer(t, {
    clock: hurried(4),
    flags: { 'watcher-queue-bytes-max': '128KiB', 'http2-max-streams-per-connection': '200' },
  });
  const session = connect(server.url, {
    cert: server.master.certificate,
    key: server.master.key,
    rejectUnauthorized: false,
    settings: { initialWindowSize: 20_000 },
  });
  session.on('error', () => {});
  t.teardown(() => session.destroy());
  await once(session, 'connect');
  // The server encodes a table for each watch separately, so watches share no buffers.
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const stuck = Array.from({ length: 100 }, () =>
    session.request({ ':path': `${aPath()}?watch=true&includeObject=Object&timeoutSeconds=32`, accept }),
  );
  for (const stream of stuck) stream.on('error', () => {}).pause();
  await until(async () => (await server.metric('strata_watches_open')) === 100);
  const client = server.client();
  const seenMs = new Map<string, number>();
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const watching = (async () => {
    for await (const { object } of server.client().watch(`${aPath()}?watch=true`, { signal: stop.signal }))
      seenMs.set(object.metadata.name ?? '', performance.now());
  })().catch((error: unknown) => t.true(stop.signal.aborted, String(error)));
  await until(async () => (await server.metric('strata_watches_open')) === 101);
  const before = heldBytes();

  const delaysMs: number[] = [];
  for (let i = 0; i < 150; i++) {
    const name = `n${i}`;
    await client.create(aPath(), anApiExport({ name }, { spec: { text: 'x'.repeat(20_000) } }));
    const writtenMs = performance.now();
    await until(() => seenMs.has(name), 20_000);
    delaysMs.push(Math.max(0, (seenMs.get(name) ?? 0) - writtenMs));
  }

  delaysMs.sort((a, b) => a - b);
  const grownMiB = (heldBytes() - before) / mebibyte;
  t.log(`grown by ${grownMiB.toFixed()} MiB; delay p50 ${delaysMs[75]?.toFixed(1)} ms, max ${delaysMs.at(-1)?.toFixed(1)} ms`);
  t.true(grownMiB < 150, `${grownMiB} MiB`);
  t.true((delaysMs[75] ?? Infinity) < 50);
  t.true((await server.metric('strata_watch_fallbacks_total')) >= 100);
  stop.abort();
  await watching;
  await server.untilNoWatch(10_000);
  await until(() => stuck.every((stream) => stream.closed), 10_000);
});
