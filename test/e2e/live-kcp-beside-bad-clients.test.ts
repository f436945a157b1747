/**
 * An unmodified kcp of two shards must pass its own replication tests while bad clients run against
 * the same cache. They come anonymously and with a shard's certificate, signed by kcp's own CA.
 * Soon after they are gone, no watch of theirs may be left.
 *
 * Runs where TEST_KCP_BIN names a folder with kcp's binaries, for about four minutes; otherwise it
 * is skipped with a log line. TEST_BAD_CLIENTS_SEED chooses other bad clients.
 */
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../support/test.js';
import { MixerProcess } from '../support/hostile/mixer-process.js';
import { KubeClient } from '../support/kube-client.js';
import { isForeign } from '../support/strata-process.js';
import { OpensslAuthority } from '../support/certificates/openssl-authority.js';
import type { Certificate } from '../support/test-authority.js';
import { assertPassed } from './assert-passed.js';
import { cacheUrl, LiveKcp, neededBinaries } from './live-kcp.js';

const seed = process.env['TEST_BAD_CLIENTS_SEED'] ?? '1';
const mixerSecondsMax = 900;
/** Within this time nothing may be left of a client that is gone. */
const goneWithinMs = 30_000;
/** kcp's own informers open and close some watches; leftovers of bad clients would be hundreds. */
const watchesMore = 20;

const apiExports = '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';

const binaries = process.env['TEST_KCP_BIN'];
const missing = binaries === undefined ? [] : neededBinaries.filter((name) => !existsSync(join(binaries, name)));

test.serial('kcp’s replication tests pass while bad clients run against the same cache', async (t) => {
  if (binaries === undefined || missing.length > 0 || isForeign) {
    const why = binaries === undefined ? 'TEST_KCP_BIN is not set' : `${binaries} lacks ${missing.join(', ')}, or the server is not ours`;
    t.log(`SKIPPED: ${why}`);
    t.pass();
    return;
  }
  t.timeout(1_200_000);
  await using kcp = await LiveKcp.start(binaries);
  const server = await kcp.cachePid();
  const watchesBefore = await kcp.cacheMetric('strata_watches_open');
  const amber = await aShard(kcp);
  const reader = new KubeClient({ url: cacheUrl, certificate: amber.certificate, key: amber.key });
  t.is((await reader.raw('GET', apiExports)).status, 200, 'the cache knows the shard whose certificate the bad clients have');
  reader.close();
  {
    await using mixer = MixerProcess.start({ url: cacheUrl, as: amber, seed, secondsMax: mixerSecondsMax });

    assertPassed(t, await kcp.test('e2e-reconciler-cache.test', '^TestReplication$'), { atLeast: 6 });
    assertPassed(t, await kcp.test('e2e-cache.test', '^(TestCacheServerReplicationAPI|TestReplicationWithWildcardListing)$'), {
      atLeast: 11,
    });
    assertPassed(t, await kcp.test('e2e-reconciler-cache.test', '^TestReplication$'), { atLeast: 6 });

    t.true(mixer.isRunning, mixer.output);
    t.log(`the bad clients did, last: ${mixer.output.trim().split('\n').slice(-4).join('; ')}`);
  }
  const watchesAtEnd = await kcp.cacheMetric('strata_watches_open');
  await sleep(goneWithinMs);
  const watchesAfter = await kcp.cacheMetric('strata_watches_open');

  t.is(await kcp.cachePid(), server, 'the server was never started again');
  t.log(`watches open: ${watchesBefore} before, ${watchesAtEnd} at the end of the bad clients, ${watchesAfter} after ${goneWithinMs} ms`);
  t.true(
    watchesAfter >= watchesBefore - watchesMore && watchesAfter <= watchesBefore + watchesMore,
    'kcp’s own watches are left, and none of the bad clients',
  );
});

/**
 * A certificate for a shard that kcp does not have. It may read everything, and write nothing of
 * kcp's own shards.
 */
async function aShard(kcp: LiveKcp): Promise<Certificate> {
  const folder = kcp.file('bad-client');
  await mkdir(folder);
  const authority = new OpensslAuthority(folder, {
    certificateFile: kcp.file('.kcp/client-ca.crt'),
    keyFile: kcp.file('.kcp/client-ca.key'),
  });
  return await authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
}
