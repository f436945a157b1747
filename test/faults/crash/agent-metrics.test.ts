/**
 * The metrics and readiness that an agent serves at `--metrics-bind-address`, while its cache, its
 * shard and a second agent come and go. Finds a fault that no metric, alert or `/readyz` shows.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { fires } from '../../support/alerts.js';
import { AgentProcess } from '../../support/agent-process.js';
import { freePorts } from '../../support/free-ports.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { StrataProcess } from '../../support/strata-process.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/test-server.js';

const exportsType = 'apiexports.apis.kcp.io';
const withinMs = 30_000;
const alerts = ['StrataNotReady', 'StrataAgentCacheUnreachable', 'StrataAgentShardUnreachable', 'StrataAgentBehind'];

type Watched = Readonly<{
  agent: AgentProcess;
  ready: () => Promise<string>;
  metric: (name: string) => Promise<number>;
  isFiring: (alert: string) => Promise<boolean>;
}>;

function anExport(name: string, more: object = {}) {
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name }, spec: {}, ...more };
}

async function aCacheAndAShard(
  t: ExecutionContext,
): Promise<Readonly<{ cache: StrataProcess; shard: ShardStandIn; network: TcpProxy; kubeconfig: string }>> {
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  const cache = await StrataProcess.start();
  t.teardown(() => cache[Symbol.asyncDispose]());
  const network = await TcpProxy.start(Number(new URL(shard.url).port));
  t.teardown(() => network.close());
  const kubeconfig = join(cache.folder, 'kubeconfig');
  await writeFile(kubeconfig, (await readFile(shard.kubeconfig, 'utf8')).replaceAll(shard.url, `https://127.0.0.1:${network.port}`));
  return { cache, shard, network, kubeconfig };
}

async function anAgent(t: ExecutionContext, cache: StrataProcess, kubeconfig: string): Promise<Watched> {
  const [port] = await freePorts(1);
  const agent = await AgentProcess.start(cache, { shard: 'amber', kubeconfig, flags: [`--metrics-bind-address=127.0.0.1:${port}`] });
  t.teardown(() => agent[Symbol.asyncDispose]());
  const textOf = async (path: string): Promise<string> => {
    const answered = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
    return (await answered?.text()) ?? 'nobody answers';
  };
  const metric = async (name: string): Promise<number> => {
    const line = (await textOf('/metrics')).split('\n').find((each) => each.startsWith(`${name} `));
    return line === undefined ? Number.NaN : Number(line.slice(name.length));
  };
  return { agent, ready: () => textOf('/readyz'), metric, isFiring: async (alert) => fires(alert, await textOf('/metrics')) };
}

test.serial('an agent counts what it reads and pushes and what is refused, and shows an unreachable cache or shard', async (t) => {
  const { cache, shard, network, kubeconfig } = await aCacheAndAShard(t);
  for (const name of ['one', 'two']) shard.store.put(exportsType, 'root', anExport(name));
  // Every cache refuses it, because kubectl would read it as a list.
  shard.store.put(exportsType, 'root', anExport('a-list', { items: [] }));
  const { agent, ready, metric, isFiring } = await anAgent(t, cache, kubeconfig);

  await until(async () => (await ready()) === 'ok', withinMs);
  await until(async () => (await metric('strata_agent_objects_pushed_total')) === 2, withinMs);
  t.is(await metric('strata_agent_objects_read_total'), 3);
  t.is(await metric('strata_agent_objects_refused_total'), 1);
  await until(async () => (await metric('strata_agent_slices{phase="synced"}')) > 0, withinMs);
  // On a busy machine the syncs of empty types are still under way.
  await until(async () => (await metric('strata_agent_lag_seconds')) === 0, withinMs);
  t.is(await metric('strata_agent_shard_reachable'), 1);
  t.is(await metric('strata_agent_cache_reachable'), 1);
  t.is(await metric('strata_agent_standby'), 0);
  t.is(await metric('strata_agent_reconnects_total'), 0);
  for (const alert of alerts) t.false(await isFiring(alert), alert);
  t.true((await metric('strata_certificate_expires_seconds{use="cache"}')) > Date.now() / 1_000);

  await cache.kill();
  await until(() => isFiring('StrataAgentCacheUnreachable'), withinMs);
  t.true(await isFiring('StrataNotReady'));
  t.is(await ready(), '[+]ping ok\n[+]shard ok\n[-]cache failed: no cache has accepted this agent\n[+]shutdown ok\nreadyz check failed\n');
  await until(async () => (await metric('strata_agent_reconnects_total')) > 0, withinMs);
  shard.store.put(exportsType, 'root', anExport('three'));
  await until(async () => (await metric('strata_agent_lag_seconds')) > 0.5, withinMs);
  await cache.resume();
  await until(async () => (await ready()) === 'ok', withinMs);
  await until(async () => (await metric('strata_agent_objects_pushed_total')) === 3, withinMs);
  await until(async () => (await metric('strata_agent_lag_seconds')) === 0, withinMs);

  network.refuse();
  network.cut();
  await until(() => isFiring('StrataAgentShardUnreachable'), withinMs);
  t.is(await ready(), '[+]ping ok\n[-]shard failed: the shard does not answer\n[+]cache ok\n[+]shutdown ok\nreadyz check failed\n');
  network.heal();
  await until(async () => (await ready()) === 'ok', withinMs);
  shard.store.put(exportsType, 'root', anExport('four'));
  await until(async () => (await metric('strata_agent_objects_pushed_total')) === 4, withinMs);

  t.is(await agent.stop(), 0);
  t.is(await ready(), 'nobody answers');
});

test.serial('the second agent of a Deployment is ready on standby and reports it, but not while its shard is unreachable', async (t) => {
  const { cache, network, kubeconfig } = await aCacheAndAShard(t);
  const first = await anAgent(t, cache, kubeconfig);
  await until(async () => (await first.ready()) === 'ok', withinMs);

  const second = await anAgent(t, cache, kubeconfig);
  await until(async () => (await second.metric('strata_agent_standby')) === 1, withinMs);
  await until(async () => (await second.ready()) === 'ok', withinMs);
  t.is(await second.metric('strata_agent_cache_reachable'), 1);
  t.is(await second.metric('strata_agent_objects_read_total'), 0);

  await first.agent.stop();
  await until(async () => (await second.metric('strata_agent_standby')) === 0, withinMs);
  t.is(await second.ready(), 'ok');

  const third = await anAgent(t, cache, kubeconfig);
  await until(async () => (await third.metric('strata_agent_standby')) === 1, withinMs);
  await until(async () => (await third.ready()) === 'ok', withinMs);
  network.refuse();
  network.cut();
  await until(async () => (await third.metric('strata_agent_shard_reachable')) === 0, withinMs);
  t.regex(await third.ready(), /^\[-\]shard failed: /m, 'a standby that could not take over is not ready');
});

test.serial('an agent ends if it cannot listen on its metrics address, and by default it does not listen', async (t) => {
  const { cache, kubeconfig } = await aCacheAndAShard(t);
  const flags = [`--metrics-bind-address=127.0.0.1:${cache.port}`];
  const agent = await AgentProcess.start(cache, { shard: 'amber', kubeconfig, flags });
  t.teardown(() => agent[Symbol.asyncDispose]());

  await t.throwsAsync(agent.failed(), { message: /ended with 1: .*choose another address with --metrics-bind-address/s });
  const quiet = await AgentProcess.start(cache, { shard: 'amber', kubeconfig });
  t.teardown(() => quiet[Symbol.asyncDispose]());
  await until(async () => (await quiet.log()).includes('"sender.connected"'), withinMs);
  t.notRegex(await quiet.log(), /agent\.metrics\.listening/);
});
