/**
 * Node makes an HTTP/2 session of a connection that was reset as its handshake ended. Finds a
 * server that takes that session for one of the connection before, and ends that connection.
 */
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';

test('a connection that is reset as its handshake ends does not end the connection before it', async (t) => {
  const server = await aServer(t);
  const amber = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  for (let round = 0; round < 40; round += 1) {
    const before = await RawHttp2.open({ port: server.port, as: server.master });
    t.teardown(() => before.destroy());
    await before.until(() => before.hasServerSettings, 'settings');
    const reset = await RawHttp2.open({ port: server.port, as: amber });
    reset.end('reset');
    await sleep(10);
    const { status } = await before.ask('GET', '/livez');
    t.is(status, 200, `round ${round}: ${before.isClosed ? 'its connection is closed' : 'no answer'}`);
    before.destroy();
  }
});
