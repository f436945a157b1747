/**
 * For each of two shards of an unmodified kcp, two agents push into one cache, and two more into
 * the leaves of a tree. First the test measures how late a write arrives after the leading agent is
 * killed. Then, for some minutes of kcp's own tests, it kills agents, caches and shards at random.
 * At the end the one cache and the tree's parent must hold what kcp's controllers wrote to a third
 * cache, including instances of ClusterCachedResources.
 *
 * Runs where TEST_KCP_BIN names a folder with kcp's binaries, for TEST_KILL_MINUTES (10) and some
 * five more; otherwise it is skipped with a log line. TEST_SEED=n repeats the random choices.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { seeded, type Random } from '../support/crash/random.js';
import type { AgentProcess } from '../support/agent-process.js';
import type { KubeClient } from '../support/kube-client.js';
import { isForeign, StrataProcess } from '../support/strata-process.js';
import { differencesBetween, objectsOf, startAgents } from './live-agent.js';
import { LiveKcp, neededBinaries } from './live-kcp.js';
import { LiveTree } from './live-tree.js';

const minutes = Number(process.env['TEST_KILL_MINUTES'] ?? 10);
const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
/** A shard that was killed needs a while until its controllers write again. */
const convergeMsMax = 240_000;
/**
 * From the kill of the leading agent until the cache has an object written afterwards. Includes the
 * standby's takeover.
 */
const takeOverMsMax = 1_500;
const standbyMs = 5_000;
const [pauseMsMin, pauseMsMax] = [1_000, 6_000] as const;

const binaries = process.env['TEST_KCP_BIN'];
const missing = binaries === undefined ? [] : neededBinaries.filter((name) => !existsSync(join(binaries, name)));

const tests = [
  { program: 'e2e-reconciler-cache.test', pattern: '^TestReplication$' },
  { program: 'e2e-cache.test', pattern: '^TestCacheServerReplicationAPI$' },
] as const;

type Victim = Readonly<{ name: string; kill: () => Promise<void> }>;

test.serial('pairs of agents push all that kcp’s controllers write, whichever agents, caches and shards are killed', async (t) => {
  if (binaries === undefined || missing.length > 0 || isForeign) {
    const why = binaries === undefined ? 'TEST_KCP_BIN is not set' : `${binaries} lacks ${missing.join(', ')}, or the server is not ours`;
    t.log(`SKIPPED: ${why}`);
    t.pass();
    return;
  }
  t.timeout((minutes + 20) * 60_000);
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  await using kcp = await LiveKcp.start(binaries, [], { restartsShards: true });
  await using one = await StrataProcess.start();
  await using tree = await LiveTree.start();
  const [east, west] = tree.leaves as readonly [StrataProcess, StrataProcess];
  const agents = [...(await startAgents(kcp, [one, one], { each: 2 })), ...(await startAgents(kcp, [east, west], { each: 2 }))];
  t.teardown(() => Promise.all(agents.map((agent) => agent[Symbol.asyncDispose]())));
  const clients = { written: await kcp.cacheClient(), one: one.client(), top: tree.parent.client(), kcp: await kcp.client() };
  t.teardown(() => Object.values(clients).forEach((client) => client.close()));
  await assertSame(t, clients, 'before anything was killed');
  await assertTakesOver(t, clients, agents.slice(0, 2) as [AgentProcess, AgentProcess]);

  const victims: readonly Victim[] = [
    ...agents.map((agent, i) => ({ name: `agent ${i}`, kill: () => killed(agent) })),
    ...[one, east, west, tree.parent].map((cache, i) => ({ name: `cache ${i}`, kill: () => cache.restart('SIGKILL') })),
  ];
  const kills = new Map<string, number>();
  const kill = async ({ name, kill: end }: Victim): Promise<void> => {
    kills.set(name, (kills.get(name) ?? 0) + 1);
    await end();
  };
  const untilMs = performance.now() + minutes * 60_000;
  for (let round = 0; performance.now() < untilMs; round += 1) {
    const over = new AbortController();
    const killing = killAtRandom({ victims, random, kill, signal: over.signal });
    const { program, pattern } = tests[round % 2]!;
    const { failed, passed, output } = await kcp.test(program, pattern);
    over.abort();
    await killing;
    t.deepEqual(failed, [], output.slice(-8_000));
    t.true(passed.length > 0);
    await assertSame(t, clients, `after round ${round}`);
    // The shard and the controllers' cache are killed between kcp's tests, because these tolerate
    // no failed request.
    await kill({ name: `shard ${round % 2}`, kill: () => kcp.killShard(round % 2) });
    await kill({ name: 'cache of the controllers', kill: () => kcp.killCache() });
    await assertSame(t, clients, `after the death of a shard, and of the controllers’ cache, in round ${round}`);
  }
  t.log(
    [...kills]
      .map(([name, count]) => `${name}: ${count}`)
      .toSorted()
      .join(', '),
  );
  t.log(await requestsByUserAgent(kcp));
  for (const { pid } of agents) t.notThrows(() => process.kill(pid, 0), 'no agent has ended by itself');
});

/**
 * Kills one of two agents of the root shard, four times in turn. An object that the shard gets
 * afterwards must reach the cache in time, whether the killed agent led or stood by.
 */
async function assertTakesOver(t: ExecutionContext, { one, kcp }: Clients, agents: readonly [AgentProcess, AgentProcess]): Promise<void> {
  const exports = 'apis/apis.kcp.io/v1alpha2/apiexports';
  const tookMs: number[] = [];
  for (const [round, agent] of [...agents, ...agents].entries()) {
    const name = `behind-a-leader-${round}`;
    await agent.kill();
    const startedMs = performance.now();
    await kcp.create(`/clusters/root/${exports}`, { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name }, spec: {} });
    const writtenMs = performance.now() - startedMs;
    for (;;) {
      const { items } = await one.list(`/services/cache/shards/root/clusters/root/${exports}`);
      if (items.some(({ metadata }) => metadata.name === name)) break;
      if (performance.now() - startedMs > convergeMsMax) return t.fail(`${name} never came`);
      await sleep(10);
    }
    tookMs.push(performance.now() - startedMs);
    t.log(`${name}: written ${writtenMs.toFixed(0)} ms, in the cache ${tookMs.at(-1)!.toFixed(0)} ms after the kill`);
    agent.resume();
    await sleep(standbyMs);
  }
  t.true(Math.max(...tookMs) < takeOverMsMax, `${tookMs.join(', ')} ms`);
}

async function killed(agent: AgentProcess): Promise<void> {
  await agent.kill();
  agent.resume();
}

async function killAtRandom({
  victims,
  random,
  kill,
  signal,
}: Readonly<{ victims: readonly Victim[]; random: Random; kill: (victim: Victim) => Promise<void>; signal: AbortSignal }>): Promise<void> {
  while (!signal.aborted) {
    await kill(victims[random.below(victims.length)]!);
    await sleep(pauseMsMin + random.below(pauseMsMax - pauseMsMin), undefined, { signal }).catch(() => {});
  }
}

type Clients = Readonly<{ written: KubeClient; one: KubeClient; top: KubeClient; kcp: KubeClient }>;

async function assertSame(t: ExecutionContext, { written, one, top, kcp }: Clients, when: string): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    const differences = await Promise.all([one, top].map((cache) => differencesBetween(written, cache, kcp))).catch((error: unknown) => [
      [String(error)],
    ]);
    if (differences.flat().length === 0) break;
    if (performance.now() - startedMs > convergeMsMax) {
      t.deepEqual(differences.flat(), [], when);
      return;
    }
    await sleep(500);
  }
  const tookMs = performance.now() - startedMs;
  t.log(`${when}: all hold the same ${await objectsOf(one)} objects, ${(tookMs / 1_000).toFixed(1)} s after`);
}

/** Counts lines of the shards' audit logs. A watch has two: one at its begin, one at its end. */
async function requestsByUserAgent(kcp: LiveKcp): Promise<string> {
  const counts = new Map<string, number>();
  for (const shard of [0, 1]) {
    const log = await readFile(kcp.file(`logs/audit-${shard}.log`), 'utf8');
    for (const [, agent = ''] of log.matchAll(/"userAgent":"([^"]*)"/g)) {
      const name = agent.split(' ')[0]!.split('/')[0]!;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const most = [...counts].toSorted(([, a], [, b]) => b - a);
  return `lines of the shards' audit logs: ${most.map(([name, count]) => `${name} ${count}`).join(', ')}`;
}
