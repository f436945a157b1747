/**
 * Kills and cuts off a cache, an agent and its shard's API server at random moments (F9, F15).
 * Finds objects that the cache lacks in the end, and objects that are left over. TEST_SEED=n
 * repeats the choices of a run, but not its timing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { AgentProcess } from '../../support/agent-process.js';
import type { KubeClient, KubeObject } from '../../support/kube-client.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { fill } from '../../support/shard-stand-in-objects.js';
import { StrataProcess } from '../../support/strata-process.js';
import { seeded, type Random } from '../../support/crash/random.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const rounds = Number(process.env['TEST_KILLS'] ?? 8);
const convergeMsMax = 40_000;
const replicate = 'internal.kcp.io/replicate';

/** Types whose objects this test changes. `marked`: the agent pushes only annotated objects. */
const types = [
  { resource: 'apiexports.apis.kcp.io', path: 'apis/apis.kcp.io/v1alpha2/apiexports', marked: false },
  { resource: 'workspacetypes.tenancy.kcp.io', path: 'apis/tenancy.kcp.io/v1alpha1/workspacetypes', marked: false },
  { resource: 'clusterroles.rbac.authorization.k8s.io', path: 'apis/rbac.authorization.k8s.io/v1/clusterroles', marked: true },
] as const;

test('whatever is killed on the way, the cache ends up with exactly what the shard holds', async (t) => {
  t.timeout(60_000 + rounds * 15_000);
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  await fill(shard, 'root');
  await using cache = await StrataProcess.start();
  await using agent = await AgentProcess.start(cache, { shard: 'amber', kubeconfig: shard.kubeconfig });
  const client = cache.client();

  for (let round = 1; round <= rounds; round += 1) {
    const churning = new AbortController();
    const churn = change(shard, random, churning.signal);
    await sleep(random.below(400));
    const [what, happen] = mishaps[random.below(mishaps.length)]!;
    await happen({ shard, cache, agent, random });
    await sleep(random.below(200));
    churning.abort();
    await churn;
    if (round % 5 === 0) await converge(t, `round ${round}, ${what}`, { shard, client, agent });
  }

  await converge(t, 'the end', { shard, client, agent });
  t.notRegex(await agent.log(), /"level":"error"/);
});

type Stage = Readonly<{ shard: ShardStandIn; cache: StrataProcess; agent: AgentProcess; random: Random }>;

const mishaps: readonly (readonly [string, (stage: Stage) => Promise<void>])[] = [
  ['the cache is killed', ({ cache }) => cache.restart('SIGKILL')],
  ['the cache is stopped', ({ cache }) => cache.restart('SIGTERM')],
  [
    'the agent is killed',
    async ({ agent, random }) => {
      await agent.kill();
      await sleep(random.below(100));
      agent.resume();
    },
  ],
  ['the shard breaks its connections', async ({ shard }) => shard.cut()],
  [
    'the shard breaks its next answer and has forgotten the past',
    async ({ shard, random }) => {
      shard.store.compact();
      shard.cutNextAfter(random.below(20_000));
      shard.cut();
    },
  ],
  [
    'the shard restarts',
    async ({ shard, random }) => {
      await shard.stop();
      await sleep(random.below(100));
      await shard.restart();
    },
  ],
];

async function change({ store }: ShardStandIn, random: Random, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { resource, marked } = types[random.below(types.length)]!;
    const [cluster, name] = [`c${random.below(3)}`, `n${random.below(12)}`];
    const exists = store
      .all(resource)
      .some(({ metadata }) => metadata.name === name && metadata.annotations?.['kcp.io/cluster'] === cluster);
    if (exists && random.chance(0.3)) store.delete(resource, cluster, name);
    else store.put(resource, cluster, anObject(resource, name, marked && random.chance(0.7) ? { [replicate]: 'test' } : {}, random));
    await sleep(random.below(4));
  }
}

function anObject(resource: string, name: string, annotations: Readonly<Record<string, string>>, random: Random): KubeObject {
  const kinds: Readonly<Record<string, readonly [string, string]>> = {
    'apiexports.apis.kcp.io': ['apis.kcp.io/v1alpha2', 'APIExport'],
    'workspacetypes.tenancy.kcp.io': ['tenancy.kcp.io/v1alpha1', 'WorkspaceType'],
    'clusterroles.rbac.authorization.k8s.io': ['rbac.authorization.k8s.io/v1', 'ClusterRole'],
  };
  const [apiVersion, kind] = kinds[resource] ?? ['', ''];
  return { apiVersion, kind, metadata: { name, annotations }, spec: { text: 'x'.repeat(random.below(3_000)) } } as KubeObject;
}

async function converge(
  t: ExecutionContext,
  when: string,
  { shard, client, agent }: Readonly<{ shard: ShardStandIn; client: KubeClient; agent: AgentProcess }>,
): Promise<void> {
  const deadline = performance.now() + convergeMsMax;
  for (;;) {
    const differences = await difference(shard, client).catch((error: unknown) => [String(error)]);
    if (differences.length === 0) {
      t.pass();
      return;
    }
    if (performance.now() > deadline) {
      t.deepEqual(differences, [], `${when}\n${(await agent.log()).slice(-3_000)}`);
      return;
    }
    await sleep(100);
  }
}

/** Objects that the cache lacks or has left over, each with the shard's resourceVersion. */
async function difference(shard: ShardStandIn, client: KubeClient): Promise<readonly string[]> {
  const differences: string[] = [];
  for (const { resource, path, marked } of types) {
    const synced = ({ metadata }: KubeObject): string =>
      `${resource} ${metadata.annotations?.['kcp.io/cluster']} ${metadata.name} ${metadata.annotations?.['cache.kcp.io/original-resource-version'] ?? metadata.resourceVersion}`;
    const there = shard.store.all(resource).filter(({ metadata }) => !marked || metadata.annotations?.[replicate] !== undefined);
    const here = await client.list(`/services/cache/shards/amber/clusters/*/${path}`);
    const [wanted, held] = [new Set(there.map(synced)), new Set(here.items.map(synced))];
    for (const each of wanted) if (!held.has(each)) differences.push(`missing: ${each}`);
    for (const each of held) if (!wanted.has(each)) differences.push(`left over: ${each}`);
  }
  return differences;
}
