/**
 * An unmodified kcp of two shards on one cache server of Strata. kcp's own replication tests must
 * pass, and a kill -9 of the cache must cost no informer a relist. Agents push the same shards into
 * a second cache. Both must end with the same objects, also after the first one was restored from a
 * backup.
 *
 * Runs where TEST_KCP_BIN names a folder with kcp's binaries (`neededBinaries`), for about six
 * minutes; otherwise it is skipped with a log line. TEST_SERVER puts kcp's own cache server in
 * Strata's place. TEST_KEEP keeps the folder with all logs.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { isForeign } from '../support/strata-process.js';
import { SecondCache } from './live-agent.js';
import { assertPassed } from './assert-passed.js';
import { LiveKcp, neededBinaries } from './live-kcp.js';
import { countListings, countRelists } from './relists.js';

/** client-go waits up to 30 s, with jitter, before it calls an unreachable server again. */
const backoffMsMax = 45_000;

/** kcp's controllers take some seconds to clean up after its tests. */
const convergeMsMax = 60_000;

/** Each of two shards runs 21 informers on the cache, each of two virtual-workspace servers 5. */
const informersMin = 40;

const binaries = process.env['TEST_KCP_BIN'];
const missing = binaries === undefined ? [] : neededBinaries.filter((name) => !existsSync(join(binaries, name)));

test.serial('kcp’s replication tests pass, and a kill -9 of the cache costs no relist', async (t) => {
  if (binaries === undefined || missing.length > 0) {
    t.log(`SKIPPED: ${binaries === undefined ? 'TEST_KCP_BIN is not set' : `${binaries} lacks ${missing.join(', ')}`}`);
    t.pass();
    return;
  }
  t.timeout(1_200_000);
  await using kcp = await LiveKcp.start(binaries);
  // Started before any test: an object that is being deleted stays in a cache that has it, but is
  // not sent to one that lacks it.
  await using second = isForeign ? undefined : await SecondCache.start(kcp);

  assertPassed(t, await kcp.test('e2e-reconciler-cache.test', '^TestReplication$'), { atLeast: 6 });
  assertPassed(t, await kcp.test('e2e-cache.test', '^(TestCacheServerReplicationAPI|TestReplicationWithWildcardListing)$'), {
    atLeast: 11,
  });

  const begin = new Map([...(await kcp.logEnds()).keys()].map((name) => [name, 0]));
  const listings = countListings(await kcp.logsSince(begin));
  const ends = await kcp.logEnds();
  await kcp.killCache();
  await sleep(backoffMsMax);
  const relists = countRelists(await kcp.logsSince(ends));
  t.log(`after kill -9: ${relists} relists; ${listings} listings before, at start`);
  t.true(listings > informersMin, 'kcp’s log reports listings');
  if (!isForeign) {
    const watches = await kcp.cacheMetric('strata_watches_open');
    t.log(`${watches} watches open`);
    t.true(watches > informersMin, 'the informers of two shards and two virtual-workspace servers watch again');
    t.is(relists, 0);
  }

  assertPassed(t, await kcp.test('e2e-reconciler-cache.test', '^TestReplication$'), { atLeast: 6 });
  if (second !== undefined) await agentsCarryTheSame(t, kcp, second);
  if (second !== undefined) await aRestoreIsMadeUpFor(t, kcp, second);
});

/**
 * Both caches must hold the same after creates, updates and deletes, although agents and caches are
 * killed meanwhile.
 */
async function agentsCarryTheSame(t: ExecutionContext, kcp: LiveKcp, second: SecondCache): Promise<void> {
  await assertSame(t, second, 'after kcp’s tests of replication');

  const testing = kcp.test('e2e-reconciler-cache.test', '^TestReplication$');
  await sleep(3_000);
  await second.cache.kill();
  await second.cache.resume();
  await sleep(3_000);
  for (const agent of second.agents) {
    await agent.kill();
    agent.resume();
  }
  assertPassed(t, await testing, { atLeast: 6 });
  await assertSame(t, second, 'after creates, updates, deletes, and the death of cache and agents');

  await kcp.killCache();
  await second.cache.restart('SIGTERM');
  assertPassed(t, await kcp.test('e2e-reconciler-cache.test', '^TestReplication$'), { atLeast: 6 });
  await assertSame(t, second, 'after both caches were started again');
}

/**
 * Restores the cache from a backup taken in the middle of kcp's tests. It then lacks later
 * creations and has objects deleted since. kcp's controllers repair both, because their informers
 * relist.
 */
async function aRestoreIsMadeUpFor(t: ExecutionContext, kcp: LiveKcp, second: SecondCache): Promise<void> {
  const backup = kcp.file('backup.db');
  const testing = kcp.test('e2e-reconciler-cache.test', '^TestReplication$');
  await sleep(5_000);
  t.log((await kcp.strata('backup', backup)).trim());
  assertPassed(t, await testing, { atLeast: 6 });
  await assertSame(t, second, 'before the restore');

  await kcp.whileCacheIsDown(async () => void t.log((await kcp.strata('restore', backup)).trim()));
  const differences = await firstDifferences(second);
  t.log(`${differences.length} differences after the restore`);
  t.true(differences.length > 0, 'the backup differs from the present state');
  await sleep(backoffMsMax);
  assertPassed(t, await kcp.test('e2e-reconciler-cache.test', '^TestReplication$'), { atLeast: 6 });
  await assertSame(t, second, 'after the restore');
}

/** The differences as soon as the cache answers again. */
async function firstDifferences(second: SecondCache): Promise<readonly string[]> {
  for (const deadline = performance.now() + convergeMsMax; ; await sleep(50)) {
    try {
      return await second.differences();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
  }
}

async function assertSame(t: ExecutionContext, second: SecondCache, when: string): Promise<void> {
  const deadline = performance.now() + convergeMsMax;
  for (;;) {
    const differences = await second.differences();
    if (differences.length === 0) break;
    if (performance.now() > deadline) {
      t.deepEqual(differences, [], when);
      return;
    }
    await sleep(500);
  }
  t.log(`${when}: both caches hold the same ${await second.objects()} objects`);
}
