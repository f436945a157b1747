/** Finds an upgrade that is accepted on a connection beyond its caller's quota. */
import { test } from '../../support/test.js';
import { aPath } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { aServer } from '../../support/test-server.js';

test('a connection beyond its caller’s quota gets 429 for an upgrade as for any request, and is asked to close', async (t) => {
  const server = await aServer(t, { flags: { 'connections-max': '10' } });
  const amber = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const clients: RawHttp1[] = [];
  for (let i = 0; i < 6; i += 1) clients.push(await RawHttp1.open({ port: server.port, as: amber }));
  t.teardown(() => clients.forEach((client) => client.destroy()));
  const plain = await clients[5]!.ask('GET', aPath());
  t.is(plain?.status, 429);
  const upgrade = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-protocol': 'strata.v1',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-version': '13',
  };
  clients[4]!.head('GET', '/services/cache/connect', upgrade);
  await clients[4]!.until(() => clients[4]!.answers.length + clients[4]!.interim > 0 || clients[4]!.isClosed, 'an answer');
  t.log(clients[4]!.interim, clients[4]!.answers, clients[4]!.isClosed);
  t.is(clients[4]!.answers[0]?.status, 429);
  t.is(plain?.headers['connection'], 'close');
});
