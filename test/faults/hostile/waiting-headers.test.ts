/** Requests that wait for their turn count as buffered bytes of their caller: a few bytes of compressed headers become tens of kilobytes of memory each. */
import { test } from '../../support/test.js';
import { aPath } from '../../support/objects.js';
import { encodeFields } from '../../support/hpack.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer, until } from '../../support/test-server.js';

const connections = 3;
const streams = 90;

const request = encodeFields([
  [':method', 'GET'],
  [':scheme', 'https'],
  [':authority', 'localhost'],
  [':path', aPath()],
]);
/** A header of 400 bytes that the server is to remember (RFC 7541, 6.2.1), and that one again, a byte each. */
const remembered = Buffer.concat([Buffer.of(0x40, 1), Buffer.from('x'), Buffer.of(0x7f, 0x91, 0x02), Buffer.alloc(400, 'v')]);
const again = Buffer.alloc(110, 0xbe);

test('connections whose waiting requests have more headers than their caller may have in memory are ended, and others are served', async (t) => {
  const server = await aServer(t, { flags: { 'buffered-bytes-max': '8MiB', 'connection-buffered-bytes-max': '8MiB' } });
  const reader = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const clients = await Promise.all(Array.from({ length: connections }, () => RawHttp2.open({ port: server.port, as: reader })));
  t.teardown(() => clients.forEach((client) => client.destroy()));
  for (const client of clients) await client.until(() => client.hasServerSettings, 'settings');
  const other = server.client();
  const before = await server.metric('strata_buffered_bytes');

  // 11 kB each, which are 4 MB: more than one caller's share, which is 3.2.
  for (const client of clients) {
    client.socket.cork();
    for (let i = 0; i < streams; i += 1)
      client.headers(client.begin().id, Buffer.concat(i === 0 ? [request, remembered, again] : [request, again]), { ends: true });
    client.socket.uncork();
  }

  await until(() => clients.some(({ isClosed }) => isClosed));
  t.is((await other.raw('GET', '/livez')).status, 200);
  clients.forEach((client) => client.destroy());
  await until(async () => (await server.metric('strata_buffered_bytes')) === before);
});
