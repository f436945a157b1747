/**
 * A server whose disk becomes full, as its writers, informers and operator see it (F4). Finds a
 * refused write that happened, an acknowledged write that is lost, and a read that fails. Also
 * finds a server that does not recover once there is room.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { LongWatch } from '../../support/machines/long-watch.js';
import { fires } from '../../support/alerts.js';
import { fill, filler, smallDisk } from '../../support/store/small-disk.js';
import { KubeError } from '../../support/kube-client.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';
import { validate } from '../../support/validators.js';
import { positionOf, seenList, truthOf } from '../../support/watch-history.js';
import { PushingWriter } from './pushing-writer.js';
import { seeded } from '../../support/crash/random.js';
import { wildcardPath, Writer } from '../../support/crash/writers.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const everything = { covers: () => true };
const fullMs = 3_000;
const againMs = 20;

test('while the disk is full, writes get 503 and reads go on; the server is alive but not ready, and recovers by itself', async (t) => {
  t.timeout(120_000);
  t.log(`TEST_SEED=${seed}`);
  // 128 MiB have room for what writers at full speed write within the test's time.
  const disk = smallDisk(t, 128);
  if (disk === undefined) {
    t.pass();
    return;
  }
  await using server = await StrataProcess.start({ flags: [`--data-directory=${join(disk, 'data')}`, '--bookmark-interval=100ms'] });
  const client = server.client({ http2: true });
  const metrics = async (): Promise<string> => (await client.raw('GET', '/metrics')).text;
  const alerts = ['StrataNotReady', 'StrataStoreFailing', 'StrataDiskFills'];
  const statusOf = async (endpoint: string): Promise<number> => (await client.raw('GET', endpoint)).status;
  const position = positionOf(await client.list(wildcardPath));
  const full = new LongWatch(client, { id: 'full', path: wildcardPath, position, covered: everything });
  full.come();
  t.teardown(() => full.leave());

  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const writers = Array.from(
    { length: 4 },
    (_, index) => new Writer(server.client({ http2: index % 2 === 0 }), seeded(seed + index), { index, places: 10 }),
  );
  const pusher = new PushingWriter(server, seeded(seed - 1), { shard: 'cedar', objects: 10 });
  const refusals: KubeError[] = [];
  const writing = Promise.all([
    ...writers.map(async (writer) => {
      while (!stop.signal.aborted) {
        await writer.run(stop.signal).catch((error: unknown) => {
          if (!(error instanceof KubeError) || error.status !== 503) throw error;
          refusals.push(error);
        });
        await sleep(againMs);
      }
    }),
    (async () => {
      while (!stop.signal.aborted) {
        await pusher.run(stop.signal);
        await sleep(againMs);
      }
    })(),
  ]);
  await sleep(500);
  t.is(await statusOf('/readyz'), 200);
  const before = await metrics();
  for (const alert of alerts) t.false(fires(alert, before), alert);
  t.regex(before, /^strata_disk_size_bytes\{folder="data"\} 134217728$/m);

  fill(disk);
  await until(() => refusals.length > 0, 10_000);
  t.is(refusals[0]?.reason, 'ServiceUnavailable');
  t.is(await statusOf('/readyz'), 500);
  t.is(await statusOf('/livez'), 200, 'a restart would not help');
  const whileItIsFull = await metrics();
  for (const alert of alerts) t.true(fires(alert, whileItIsFull), alert);
  t.regex(whileItIsFull, /^strata_disk_available_bytes\{folder="data"\} 0$/m);
  await client.list(wildcardPath);
  await sleep(fullMs);

  rmSync(join(disk, filler));
  await until(async () => (await statusOf('/readyz')) === 200, 30_000);
  const after = await metrics();
  for (const alert of alerts) t.false(fires(alert, after), alert);
  const whileFull = writers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  await until(() => writers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0) > whileFull, 10_000);
  stop.abort();
  await writing;

  const list = await client.list(wildcardPath);
  await until(() => full.position >= positionOf(list), 10_000);
  const watch = full.take(full.position);
  const truth = truthOf(watch.events);
  const lists = [seenList('list', list, everything)];
  const isPushed = ({ key }: { key: string }): boolean => key.startsWith('cedar|');
  const ofHttp = { truth: truth.filter((each) => !isPushed(each)), acknowledged: writers.flatMap(({ acknowledged }) => acknowledged) };
  t.deepEqual(validate({ truth, watches: [watch], lists }), []);
  t.deepEqual(validate({ ...ofHttp, watches: [], lists: [] }, ['G1']), [], 'acknowledged writes happened, and refused ones did not');
  const { acknowledged } = pusher;
  t.deepEqual(validate({ truth: truth.filter(isPushed), acknowledged, unansweredMax: Infinity, watches: [], lists: [] }, ['G1']), []);
  t.log(`${refusals.length} refusals, ${ofHttp.acknowledged.length} writes and ${acknowledged.length} pushes acknowledged`);
});
