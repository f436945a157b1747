/**
 * A disk that fails for a while. Finds a store that a server sets aside as damaged because a read
 * failed. Also finds a write that is there after a crash although it was refused.
 */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { Answer } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { StrataProcess } from '../../support/strata-process.js';
import { test } from '../../support/test.js';
import { compiled } from './compiled.js';

const path = aPath({ resource: 'apiexports' });
const objects = 300;

type Made = Readonly<{
  server: StrataProcess;
  startFailing: (after: number, reads: number) => Promise<void>;
  served: () => Promise<number>;
  /** While this file exists, syncs of the WAL fail. */
  failedSyncs: string;
}>;

/**
 * A server with objects. `startFailing` restarts it: after `after` reads of the database, the next
 * `reads` reads fail. Undefined where the test is skipped.
 */
async function aServer(t: ExecutionContext): Promise<Made | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-disk-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const library = compiled(t, folder, 'failing-disk');
  if (library === undefined) return undefined;
  const store = join(folder, 'store');
  const failedSyncs = join(folder, 'no-syncs');
  const failing = { LD_PRELOAD: library, FAILED_FOLDER: folder, FAILED_SYNCS: failedSyncs };
  const server = await StrataProcess.start({ flags: [`--data-directory=${store}`] });
  t.teardown(() => server[Symbol.asyncDispose]());
  const annotations = { padding: 'x'.repeat(3_000) };
  const post = (i: number): Promise<Answer> => server.client().raw('POST', path, { body: anApiExport({ name: `n${i}`, annotations }) });
  const answers = await Promise.all(Array.from({ length: objects }, (_, i) => post(i)));
  t.true(answers.every(({ status }) => status === 201));
  return {
    server,
    failedSyncs,
    startFailing: async (after, reads) => {
      await server.stop();
      await server.resume(undefined, { ...failing, FAILED_AFTER: String(after), FAILED_READS: String(reads) });
    },
    served: async () => {
      t.deepEqual(
        (await readdir(store)).filter((name) => name.includes('damaged')),
        [],
      );
      return (await server.client().list(path)).items.length;
    },
  };
}

test('a start in which one read fails serves all objects, or ends, and then the next start serves all', async (t) => {
  t.timeout(120_000);
  const made = await aServer(t);
  if (made === undefined) return;
  const { server, startFailing, served } = made;
  let ended = 0;
  for (const after of [2, 7, 20, 60, 150]) {
    await startFailing(after, 1).catch(() => {
      ended += 1;
      return server.resume();
    });
    t.is(await served(), objects, `after ${after} reads`);
  }
  t.log(`${ended} of 5 starts ended`);
});

test('a start during which all reads begin to fail ends and says so, and leaves the files as they are', async (t) => {
  t.timeout(120_000);
  const made = await aServer(t);
  if (made === undefined) return;
  const { server, startFailing, served } = made;
  for (const after of [20, 60]) {
    await t.throwsAsync(startFailing(after, 1_000_000), { message: /strata\.db cannot be read: EIO|disk I\/O error/ });
    await server.resume();
    t.is(await served(), objects);
  }
});

test('after a kill, writes that were refused because a sync failed are not there, and acknowledged ones are', async (t) => {
  t.timeout(120_000);
  const made = await aServer(t);
  if (made === undefined) return;
  const { server, startFailing, served, failedSyncs } = made;
  await startFailing(0, 0);
  const client = server.client();
  await writeFile(failedSyncs, '');
  const refused = [await client.raw('POST', path, { body: anApiExport({ name: 'refused' }) }), await client.raw('DELETE', `${path}/n3`)];
  t.deepEqual(
    refused.map(({ status }) => status),
    [503, 503],
  );

  await server.kill();
  await rm(failedSyncs);
  await server.resume();

  t.is(await served(), objects);
  t.is((await server.client().raw('GET', `${path}/n3`)).status, 200);
});
