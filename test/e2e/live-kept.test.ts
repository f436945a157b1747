/**
 * A cordon annotation on the cache's copy of a Shard that a live kcp writes. kcp's replication
 * controller finds an annotation too many in the copy and sends the object without it. The
 * annotation must stay, and the controller must come to rest.
 *
 * Runs where TEST_KCP_BIN names a folder with kcp's binaries (`neededBinaries`), for about two
 * minutes; otherwise it is skipped with a log line.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../support/test.js';
import { isForeign } from '../support/strata-process.js';
import { until } from '../support/test-server.js';
import { LiveKcp, neededBinaries } from './live-kcp.js';

const binaries = process.env['TEST_KCP_BIN'];
const missing = binaries === undefined ? [] : neededBinaries.filter((name) => !existsSync(join(binaries, name)));
/** Long enough to see a loop: a controller that loops sends some PUTs each second. */
const watchedMs = 20_000;
const shardPath = '/apis/core.kcp.io/v1alpha1/shards/shard-1';
const copyPath = `/services/cache/shards/root/clusters/root${shardPath}`;
const annotation = 'example.com/cordon';

test.serial('kcp’s controller does not remove a kept annotation, comes to rest, and still writes its own changes', async (t) => {
  if (binaries === undefined || missing.length > 0 || isForeign) {
    const why = isForeign ? 'TEST_SERVER is set' : binaries === undefined ? 'TEST_KCP_BIN is not set' : `it lacks ${missing.join(', ')}`;
    t.log(`SKIPPED: ${why}`);
    t.pass();
    return;
  }
  t.timeout(600_000);
  const cacheVariables = { STRATA_KEPT_ANNOTATIONS: `shards.core.kcp.io=${annotation}`, STRATA_ACCESS_LOG: 'true' };
  await using kcp = await LiveKcp.start(binaries, [], { cacheVariables });
  const [cache, client] = [await kcp.cacheClient(), await kcp.client()];
  t.teardown(() => cache.close());
  t.teardown(() => client.close());
  const puts = async (): Promise<number> => {
    const log = await readFile(kcp.file('logs/kcp-cache.log'), 'utf8');
    return log.split('\n').filter((line) => line.includes('"verb":"update"') && line.includes(`"path":"${copyPath}"`)).length;
  };
  const copy = async () => (await cache.get(copyPath)).metadata;
  /** How many PUTs have arrived since `before`, once none has arrived for `watchedMs`. */
  const putsUntilRest = async (before: number): Promise<number> => {
    let last = await puts();
    for (let quietSinceMs = performance.now(); performance.now() - quietSinceMs < watchedMs; await sleep(500)) {
      const now = await puts();
      if (now !== last) quietSinceMs = performance.now();
      last = now;
    }
    return last - before;
  };
  await putsUntilRest(0);

  const before = await puts();
  const cordoned = await cache.mergePatch(copyPath, { metadata: { annotations: { [annotation]: 'maintenance' } } });
  const afterCordon = await putsUntilRest(before);
  t.log(`${afterCordon} PUTs after the cordon, within ${watchedMs} ms`);
  t.true(afterCordon >= 1, 'the controller has sent its own object');
  t.true(afterCordon <= 3, 'the controller has come to rest');
  const kept = await copy();
  t.is(kept.annotations?.[annotation], 'maintenance');
  t.is(kept.resourceVersion, cordoned.metadata.resourceVersion, 'the controller’s PUT changed nothing');

  const beforeChange = await puts();
  await client.mergePatch(`/clusters/root${shardPath}`, { metadata: { labels: { 'example.com/changed': 'yes' } } });
  await until(async () => (await copy()).labels?.['example.com/changed'] === 'yes');
  t.is((await copy()).annotations?.[annotation], 'maintenance');
  const afterChange = await putsUntilRest(beforeChange);
  t.log(`${afterChange} PUTs after a change of the shard's own object`);
  t.true(afterChange <= 4);
  t.is((await client.get(`/clusters/root${shardPath}`)).metadata.annotations?.[annotation], undefined);

  await kcp.killCache();
  await until(async () => (await copy().catch(() => undefined))?.annotations?.[annotation] === 'maintenance');
  await cache.mergePatch(copyPath, { metadata: { annotations: { [annotation]: null } } });
  await putsUntilRest(0);
  t.is((await copy()).annotations?.[annotation], undefined);
});
