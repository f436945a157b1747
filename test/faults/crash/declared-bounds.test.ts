/**
 * A real agent, and more ClusterCachedResources in one logical cluster than a cache serves. Finds
 * an agent that asks its shard again and again for types that are not served. Also finds a waiting
 * type that the agent does not push when a served one goes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { AgentProcess } from '../../support/agent-process.js';
import { aClusterCachedResource } from '../../support/objects.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';

/** Types that a cache serves of one logical cluster (`declaration-quotas.ts`). */
const servedMax = 1_000;
const types = servedMax + 3;
/** Longer than the minute after which Kubernetes clients retry at the latest. */
const restMs = 70_000;
/** The cache needs some 5 s to serve all types, and several times that beside other tests. */
const openedMsMax = 60_000;
/** One poll of all types costs the cache as much as it needs to open some of them. */
const lookEveryMs = 1_000;

test('an agent does not poll its shard for types that the cache has no room for, and pushes one once there is room', async (t) => {
  t.timeout(restMs + 2 * openedMsMax + 30_000);
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  shard.store.serve({ group: 'machines.svm.io', version: 'v1', resource: 'instances', kind: 'Instance', identity: '' });
  shard.store.put('instances.machines.svm.io', 'c0', { metadata: { name: 'one' } });
  for (let i = 0; i < types; i += 1) {
    const name = `of-${String(i).padStart(4, '0')}`;
    shard.store.put('clustercachedresources.cache.kcp.io', 'c0', { metadata: {}, ...aClusterCachedResource(`hash-${i}`, { name }) });
  }
  await using cache = await StrataProcess.start();
  await using agent = await AgentProcess.start(cache, { shard: 'amber', kubeconfig: shard.kubeconfig });
  // Over HTTP/1.1 one poll would open a thousand connections.
  const client = cache.client({ http2: true });
  const served = async (): Promise<readonly string[]> => {
    await sleep(lookEveryMs);
    const answers = await Promise.all(
      Array.from({ length: types }, async (_, i) => {
        const { status, text } = await client.raw('GET', `/services/cache/shards/*/clusters/*/apis/machines.svm.io/v1/instances:hash-${i}`);
        return status === 200 && (JSON.parse(text) as { items: readonly unknown[] }).items.length === 1 ? [`hash-${i}`] : [];
      }),
    );
    return answers.flat();
  };
  const beganMs = performance.now();
  await until(async () => (await served()).length === servedMax, openedMsMax);
  t.log(`served after ${((performance.now() - beganMs) / 1000).toFixed(1)} s`);
  const before = await served();
  const asked = (): number => shard.requests.filter((path) => path.includes('/instances')).length;

  const first = asked();
  await sleep(restMs);

  t.true(first <= 3 * types, `${first} requests`);
  t.true(asked() - first <= 10, `${asked() - first} requests at rest`);
  t.true(shard.openConnections <= 12, `${shard.openConnections} connections`);
  const [gone] = before;
  shard.store.delete('clustercachedresources.cache.kcp.io', 'c0', `of-${gone?.slice('hash-'.length).padStart(4, '0')}`);
  const goneMs = performance.now();
  await until(async () => !(await served()).includes(gone!) && (await served()).length === servedMax, openedMsMax);
  t.log(`the one that waited after ${((performance.now() - goneMs) / 1000).toFixed(1)} s`);
  t.notRegex(await agent.log(), /"level":"error"/);
});
