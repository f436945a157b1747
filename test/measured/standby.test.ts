/**
 * Two agents of one shard, as a Deployment with two replicas runs them. When the test kills or
 * pauses the holder, the other must take over and push what is written on the shard meanwhile. Only
 * the paused agent is fenced, and an agent whose network comes back must not overwrite what its
 * successor pushed.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import type { StatusReport } from '../../src/domain/status.js';
import { AgentProcess } from '../support/agent-process.js';
import { freeze, thaw } from '../support/freeze.js';
import { ShardStandIn } from '../support/shard-stand-in.js';
import { fill } from '../support/shard-stand-in-objects.js';
import { StrataProcess } from '../support/strata-process.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/test-server.js';

const exportsPath = '/services/cache/shards/amber/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';
const takeOverMsMax = 1_500;
const pingMs = 250;

async function amberAt(cache: StrataProcess): Promise<StatusReport['shards'][number] | undefined> {
  const { shards } = JSON.parse((await cache.client().raw('GET', '/services/cache/status')).text) as StatusReport;
  return shards.find(({ shard }) => shard === 'amber');
}

async function twoAgents(t: ExecutionContext, flags: readonly string[] = []) {
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  await fill(shard, 'root');
  const cache = await StrataProcess.start({ flags });
  t.teardown(() => cache[Symbol.asyncDispose]());
  const agents = [];
  for (const standbys of [0, 1]) {
    const agent = await AgentProcess.start(cache, { shard: 'amber', kubeconfig: shard.kubeconfig });
    t.teardown(() => agent[Symbol.asyncDispose]());
    agents.push(agent);
    await until(
      async () => (await amberAt(cache))?.standbys === standbys && (await amberAt(cache))?.connection.kind === 'connected',
      20_000,
    );
  }
  const [first, second] = agents as [AgentProcess, AgentProcess];
  /** Writes an object on the shard; resolves with the milliseconds until the cache has it. */
  const writeMs = async (name: string): Promise<number> => {
    const startedMs = performance.now();
    shard.store.put('apiexports.apis.kcp.io', 'c1', { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name } });
    await until(async () => (await cache.client().list(exportsPath)).items.some(({ metadata }) => metadata.name === name), 20_000);
    return performance.now() - startedMs;
  };
  return { cache, first, second, writeMs };
}

test.serial('when an agent is killed, its standby takes over and the shard’s writes still arrive in time', async (t) => {
  const { cache, first, second, writeMs } = await twoAgents(t);
  await writeMs('before');

  for (const [round, leader] of [first, second, first].entries()) {
    await leader.kill();
    const ms = await writeMs(`round-${round}`);
    t.log(`written ${Math.round(ms)} ms after the kill`);
    t.true(ms < takeOverMsMax);
    leader.resume();
    await until(async () => (await amberAt(cache))?.standbys === 1, 20_000);
  }

  t.notRegex(await first.log(), /fenced/);
});

test.serial('a paused agent loses its shard to its standby, and is fenced when it goes on', async (t) => {
  const { cache, first, second, writeMs } = await twoAgents(t, [`--ping-interval=${pingMs}ms`, `--pong-timeout=${pingMs}ms`]);

  await freeze(first.pid);
  const ms = await writeMs('while-it-stands-still');
  t.log(`written ${Math.round(ms)} ms after the pause began`);
  t.true(ms < 3 * takeOverMsMax);
  thaw(first.pid);

  await t.throwsAsync(first.failed(), { message: /ended with 1/ });
  await sleep(500);
  t.is((await amberAt(cache))?.connection.kind, 'connected');
  t.true((await writeMs('behind-it')) < takeOverMsMax);
  t.is(await second.stop(), 0);
});

test.serial('an agent whose network comes back at another address of the cache does not overwrite its successor’s objects', async (t) => {
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  await fill(shard, 'root');
  const cache = await StrataProcess.start({ flags: [`--ping-interval=${pingMs}ms`, `--pong-timeout=${pingMs}ms`] });
  t.teardown(() => cache[Symbol.asyncDispose]());
  const [toShard, ...toCache] = await Promise.all(
    [Number(new URL(shard.url).port), cache.port, cache.port].map((port) => TcpProxy.start(port)),
  );
  const networks = [toShard!, ...toCache];
  t.teardown(() => Promise.all(networks.map((network) => network.close())));
  const kubeconfig = join(cache.folder, 'kubeconfig-of-the-first');
  await writeFile(kubeconfig, (await readFile(shard.kubeconfig, 'utf8')).replaceAll(shard.url, `https://127.0.0.1:${toShard!.port}`));
  const urls = toCache.map(({ port }) => `https://localhost:${port}`);
  const first = await AgentProcess.start(cache, { shard: 'amber', kubeconfig, urls });
  t.teardown(() => first[Symbol.asyncDispose]());
  const written = async (name: string, spec: string): Promise<void> => {
    const metadata = { name, labels: { spec } };
    shard.store.put('apiexports.apis.kcp.io', 'c1', { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata });
    await until(async () => (await specOf(name)) === spec, 20_000);
  };
  const specOf = async (name: string): Promise<string | undefined> => {
    const { items } = await cache.client().list(exportsPath);
    return (items.find(({ metadata }) => metadata.name === name)?.metadata['labels'] as { spec?: string } | undefined)?.spec;
  };
  await written('changed', 'old');

  for (const network of networks) network.blackhole();
  const second = await AgentProcess.start(cache, { shard: 'amber', kubeconfig: shard.kubeconfig });
  t.teardown(() => second[Symbol.asyncDispose]());
  await written('changed', 'new');
  const [, formerAddress, otherAddress] = networks;
  formerAddress!.refuse();
  formerAddress!.cut();
  const connections = otherAddress!.connections;
  otherAddress!.heal();
  await until(() => otherAddress!.connections > connections, 60_000);
  await sleep(2_000);

  t.is(await specOf('changed'), 'new');
  await written('changed', 'newer');
  t.is(await second.stop(), 0, 'the successor was not fenced');
});
