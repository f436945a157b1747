/**
 * The front door beside kcp's own proxy, in a live kcp of two shards. Agents push path entries, and
 * `strata proxy` must answer each request as kcp's proxy does. Then a shard, the cache and the
 * front door are killed, and the front door must answer from its own store.
 *
 * Runs where TEST_KCP_BIN names a folder with kcp's binaries; otherwise it is skipped with a log
 * line.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { KubeClient, type Answer } from '../support/kube-client.js';
import { isForeign, StrataProcess } from '../support/strata-process.js';
import { FrontDoorProcess } from './front-door-process.js';
import { startAgents } from './live-agent.js';
import { LiveKcp, neededBinaries } from './live-kcp.js';
import { LiveWorkspaces } from './live-workspaces.js';

const binaries = process.env['TEST_KCP_BIN'];
const missing = binaries === undefined ? [] : neededBinaries.filter((name) => !existsSync(join(binaries, name)));
const settleMsMax = 30_000;
const config = `children: {'*': {offer: [{types: ['*']}, {types: [logicalclusters.paths.strata, workspaces.paths.strata]}]}}`;

/**
 * Requests sent to both proxies. `TEAM` stands for the name of the logical cluster on the other
 * shard.
 */
const asked: readonly (readonly [method: string, target: string])[] = [
  ['GET', '/clusters/root/api/v1/namespaces/default'],
  ['GET', '/clusters/root:org/api/v1/namespaces/default'],
  ['GET', '/clusters/root:team/api/v1/namespaces/default'],
  ['GET', '/clusters/TEAM/api/v1/namespaces/default'],
  ['GET', '/clusters/root%3Ateam/api/v1/namespaces/default'],
  ['GET', '/clusters/root:team/apis/rbac.authorization.k8s.io/v1'],
  ['GET', '/clusters/root:team/version'],
  ['GET', '/clusters/root:team'],
  ['GET', '/clusters/root:team/'],
  ['GET', '/clusters/root:nope/api/v1/namespaces/default'],
  ['POST', '/clusters/root:nope/api/v1/namespaces'],
  ['GET', '/clusters/root:team:nope/api'],
  ['GET', '/clusters/user:nobody/api'],
  ['GET', '/clusters/zzzzzzzzzzzz/api'],
  ['GET', '/clusters/*/api/v1/configmaps'],
  ['GET', '/clusters/%2A/api/v1/configmaps'],
  ['GET', '/clusters/Root/api'],
  ['GET', '/clusters/root:/api'],
  ['GET', '/clusters/root::team/api'],
  ['GET', '/clusters/system:admin/api'],
  ['GET', '/clusters/root//api'],
  ['GET', '/clusters/root/../root/api'],
  ['GET', '/clusters'],
  ['GET', '/clusters/'],
  ['GET', '/'],
  ['GET', '/api'],
  ['GET', '/version'],
  ['GET', '/healthz'],
  ['GET', '/services/none'],
  ['GET', '/clusters/root:team/api/v1/namespaces?limit=1'],
  ['GET', '/clusters/root:team/api/v1/namespaces/nope'],
  ['OPTIONS', '/clusters/root:team/api/v1/namespaces/default'],
  ['DELETE', '/clusters/root:team/api/v1/namespaces/nope'],
];

test.serial('the front door answers as kcp’s own proxy does, also after the cache, a shard or itself has died', async (t) => {
  if (binaries === undefined || missing.length > 0 || isForeign) {
    const why = binaries === undefined ? 'TEST_KCP_BIN is not set' : `${binaries} lacks ${missing.join(', ')}, or the server is not ours`;
    t.log(`SKIPPED: ${why}`);
    t.pass();
    return;
  }
  t.timeout(15 * 60_000);
  await using kcp = await LiveKcp.start(binaries, [], { restartsShards: true });
  await using cache = await StrataProcess.start({ config });
  const agents = await startAgents(kcp, [cache, cache], { flags: ['--push-paths'] });
  t.teardown(() => Promise.all(agents.map((agent) => agent[Symbol.asyncDispose]())));
  await using door = await FrontDoorProcess.start(cache, {
    mapping: kcp.file('.kcp-front-proxy/mapping.yaml'),
    clientCa: kcp.file('.kcp/client-ca.crt'),
    certificate: kcp.file('.kcp-front-proxy/apiserver.crt'),
    key: kcp.file('.kcp-front-proxy/apiserver.key'),
  });
  const [certificate, key] = await Promise.all(['crt', 'key'].map((end) => readFile(kcp.file(`.kcp/kcp-admin.${end}`), 'utf8')));
  const admin = { certificate: certificate ?? '', key: key ?? '' };
  const [theirs, ours] = [await kcp.client(), new KubeClient({ url: door.url, ...admin })];
  const over2 = new KubeClient({ url: door.url, ...admin, http2: true });
  t.teardown(() => [theirs, ours, over2].forEach((client) => client.close()));

  const viaOurs = new LiveWorkspaces(ours);
  await settled(async () => (await ours.raw('GET', '/clusters/root/api')).status === 200, 'root to be reached');
  await viaOurs.create('org', 'root');
  const team = await viaOurs.create('team', 'shard-1');
  await settled(async () => (await ours.raw('GET', '/clusters/root:nope/api')).status === 403, 'everything to be whole');
  for (const client of [ours, over2]) await assertSame(t, [theirs, client], team.cluster);

  const tookMs: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const made = await new LiveWorkspaces(theirs).create(`late-${round}`, 'shard-1');
    const begunMs = performance.now();
    await settled(async () => (await ours.raw('GET', `/clusters/root:late-${round}/api`)).status === 200, made.path);
    tookMs.push(performance.now() - begunMs);
  }
  t.log(`ready in kcp → reached through the front door: ${tookMs.map((ms) => ms.toFixed(0)).join(', ')} ms`);

  // A watch through the front door must see what is written on the shard.
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const seen: (string | undefined)[] = [];
  const watching = (async () => {
    for await (const { object } of over2.watch('/clusters/root:team/api/v1/namespaces', { signal: stop.signal }))
      seen.push(object.metadata.name);
  })();
  await ours.create('/clusters/root:team/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'seen' } });
  await settled(async () => seen.includes('seen'), 'the watch to see a namespace');
  stop.abort();
  await watching;

  // The cache dies, then the front door, which must start and serve from its own disk.
  await cache.kill();
  t.is((await ours.raw('GET', '/clusters/root:team/api/v1/namespaces/default')).status, 200);
  t.is((await ours.raw('GET', '/clusters/root:unheard/api')).status, 503);
  await door.kill();
  t.log(`started with the cache away: ready after ${(await door.resume()).toFixed(0)} ms`);
  t.is((await ours.raw('GET', '/clusters/root:team/api/v1/namespaces/default')).status, 200);
  await cache.resume();

  // A shard dies and is started again: the front door must reach it again.
  await kcp.killShard(1);
  await settled(
    async () => (await ours.raw('GET', '/clusters/root:team/api/v1/namespaces/default')).status === 200,
    'the shard to be back',
  );
  await settled(async () => (await ours.raw('GET', '/clusters/root:team:nope/api')).status === 403, 'everything to be whole again');
  await assertSame(t, [theirs, ours], team.cluster);
});

async function assertSame(t: ExecutionContext, [theirs, ours]: readonly [KubeClient, KubeClient], team: string): Promise<void> {
  for (const [method, target] of asked) {
    const at = target.replace('TEAM', team);
    const [wanted, given] = [await theirs.raw(method, at), await ours.raw(method, at)];
    t.deepEqual(comparable(given), comparable(wanted), `${method} ${at}`);
  }
}

function comparable({ status, headers, text }: Answer): unknown {
  const { 'content-type': contentType, 'retry-after': retryAfter, location, warning } = headers;
  return { status, contentType, retryAfter, location, warning, text: text.replaceAll(/"resourceVersion":"\d+"/g, '"resourceVersion":"…"') };
}

async function settled(isSo: () => Promise<boolean>, what: string): Promise<void> {
  for (const deadline = performance.now() + settleMsMax; !(await isSo()); await sleep(100))
    if (performance.now() > deadline) throw new Error(`waited ${settleMsMax} ms in vain for ${what}`);
}
