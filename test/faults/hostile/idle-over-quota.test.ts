/**
 * Finds idle connections beyond a caller's quota that the server keeps, so that they keep others
 * out.
 */
import { test } from '../../support/test.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';

test('a shard that opens as many idle connections as it can leaves room for masters and health checks', async (t) => {
  const server = await aServer(t, { flags: { 'connections-max': '60' } });
  const amber = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  await server.client().create(aPath(), anApiExport({ name: 'one' }));
  const fresh = server.client({ as: server.master, http2: true });
  const opened = await Promise.allSettled(Array.from({ length: 80 }, () => RawHttp2.open({ port: server.port, as: amber })));
  const clients = opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  t.teardown(() => clients.forEach((client) => client.destroy()));
  const master = await fresh.raw('GET', aPath({ name: 'one' }), { timeoutMs: 3000 }).catch((error: unknown) => ({ status: String(error) }));
  const health = await server
    .client({ as: null, http2: true })
    .raw('GET', '/livez', { timeoutMs: 3000 })
    .catch((error: unknown) => ({ status: String(error) }));
  t.is(master.status, 200, 'a master');
  t.is(health.status, 200, 'health');
});
