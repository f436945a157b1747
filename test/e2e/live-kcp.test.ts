/**
 * An unmodified kcp of two shards on our cache server: kcp's own tests of replication pass, and a kill -9 of the cache
 * costs no informer a relist (contract R24).
 *
 * Runs where STRATA_KCP_BIN names a folder with kcp's binaries (`neededBinaries`), for about four minutes; skipped aloud
 * otherwise. STRATA_TEST_SERVER puts kcp's own cache server in our place; STRATA_KEEP keeps the folder with all logs.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { isForeign } from '../support/strata-process.js';
import { LiveKcp, neededBinaries, type TestOutcome } from './live-kcp.js';
import { countInformerRequests, countRelists } from './request-count.js';

/** client-go waits up to 30 s, with jitter, before it calls a server again that was not there. */
const backoffMsMax = 45_000;

const binaries = process.env['STRATA_KCP_BIN'];
const missing = binaries === undefined ? [] : neededBinaries.filter((name) => !existsSync(join(binaries, name)));

test.serial('kcp’s replication tests pass, and a kill -9 of the cache costs no relist', async (t) => {
  t.timeout(1_200_000);
  if (binaries === undefined || missing.length > 0) {
    t.log(`SKIPPED: ${binaries === undefined ? 'STRATA_KCP_BIN is not set' : `${binaries} lacks ${missing.join(', ')}`}`);
    t.pass();
    return;
  }
  await using kcp = await LiveKcp.start(binaries);

  assertPassed(t, await kcp.test('e2e-reconciler-cache.test', '^TestReplication$'), { atLeast: 6 });
  assertPassed(t, await kcp.test('e2e-cache.test', '^(TestCacheServerReplicationAPI|TestReplicationWithWildcardListing)$'), {
    atLeast: 11,
  });

  const ends = await kcp.logEnds();
  await kcp.killCache();
  await sleep(backoffMsMax);
  const relists = countRelists(await kcp.logsSince(ends, 'kcp'));
  const asked = countInformerRequests(await kcp.logsSince(ends, 'cache'));
  t.log(
    `after kill -9: ${relists} relists by what kcp logs; the cache logs ${asked.watches} watches, ${asked.lists} lists, ${asked.watchLists} watch-lists`,
  );
  if (!isForeign) {
    t.is(relists, 0);
    t.is(asked.lists + asked.watchLists, 0);
  }

  assertPassed(t, await kcp.test('e2e-reconciler-cache.test', '^TestReplication$'), { atLeast: 6 });
});

function assertPassed(t: ExecutionContext, { passed, failed, output }: TestOutcome, { atLeast }: Readonly<{ atLeast: number }>): void {
  t.log(`${passed.length} passed: ${passed.filter((name) => name.includes('/')).length} scenarios`);
  t.deepEqual(failed, [], output.slice(-8_000));
  t.true(passed.filter((name) => name.includes('/')).length >= atLeast, output.slice(-8_000));
}
