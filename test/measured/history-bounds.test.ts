/**
 * A real server on the real clock keeps the bounds of its history at full write speed (G13). Each
 * test sets one bound by its flag. It measures the history over HTTP and in the file, while patches
 * arrive as fast as they are answered.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { openReader, type Connection } from '../../src/store/sqlite/database.js';
import { aPath, anApiExport } from '../support/objects.js';
import { storeDirectory } from '../support/test-store.js';
import { aServer, type TestServer } from '../support/test-server.js';

const writers = 16;
/** By which factor a bound may be exceeded. */
const slack = 1.1;

type Bounded = Readonly<{ server: TestServer; database: Connection }>;

async function aBoundedServer(t: ExecutionContext, flags: Readonly<Record<string, string>>): Promise<Bounded> {
  const directory = storeDirectory(t);
  const server = await aServer(t, { flags: { 'data-directory': directory, ...flags } });
  const client = server.client();
  await Promise.all(Array.from({ length: writers }, (_, i) => client.create(aPath(), anApiExport({ name: `n${i}` }))));
  const database = openReader(join(directory, 'strata.db'));
  t.teardown(() => database.close());
  return { server, database };
}

/**
 * Patches every object again and again, as fast as patches are answered, and calls `look` every few
 * milliseconds.
 */
async function patch(
  { server }: Bounded,
  { patches = Infinity, forMs = Infinity, bytes }: { patches?: number; forMs?: number; bytes: number },
  look: () => Promise<void>,
): Promise<void> {
  const client = server.client();
  const untilMs = performance.now() + forMs;
  let left = patches;
  let sent = 0;
  const write = async (name: string): Promise<void> => {
    while (left-- > 0 && performance.now() < untilMs)
      await client.mergePatch(aPath({ name }), { spec: { sent: sent++, filler: 'x'.repeat(bytes) } });
  };
  const writing = Promise.all(Array.from({ length: writers }, (_, i) => write(`n${i}`)));
  let isWriting = true;
  const looking = (async () => {
    for (; isWriting; await sleep(3)) await look();
  })();
  await writing;
  isWriting = false;
  await looking;
}

type Reported = Readonly<{ published: number; compacted: number; onDisk: number; bytes: number }>;

async function ask(server: TestServer): Promise<Reported> {
  const { text } = await server.client().raw('GET', '/metrics');
  const read = (name: string): number => Number(new RegExp(`^strata_${name} (\\S+)$`, 'm').exec(text)?.[1]);
  return {
    published: read('published_revision'),
    compacted: read('compacted_revision'),
    onDisk: read('history_changes'),
    bytes: read('history_bytes'),
  };
}

test.serial('history keeps its bound of changes at full write speed, in the file too', async (t) => {
  const bounded = await aBoundedServer(t, { 'history-changes-max': '100' });
  const rows = bounded.database.prepare<[], number>('SELECT count(*) FROM changes').pluck();
  let longest = 0;
  let rowsMax = 0;
  let reportedMax = 0;

  await patch(bounded, { patches: 2_000, bytes: 100 }, async () => {
    const { published, compacted, onDisk } = await ask(bounded.server);
    reportedMax = Math.max(reportedMax, onDisk);
    longest = Math.max(longest, published - compacted);
    rowsMax = Math.max(rowsMax, rows.get() ?? Infinity);
  });

  t.log(`at most ${longest} changes readable and ${rowsMax} rows, of a bound of 100 and ${writers} objects`);
  t.true(longest <= 100 * slack, `${longest} changes`);
  t.true(reportedMax >= longest && reportedMax <= 100 * slack + writers, `${reportedMax} changes on the disk`);
  t.true(longest >= 90, 'the server removes no history below the bound');
  // Beside the history: the objects themselves, and one commit, which has at most as many changes
  // as there are writers.
  t.true(rowsMax <= 100 * slack + writers + writers, `${rowsMax} rows`);
});

test.serial('history keeps its bound of bytes at full write speed', async (t) => {
  const bytesMax = 4 * 1024 * 1024;
  const bounded = await aBoundedServer(t, { 'history-bytes-max': '4MiB' });
  const bytes = bounded.database.prepare<[], number>(
    `SELECT coalesce(sum(length(body)), 0) FROM changes WHERE revision > (SELECT value FROM meta WHERE name = 'compacted')`,
  );
  let most = 0;
  let reportedMax = 0;

  await patch(bounded, { patches: 2_500, bytes: 10_000 }, async () => {
    reportedMax = Math.max(reportedMax, (await ask(bounded.server)).bytes);
    most = Math.max(most, bytes.pluck().get() ?? Infinity);
  });

  t.log(`at most ${(most / 1024 / 1024).toFixed(2)} MiB of 25 MB written, of a bound of 4 MiB`);
  t.true(most <= bytesMax * slack, `${most} bytes`);
  t.true(reportedMax >= bytesMax * 0.9 && reportedMax <= bytesMax * slack, `${reportedMax} bytes are reported`);
  t.true(most >= bytesMax * 0.9, 'the server removes no history below the bound');
});

test.serial('history keeps its bound of age at full write speed', async (t) => {
  const ageMs = 4_000;
  const bounded = await aBoundedServer(t, { 'history-age-max': '4s' });
  const reached: { revision: number; atMs: number }[] = [];
  let oldestMs = 0;

  await patch(bounded, { forMs: 6_000, bytes: 100 }, async () => {
    const askedMs = performance.now();
    const { published, compacted } = await ask(bounded.server);
    // The oldest readable change is at least as old as the earlier answer that first included it.
    const oldest = reached.find(({ revision }) => revision > compacted);
    oldestMs = Math.max(oldestMs, askedMs - (oldest?.atMs ?? askedMs));
    reached.push({ revision: published, atMs: performance.now() });
  });

  t.log(`the oldest change that was readable was ${oldestMs.toFixed(0)} ms old, of a bound of ${ageMs} ms`);
  t.true(reached.at(-1)!.atMs - reached[0]!.atMs > ageMs * slack, 'the writes went on for longer than the bound of age');
  t.true(oldestMs <= ageMs * slack, `${oldestMs} ms`);
  t.true(oldestMs >= ageMs * 0.8, 'the server removes no history below the bound');
});

test.serial('after a bound is lowered, the server removes the excess history even if nothing is written', async (t) => {
  const directory = storeDirectory(t);
  const before = await aServer(t, { flags: { 'data-directory': directory } });
  const client = before.client();
  await client.create(aPath(), anApiExport());
  for (let i = 0; i < 1_500; i++) await client.mergePatch(aPath({ name: 'one' }), { spec: { i } });

  const server = await before.restart({ flags: { 'data-directory': directory, 'history-changes-max': '100' } });
  t.teardown(() => server.close());
  await sleep(3_000);

  const { published, compacted } = await ask(server);
  t.is(published - compacted, 100);
});
