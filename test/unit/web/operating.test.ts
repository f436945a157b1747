/**
 * What operators ask of a cache: its freshness, and the removal of a shard. The ports are
 * stand-ins.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Health } from '../../../src/diagnostics/health.js';
import type { Log } from '../../../src/diagnostics/log.js';
import { createMetrics } from '../../../src/diagnostics/metrics.js';
import { anonymous, callerAt, type Caller } from '../../../src/domain/caller.js';
import { parseShardName, type ShardName } from '../../../src/domain/shard.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { createApp } from '../../../src/web/app.js';
import type { KubePorts } from '../../../src/web/kube/call.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { listenerOf } from '../../support/an-exchange.js';
import { noPaths } from '../../support/no-paths.js';
import { aStatusReport } from '../../support/status-report.js';

const nobodyAsks = (): Promise<never> => Promise.reject(new Error('nobody asks'));

const amber = parseShardName('amber')!;
const master: Caller = { user: 'admin', groups: ['system:masters'], validUntilMs: 5_000 };
const shard: Caller = { user: 'amber', groups: ['strata'], speaksFor: { kind: 'shard', shard: amber } };
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent };
const limits = { syntheticDelayMs: 0, requestTimeoutMs: 1_000, writeTimeoutMs: 1_000, requestsInFlightMax: 10, accessLog: false };

type Asked = (method: string, path: string) => Promise<{ status: number; body: Record<string, unknown> }>;

/** The application for one caller, with one shard that can be removed once. */
async function anApp(
  t: ExecutionContext,
  caller: Caller,
  { report = aStatusReport(), nowMs = 1_000 }: { report?: StatusReport; nowMs?: number } = {},
): Promise<{ ask: Asked; removed: readonly ShardName[] }> {
  const known = new Set<ShardName>([amber]);
  const removed: ShardName[] = [];
  const app = createApp(
    {
      console: undefined,
      ports: { clock: new ManualClock(nowMs), heavy: { of: () => ({}) }, limits: { bodyBytesMax: 1 } } as unknown as KubePorts,
      freshness: { report: async () => report, ofType: nobodyAsks, ofTypeLately: nobodyAsks },
      shards: {
        remove: async (name) => {
          if (!known.delete(name)) return undefined;
          removed.push(name);
          return { removed: 7 };
        },
      },
      paths: noPaths,
      removals: { confirm: (of, type) => (of === 'amber' && type !== 'none' ? [{ type: 'apiexports.apis.kcp.io', removes: 120 }] : []) },
      caches: { leave: async (name) => (name === 'east' ? { shards: 2 } : undefined) },
      log: silent,
      metrics: createMetrics({ processMetrics: false }),
      publicPaths: [],
      health: new Health(),
      version: '0.1.0',
    },
    limits,
  );
  const server = createServer(listenerOf(app, () => callerAt(caller, nowMs))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const ask: Asked = async (method, path) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  return { ask, removed };
}

test('status is the report as JSON, for every authorized reader', async (t) => {
  for (const caller of [master, shard]) {
    const { ask } = await anApp(t, caller);
    t.deepEqual(await ask('GET', '/services/cache/status'), { status: 200, body: { ...aStatusReport() } });
  }
  t.is((await (await anApp(t, anonymous)).ask('GET', '/services/cache/status')).status, 403);
});

test('the answer to a removal has the number of removed objects, and the shard is unknown from then on', async (t) => {
  const { ask, removed } = await anApp(t, master);

  t.deepEqual(await ask('DELETE', '/services/cache/shards/amber'), { status: 200, body: { shard: 'amber', objectsRemoved: 7 } });
  const again = await ask('DELETE', '/services/cache/shards/amber');

  t.is(again.status, 404);
  t.like(again.body, { reason: 'NotFound', message: 'shard "amber" not found' });
  t.deepEqual(removed, [amber]);
});

test('only masters may remove a shard, and only by its name', async (t) => {
  const ofMaster = await anApp(t, master);
  for (const name of ['BAD', '*', 'a%2Fb', '%zz', 'a'.repeat(62)])
    t.is((await ofMaster.ask('DELETE', `/services/cache/shards/${name}`)).status, 400, name);

  for (const caller of [shard, anonymous]) {
    const { ask, removed } = await anApp(t, caller);
    for (const name of ['amber', 'birch', 'BAD', '%zz']) t.is((await ask('DELETE', `/services/cache/shards/${name}`)).status, 403, name);
    t.deepEqual(removed, []);
  }
  t.deepEqual(ofMaster.removed, []);
});

test('only masters may confirm held removals of a shard, of one type or of all', async (t) => {
  const { ask } = await anApp(t, master);
  const body = { shard: 'amber', confirmed: [{ type: 'apiexports.apis.kcp.io', removes: 120 }] };
  t.deepEqual(await ask('DELETE', '/services/cache/shards/amber/held'), { status: 200, body });
  t.deepEqual(await ask('DELETE', '/services/cache/shards/amber/held/apiexports.apis.kcp.io'), { status: 200, body });
  t.is((await ask('DELETE', '/services/cache/shards/amber/held/none')).status, 404);
  t.is((await ask('DELETE', '/services/cache/shards/birch/held')).status, 404);
  t.is((await ask('DELETE', '/services/cache/shards/BAD/held')).status, 400);

  for (const caller of [shard, anonymous])
    for (const path of ['held', 'held/none'])
      t.is((await (await anApp(t, caller)).ask('DELETE', `/services/cache/shards/amber/${path}`)).status, 403, path);
});

test('only masters may forget a cache, and only by its name', async (t) => {
  const ofMaster = await anApp(t, master);
  t.deepEqual(await ofMaster.ask('DELETE', '/services/cache/caches/east'), { status: 200, body: { cache: 'east', shards: 2 } });
  t.is((await ofMaster.ask('DELETE', '/services/cache/caches/west')).status, 404);
  for (const path of ['caches/BAD', 'caches/%zz', 'caches/a_b'])
    t.is((await ofMaster.ask('DELETE', `/services/cache/${path}`)).status, 400, path);

  for (const caller of [shard, anonymous]) {
    const { ask } = await anApp(t, caller);
    for (const path of ['caches/east', 'caches/west', 'caches/BAD'])
      t.is((await ask('DELETE', `/services/cache/${path}`)).status, 403, path);
  }
});

test('a connection that outlives its certificate is anonymous', async (t) => {
  t.is((await (await anApp(t, master, { nowMs: 5_000 })).ask('GET', '/services/cache/status')).status, 200);

  const { status, body } = await (await anApp(t, master, { nowMs: 5_001 })).ask('GET', '/services/cache/status');

  t.is(status, 403);
  t.regex(String(body['message']), /system:anonymous/);
});
