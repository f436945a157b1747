/** The metrics at the front door that kcp's dashboards query, and who may read them. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { anInstallation, type Installation } from '../../support/proxy/a-front-door.js';
import { portOf } from '../../support/proxy/serving.js';
import { TestAuthority, type Subject } from '../../support/test-authority.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { moveBirch } from '../../support/proxy/raw-backend.js';
import { connected } from '../../support/proxy/raw-requests.js';

async function metricsOf(door: TestServer): Promise<string> {
  return (await door.client().raw('GET', '/metrics')).text;
}

async function valueOf(door: TestServer, series: string): Promise<number> {
  const line = (await metricsOf(door)).split('\n').find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length) ?? 0);
}

function namesOfKcp(text: string): readonly string[] {
  return text.split('\n').filter((line) => /^(?:proxy_|kcp_)/.test(line));
}

for (const http2 of [false, true]) {
  test(`over HTTP/${http2 ? 2 : 1}, requests are timed by method and code, and bodies counted by shard, as kcp's front proxy does`, async (t) => {
    const { door } = await anInstallation(t, { birchSpeaks: http2 ? 2 : 1 });
    const client = door.client({ http2 });
    const before = await metricsOf(door);
    t.regex(before, /^kcp_indexed_logicalclusters\{shard="root"\} 3$/m);
    t.notRegex(before, /^kcp_backend_/m);

    await client.raw('POST', '/clusters/root:org:team/echo', { body: { a: 'x'.repeat(1_000) } });
    const big = await client.raw('GET', '/clusters/root:org:team/big?bytes=300000');
    await client.raw('GET', '/clusters/root:org/big?bytes=11');
    await client.raw('HEAD', '/clusters/root:org/echo');
    await client.raw('GET', '/services/echo/big?bytes=5');

    t.is(big.text.length, 300_000);
    await until(async () => (await valueOf(door, 'proxy_request_duration_seconds_count{method="head",code="200"}')) === 1);
    t.is(await valueOf(door, 'kcp_backend_rq_body_bytes{shard="birch"}'), JSON.stringify({ a: 'x'.repeat(1_000) }).length);
    t.true((await valueOf(door, 'kcp_backend_rs_body_bytes{shard="birch"}')) > 300_000);
    t.is(await valueOf(door, 'kcp_backend_rs_body_bytes{shard="root"}'), 11);
    t.is(await valueOf(door, 'proxy_request_duration_seconds_count{method="post",code="200"}'), 1);
    t.is(await valueOf(door, 'proxy_request_duration_seconds_count{method="get",code="200"}'), 3, 'health and metrics are not counted');
    const bounds = [
      ...(await metricsOf(door)).matchAll(/^proxy_request_duration_seconds_bucket\{le="([^"]+)",method="post",code="200"\}/gm),
    ];
    t.is(bounds.map(([, bound]) => bound).join(' '), '0.05 0.1 0.2 0.4 0.6 0.8 1 1.25 1.5 2 3 4 5 6 8 10 15 20 30 45 60 +Inf');
  });
}

test('a watch and a websocket are observed when they end, and a watch is counted while it is open', async (t) => {
  const { door, birch } = await anInstallation(t);
  const series = 'proxy_request_duration_seconds_count{method="get",code="200"}';
  const before = await valueOf(door, series);

  const socket = connectTls({
    port: Number(new URL(door.url).port),
    host: '127.0.0.1',
    cert: door.master.certificate,
    key: door.master.key,
    rejectUnauthorized: false,
  });
  socket.on('error', () => {});
  socket.write('GET /clusters/root:org:team/watch?watch=1 HTTP/1.1\r\nHost: door\r\n\r\n');
  await once(socket, 'data');
  const begun = await valueOf(door, 'kcp_backend_rs_body_bytes{shard="birch"}');
  t.true(begun > 0);
  birch.write('more');
  await until(async () => (await valueOf(door, 'kcp_backend_rs_body_bytes{shard="birch"}')) > begun);
  t.is(await valueOf(door, series), before);
  socket.destroy();
  await until(async () => (await valueOf(door, series)) === before + 1);

  const upgraded = connected(door);
  upgraded.write('GET /clusters/root:org/exec HTTP/1.1\r\nHost: door\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  await once(upgraded, 'data');
  const ofUpgrades = 'proxy_request_duration_seconds_count{method="get",code="101"}';
  t.is(await valueOf(door, ofUpgrades), 0);
  upgraded.destroy();
  await until(async () => (await valueOf(door, ofUpgrades)) === 1);
});

test('whatever clients and backends send, the number of series depends only on methods, codes and the shards of the installation', async (t) => {
  const { door } = await anInstallation(t, { birchSpeaks: 1 });
  const client = door.client();
  for (const method of ['PURGE', 'PROPFIND', 'MKCOL', 'M-SEARCH', 'REPORT']) await client.raw(method, '/clusters/root:org/echo');
  for (const status of [251, 299, 350, 444, 477, 555, 599]) await client.raw('GET', `/clusters/team1/odd?status=${status}`);
  await until(async () => (await valueOf(door, 'proxy_request_duration_seconds_count{method="get",code="unknown"}')) === 7);
  t.is(await valueOf(door, 'proxy_request_duration_seconds_count{method="unknown",code="200"}'), 5);
  await client.raw('GET', '/clusters/nowhere');
  await until(async () => (await valueOf(door, 'proxy_request_duration_seconds_count{method="get",code="403"}')) > 0);

  const before = namesOfKcp(await metricsOf(door)).length;
  for (let i = 0; i < 50; i += 1) await client.raw('GET', `/clusters/root:org:w${i}/echo`);
  await client.raw('LOCK', '/clusters/root:org/echo');
  t.is(namesOfKcp(await metricsOf(door)).length, before);
  const labels = namesOfKcp(await metricsOf(door)).flatMap((line) =>
    [...line.matchAll(/(?:method|code|shard)="([^"]*)"/g)].map(([, label]) => label),
  );
  // 503 was the answer while the front door waited for entries.
  t.deepEqual([...new Set([...labels, '503'])].toSorted(), ['200', '403', '503', 'birch', 'get', 'root', 'unknown']);
});

/** A server that takes birch's place. */
async function inPlaceOfBirch(
  t: ExecutionContext,
  { pushers, door }: Installation,
  shown: TestAuthority,
  subject: Partial<Subject>,
): Promise<void> {
  const { certificate: cert, key } = shown.issue({ user: 'backend', groups: [], hosts: ['127.0.0.1'], usages: ['server'], ...subject });
  const server = createTlsServer({ cert, key }, (_, response) => void response.end());
  await moveBirch({ pushers, door } as Installation, await portOf(t, server));
}

test("a failed TLS handshake with a backend is counted by its shard and by kcp's kinds of errors", async (t) => {
  const installation = await anInstallation(t);
  const { door } = installation;
  const folder = await mkdtemp(join(tmpdir(), 'strata-foreign-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const foreign = new TestAuthority(folder);
  const series = (type: string): string => `kcp_listener_tls_connection_error{shard="birch",error_type="${type}"}`;
  const countedOnce = async (type: string): Promise<void> => {
    await until(async () => {
      await door.client().raw('GET', '/clusters/team1/echo');
      return (await valueOf(door, series(type))) > 0;
    });
    const before = await valueOf(door, series(type));
    t.is((await door.client().raw('GET', '/clusters/team1/echo')).status, 503, type);
    t.is(await valueOf(door, series(type)), before + 1, type);
  };

  await inPlaceOfBirch(t, installation, foreign, {});
  await countedOnce('unknown_ca');
  await inPlaceOfBirch(t, installation, door.authority, { hosts: ['elsewhere.example'] });
  await countedOnce('hostname_mismatch');
  await inPlaceOfBirch(t, installation, door.authority, { validityDays: -1 });
  await countedOnce('expired_cert');
  const plain = createServer((_, response) => void response.end());
  await moveBirch(installation, await portOf(t, plain));
  await countedOnce('cipher_mismatch');

  const total = namesOfKcp(await metricsOf(door)).filter((line) => line.startsWith('kcp_listener_tls')).length;
  t.is(total, 4);
  await moveBirch(installation, 1);
  await door.client().raw('GET', '/clusters/team1/echo');
  t.is(
    namesOfKcp(await metricsOf(door)).filter((line) => line.startsWith('kcp_listener_tls')).length,
    total,
    'a refused connection is no TLS error',
  );
});

test("metrics are for kcp's metrics group, and for everybody if so configured, at the front door and at the cache", async (t) => {
  const { door, cache } = await anInstallation(t);
  for (const server of [door, cache]) {
    const reader = server.authority.issue({ user: 'prometheus', groups: ['system:kcp:metrics-reader'] });
    const status = async (path: string): Promise<number> => (await server.client({ as: reader }).raw('GET', path)).status;
    t.is(await status('/metrics'), 200);
    t.not(await status('/services/cache/status'), 200);
    t.not(await status('/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports'), 200);
    t.not((await server.client({ as: reader }).raw('DELETE', '/metrics')).status, 200);
    t.not((await server.client({ as: null }).raw('GET', '/metrics')).status, 200);
  }

  const flags = { 'authorization-always-allow-paths': '/metrics' };
  const openCache = await aServer(t, { flags });
  const stranger = openCache.client({ as: null });
  t.regex((await stranger.raw('GET', '/metrics')).text, /^strata_ready 1$/m);
  t.is((await stranger.raw('GET', '/services/cache/status')).status, 403);
  t.is((await stranger.raw('DELETE', '/metrics')).status, 403);
  const open = await anInstallation(t, { flags });
  t.is((await open.door.client({ as: null }).raw('GET', '/metrics')).status, 200);
  for (const method of ['POST', 'PUT', 'DELETE']) t.is((await open.door.client({ as: null }).raw(method, '/metrics')).status, 401, method);
  const nobody = open.door.authority.issue({ user: 'nobody', groups: [] });
  t.is((await open.door.client({ as: nobody }).raw('GET', '/metrics')).status, 200);
  t.is((await open.door.client({ as: nobody }).raw('GET', '/metrics', { headers: { 'impersonate-user': 'a' } })).status, 403);
});
