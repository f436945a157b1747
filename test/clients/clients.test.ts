/**
 * client-go's informers (typed, dynamic, metadata) over every shard and cluster, through writes, a
 * SIGTERM restart and a kill -9, once with WatchList and once without. At the end every store must
 * hold what the server lists. After a restart every informer must resume its watch where it was and
 * none may relist, because kcp's informers delete nothing on a relist.
 *
 * Needs `go` and the modules of go.mod; skipped with a log line without them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { StrataProcess } from '../support/strata-process.js';
import { buildInformerProgram, InformerProgram, type Requests } from './informer-program.js';

/**
 * client-go counts a watch that ends within its first second without an event as failed, and
 * relists.
 */
const watchAgeMsMin = 1_500;

let program = '';
let why = '';
let folder = '';

test.before('build the informers', async (t) => {
  t.timeout(300_000);
  folder = await mkdtemp(join(tmpdir(), 'strata-clients-'));
  const built = await buildInformerProgram(folder);
  if ('program' in built) program = built.program;
  else ({ why } = built);
});

test.after.always(async () => {
  await rm(folder, { recursive: true, force: true });
});

for (const watchList of [true, false]) {
  test.serial(
    `informers ${watchList ? 'with' : 'without'} WatchList resume after a stop and a kill, and their stores end equal to the server’s list`,
    async (t) => {
      t.timeout(120_000);
      if (program === '') {
        t.log(`SKIPPED (1 of 2 client-go tests): ${why}`);
        t.pass();
        return;
      }
      await using server = await StrataProcess.start();
      await using informers = await InformerProgram.start(program, server, { watchList });

      await informers.write();
      await assertEqualStores(t, informers);
      const first = await informers.count();
      for (const [name, requests] of Object.entries(first))
        t.true(
          watchList ? requests.watchList > 0 && requests.list === 0 : requests.list > 0 && requests.watchList === 0,
          `${name} began with ${JSON.stringify(requests)}`,
        );

      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        await sleep(watchAgeMsMin);
        await server.restart(signal);
        await informers.write();
        await assertEqualStores(t, informers);
        assertResumed(t, signal, await informers.count());
      }
    },
  );
}

async function assertEqualStores(t: ExecutionContext, informers: InformerProgram): Promise<void> {
  for (const { name, objects, differences } of await informers.compare()) {
    t.true(objects > 0, `${name} has nothing to compare`);
    t.deepEqual(differences, [], name);
  }
}

function assertResumed(t: ExecutionContext, signal: string, counted: Readonly<Record<string, Requests>>): void {
  const sum = (member: keyof Requests): number => Object.values(counted).reduce((total, requests) => total + requests[member], 0);
  t.log(`after ${signal}: ${sum('watch')} watches resumed, ${sum('list')} lists, ${sum('watchList')} watch-lists`);
  for (const [name, { list, watch, watchList }] of Object.entries(counted)) {
    t.true(watch > 0, `${name} has not watched again after ${signal}`);
    t.is(list + watchList, 0, `${name} listed again after ${signal}`);
  }
}
