/**
 * A few bytes of compressed headers become tens of kilobytes of memory. Finds waiting requests
 * whose headers do not count for their caller.
 */
import { test } from '../../support/test.js';
import { aPath } from '../../support/objects.js';
import { freeze, thaw } from '../../support/freeze.js';
import { encodeFields } from '../../support/hpack.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';

const connections = 12;
const streams = 90;

const request = encodeFields([
  [':method', 'GET'],
  [':scheme', 'https'],
  [':authority', 'localhost'],
  [':path', aPath()],
]);
/**
 * A header of 400 bytes that the server must index (RFC 7541, 6.2.1); `again` repeats it, a byte
 * each.
 */
const remembered = Buffer.concat([Buffer.of(0x40, 1), Buffer.from('x'), Buffer.of(0x7f, 0x91, 0x02), Buffer.alloc(400, 'v')]);
const again = Buffer.alloc(110, 0xbe);

test('a caller whose waiting requests have more headers than its share of memory loses connections, and others are served', async (t) => {
  await using server = await StrataProcess.start();
  const reader = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const clients = await Promise.all(Array.from({ length: connections }, () => RawHttp2.open({ port: server.port, as: reader })));
  t.teardown(() => clients.forEach((client) => client.destroy()));
  for (const client of clients) await client.until(() => client.hasServerSettings, 'settings');

  // Each connection sends 11 kB, which are 4 MB in the server's memory: 48 MB in one turn of its
  // event loop. A caller's share is 25 MB.
  await freeze(server.pid);
  for (const client of clients) {
    client.socket.cork();
    for (let i = 0; i < streams; i += 1)
      client.headers(client.begin().id, Buffer.concat(i === 0 ? [request, remembered, again] : [request, again]), { ends: true });
    client.socket.uncork();
  }
  await Promise.all(clients.map(({ socket }) => new Promise((sent) => socket.write('', sent))));
  thaw(server.pid);

  await until(() => clients.some(({ isClosed }) => isClosed));
  t.is((await server.client().raw('GET', '/livez')).status, 200);
  // The server gives their share back. Requests of connections that it kept count until it has
  // answered them.
  for (const client of clients) client.destroy();
  const next = await RawHttp2.open({ port: server.port, as: reader });
  t.teardown(() => next.destroy());
  await until(async () => (await next.ask('GET', aPath())).status === 200);
});
