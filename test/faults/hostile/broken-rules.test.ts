/**
 * Finds a connection or a watch that stays when a client that broke the rules of HTTP/2 has gone.
 */
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath } from '../../support/objects.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';

for (const kind of ['data on stream 0', 'too long'])
  test(`after a bad HTTP/2 frame (${kind}), the server keeps nothing once the client has gone`, async (t) => {
    const server = await aServer(t, { flags: { 'shutdown-grace': '1s', 'ping-interval': '300ms', 'pong-timeout': '300ms' } });
    const amber = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
    const before = await server.metric('strata_connections_open');
    for (let i = 0; i < 20; i += 1) {
      const client = await RawHttp2.open({ port: server.port, as: amber });
      await client.until(() => client.hasServerSettings, 'settings');
      client.request('GET', `${aPath()}?watch=true`);
      if (kind === 'too long') client.frame(0, 0, 1, Buffer.alloc(100_000));
      else client.frame(0, 0, 0, Buffer.alloc(10));
      await sleep(20);
      client.destroy();
    }
    await sleep(3000);
    t.true((await server.metric('strata_connections_open')) <= before + 5, 'connections');
    t.is(await server.metric('strata_watches_open'), 0);
  });
