/**
 * Ends every kind of exchange at a random moment in a random way. Finds buffered bytes, requests,
 * watches and timers that the server does not give back.
 */
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { seeded } from '../../support/crash/random.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer, counting, until } from '../../support/test-server.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 100_000);
const random = seeded(seed);
const any = <T>(...all: readonly T[]): T => all[random.below(all.length)]!;

test('the server gets back all that an exchange held, however the exchange ends', async (t) => {
  t.timeout(60_000);
  t.log(`TEST_SEED=${seed}`);
  const clock = counting();
  const server = await aServer(t, {
    clock,
    flags: {
      'keep-alive-timeout': '2m',
      'write-timeout': '34s',
      'connection-buffered-bytes-max': '1MiB',
      'body-bytes-max': '768KiB',
      'send-timeout': '1s',
      'ping-interval': '1s',
      'pong-timeout': '1s',
      'request-timeout': '2s',
      'headers-timeout': '2s',
    },
  });
  const amber = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  for (let i = 0; i < 8; i += 1)
    await server.client().create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text: 'x'.repeat(200_000) } }));
  const names = ['strata_buffered_bytes', 'strata_requests_in_flight', 'strata_watches_open', 'strata_connections_open'];
  const idle = new Map<string, number>();
  for (const name of names) idle.set(name, await server.metric(name));
  const paths = () =>
    any(
      aPath(),
      `${aPath()}?limit=3`,
      aPath({ name: 'n1' }),
      aPath({ name: 'no' }),
      `${aPath()}?watch=true`,
      `${aPath()}?watch=true&timeoutSeconds=1&labelSelector=a%3Db`,
      `${aPath()}?watch=true&resourceVersion=1`,
      '/livez',
      '/metrics',
      '/services/cache/shards/amber/clusters/acme/apis',
      '/services/cache/connect',
      '/%',
      '*',
    );
  const headers = (): Record<string, string> => ({
    ...any<Record<string, string>>(
      {},
      { 'accept-encoding': 'gzip' },
      { accept: 'application/yaml' },
      { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    ),
  });
  const deadline = performance.now() + 3_000;
  const h1 = async (): Promise<void> => {
    while (performance.now() < deadline) {
      const c = await RawHttp1.open({ port: server.port, as: any(server.master, amber, amber) }).catch(() => undefined);
      if (c === undefined) continue;
      if (any(true, false, false)) c.stopReading();
      for (let n = any(1, 1, 2, 5); n > 0; n -= 1) {
        const method = any('GET', 'GET', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT', 'OPTIONS');
        const body = any('none', 'whole', 'half', 'chunked', 'trickle');
        const h = {
          ...headers(),
          ...any<Record<string, string>>({}, {}, {}, { connection: 'Upgrade', upgrade: any('websocket', 'h2c') }, { connection: 'close' }),
          'content-type': 'application/json',
        };
        if (body === 'none') c.head(method, paths(), h);
        else if (body === 'chunked') {
          c.head(method, paths(), { ...h, 'transfer-encoding': 'chunked' });
          c.send('5\r\n{"a":\r\n');
          if (any(true, false)) c.send('2\r\n1}\r\n0\r\n\r\n');
        } else {
          c.head(method, paths(), { ...h, 'content-length': '600000' });
          c.send('{"x":"'.padEnd(body === 'whole' ? 600_000 : 300_000, 'y'));
        }
        await sleep(any(0, 0, 1, 5));
      }
      await sleep(any(0, 1, 5, 20, 100));
      if (any(true, true, true, false)) c.end(any('fin', 'reset', 'goodbye'));
      else setTimeout(() => c.destroy(), 3000);
    }
  };
  const h2 = async (): Promise<void> => {
    while (performance.now() < deadline) {
      const c = await RawHttp2.open({
        port: server.port,
        as: any(server.master, amber, amber),
        windowBytes: any(0, 1000, 65_535, 10_000_000),
      }).catch(() => undefined);
      if (c === undefined) continue;
      for (let n = any(1, 3, 10, 30); n > 0; n -= 1) {
        const method = any('GET', 'GET', 'GET', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS');
        const ends = any(true, true, false);
        const s = c.request(method, paths(), { headers: { ...headers(), 'content-type': 'application/json' }, ends });
        if (!ends) {
          c.data(s.id, Buffer.alloc(10_000, 'y'), any(true, false));
        }
        if (any(true, false)) setTimeout(() => c.reset(s.id, any(0, 8, 2)), any(0, 1, 5, 30, 100));
        if (any(true, false)) c.windowUpdate(s.id, 1_000_000);
        if (any(true, false, false)) await sleep(any(0, 1, 5));
      }
      await sleep(any(0, 1, 5, 20, 100));
      if (any(true, true, true, false)) c.end(any('fin', 'reset', 'goodbye'));
      else setTimeout(() => c.destroy(), 3000);
    }
  };
  await Promise.all([h1(), h1(), h1(), h2(), h2(), h2()]);
  await sleep(6000);
  const now = new Map<string, number>();
  for (const name of names) now.set(name, await server.metric(name));
  const errors = server.logged.filter(({ level }) => level === 'error');
  t.log(
    errors.length,
    errors.slice(0, 3).map((e) => JSON.stringify(e, (_, v) => (v instanceof Error ? v.stack : v))),
  );
  t.log(JSON.stringify([...now]));
  // The client that reads the metrics may have closed its own connection, or opened another.
  const connections = [now, idle].map((metrics) => metrics.get('strata_connections_open')!) as [number, number];
  t.true(Math.abs(connections[0] - connections[1]) <= 1, `${connections.join(' connections, before: ')}`);
  for (const metrics of [now, idle]) metrics.delete('strata_connections_open');
  t.deepEqual(now, idle);
  const began = performance.now();
  await server.stop();
  t.true(performance.now() - began < 15_000, 'stop');
  await t.notThrowsAsync(
    until(() => clock.pending === 0, 3_000),
    'a timer outlives the server',
  );
});
