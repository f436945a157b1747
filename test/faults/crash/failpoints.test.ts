/**
 * A server kills itself at the failpoints of its code (src/diagnostics/failpoint.ts): under load,
 * while it starts, and while it stops. Finds an answer to a client that the crash made untrue (F1,
 * F2; see WatchedLoad), and damage that `strata check` reports. migration.test.ts has the
 * failpoints of a migration, restore.test.ts those of a restore.
 *
 * TEST_SEED=n repeats the choices of a run, but not its timing.
 */
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Failpoint } from '../../../src/diagnostics/failpoint.js';
import { openReader } from '../../../src/store/sqlite/database.js';
import { strataCommand } from '../../demo/strata-command.js';
import { RawPusher, pushedExport, sliceOf } from '../../support/raw-pusher.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { StrataProcess } from '../../support/strata-process.js';
import { seeded } from '../../support/crash/random.js';
import { WatchedLoad } from './watched-load.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const diesMsMax = 240_000;

test.serial(
  'a server that dies in the middle of a commit, a compaction, a checkpoint, a start or a stop keeps every promise it has made',
  async (t) => {
    t.timeout(600_000);
    t.log(`TEST_SEED=${seed}`);
    const random = seeded(seed);
    await using server = await StrataProcess.start({ flags: ['--bookmark-interval=100ms', '--history-changes-max=2000'] });
    const load = await WatchedLoad.begin(t, server, seed);
    const round = async (name: Failpoint, time: number, dies: () => Promise<unknown>): Promise<void> => {
      await dies();
      t.is(missingPast(server), 0, `${name}:${time}: every row that a change above the compacted revision replaced is there`);
      await strataCommand(['check', '--root-directory', server.dataFolder]);
      await server.resume();
      await load.check(`${name}:${time}`);
    };

    for (const name of ['commit.before', 'commit.after', 'compaction.before', 'compaction.after'] as const) {
      for (const time of [1, 2 + random.below(5), 20 + random.below(200)])
        await round(name, time, () => diesAt(t, server, { name, time, while: (signal) => load.write(signal) }));
    }
    for (const name of ['log.before-restart', 'log.after-restart'] as const) {
      const readers = new Worker(new URL('../../support/store/overlapping-readers.js', import.meta.url), {
        workerData: databaseOf(server),
      });
      await once(readers, 'message');
      await round(name, 1, async () => {
        await diesAt(t, server, { name, while: (signal) => load.write(signal) });
        readers.postMessage('end');
        await once(readers, 'message');
      });
    }
    for (const name of ['epoch.before', 'epoch.after'] as const) {
      await round(name, 1, async () => {
        await writeFor(load, 200);
        await server.kill();
        await diesAt(t, server, { name });
        await diesAt(t, server, { name });
      });
    }
    for (const name of ['close.noted', 'close.truncated'] as const) {
      await round(name, 1, () =>
        diesAt(t, server, {
          name,
          while: async () => {
            await writeFor(load, 200);
            process.kill(server.pid, 'SIGTERM');
          },
        }),
      );
    }

    load.finish();
    t.regex(await server.log(), /"failpoint":"epoch.after:1".*"failpoint.armed"/);
    t.true(load.acknowledged > 1_000, 'enough was written to mean something');
  },
);

test.serial('a sync that a kill cuts short removes nothing before its end frame, and is not reported as whole', async (t) => {
  await using server = await StrataProcess.start();
  const client = server.client();
  const slice = sliceOf('apiexports');
  const names = Array.from({ length: 1_000 }, (_, i) => `n${i}`);
  const synced = names.slice(0, 100);
  const held = async (): Promise<readonly string[]> => (await client.list(collection)).items.map(({ metadata }) => metadata.name!);
  const received = async () => {
    const { shards } = JSON.parse((await client.raw('GET', '/services/cache/status')).text) as StatusReport;
    return shards.find(({ shard }) => shard === 'amber')?.slices[0];
  };
  const state = async (which: readonly string[], { term, ends = true }: Readonly<{ term: number; ends?: boolean }>) => {
    const pusher = await RawPusher.open(server, { term });
    pusher.begin(slice);
    let sequence = 0;
    for (let at = 0; at < which.length; at += 50) {
      sequence = pusher.put(
        slice,
        which.slice(at, at + 50).map((name) => pushedExport(name)),
      );
      await pusher.acknowledged(sequence);
    }
    if (ends) await pusher.acknowledged(pusher.end(slice, which.length));
    pusher.socket.terminate();
  };

  // The first sync is cut short: its objects must not be reported as the whole slice.
  await server.kill();
  await diesAt(t, server, { name: 'commit.before', time: 10, while: () => state(names, { term: 10 }).catch(() => {}) });
  await server.resume();
  const some = await held();
  t.true(some.length > 0 && some.length < names.length, `${some.length}`);
  t.like(await received(), { everSynced: false, objects: some.length });
  await state(names, { term: 20 });
  t.like(await received(), { everSynced: true, syncedIn: 'this-term', objects: names.length });

  // Cut short before its end frame: objects that the sync did not send stay.
  await state(synced, { term: 30, ends: false });
  await server.restart('SIGKILL');
  t.is((await held()).length, names.length);
  t.like(await received(), { everSynced: true, syncedIn: 'earlier' });

  // Cut short after its end frame, while objects that it did not send are removed, 256 a step.
  await server.kill();
  await diesAt(t, server, { name: 'sweep.step', time: 3, while: () => state(synced, { term: 40 }).catch(() => {}) });
  await strataCommand(['check', '--root-directory', server.dataFolder]);
  await server.resume();
  const left = await held();
  t.is(left.length, names.length - 2 * 256);
  t.deepEqual(
    synced.filter((name) => !left.includes(name)),
    [],
  );
  t.like(await received(), { everSynced: true, syncedIn: 'earlier' });
  await state(synced, { term: 50 });
  t.deepEqual((await held()).toSorted(), synced.toSorted());
  t.like(await received(), { everSynced: true, syncedIn: 'this-term', objects: synced.length });
});

const collection = '/services/cache/shards/amber/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';

type Death = Readonly<{
  name: Failpoint;
  time?: number;
  /**
   * Called once the server is up, to bring it to the failpoint; not for a failpoint of the start.
   */
  while?: (signal: AbortSignal) => Promise<unknown>;
}>;

/** Restarts the server with a failpoint, and asserts that it dies there by SIGKILL. */
async function diesAt(t: ExecutionContext, server: StrataProcess, { name, time = 1, while: acts }: Death): Promise<void> {
  await server.kill();
  const over = new AbortController();
  const starting = server.resume(undefined, { STRATA_FAILPOINT: `${name}:${time}` });
  const ended = server.ended();
  const isUp = await starting.then(
    () => true,
    () => false,
  );
  const acting = isUp ? acts?.(over.signal) : undefined;
  const how = await Promise.race([ended, sleep(diesMsMax, 'nothing', { signal: over.signal, ref: false })]);
  over.abort();
  if (how === 'nothing') await server.kill();
  await acting;
  t.is(how, 'SIGKILL', `${name}:${time}`);
}

async function writeFor(load: WatchedLoad, ms: number): Promise<void> {
  const writing = new AbortController();
  const written = load.write(writing.signal);
  await sleep(ms);
  writing.abort();
  await written;
}

/** Counts the missing rows that a list at a revision above the compacted one needs. */
function missingPast(server: StrataProcess): number {
  const database = openReader(databaseOf(server));
  const missing = database.prepare<[], number>(
    `SELECT count(*) FROM changes AS c WHERE c.revision > (SELECT value FROM meta WHERE name = 'compacted')
       AND c.replaced > 0 AND NOT EXISTS (SELECT 1 FROM changes AS r WHERE r.revision = c.replaced)`,
  );
  const count = missing.pluck().get();
  database.close();
  return count ?? 0;
}

function databaseOf(server: StrataProcess): string {
  return join(server.dataFolder, 'data', 'strata.db');
}
