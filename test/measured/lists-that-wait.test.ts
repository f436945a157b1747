/**
 * Lists that wait for room in memory must not wait for each other. They would, if each kept its
 * first piece unsent while it waits for room for its second.
 */
import { test } from '../support/test.js';
import { aPath, anApiExport } from '../support/objects.js';
import { RawHttp1 } from '../support/raw-http1.js';
import { RawHttp2 } from '../support/raw-http2.js';
import { aServer } from '../support/test-server.js';

for (const [objectBytes, objects, count] of [
  [2_900_000, 3, 30],
  [200_000, 12, 100],
] as const)
  test(`with default limits, ${count} lists of ${objects} objects of ${objectBytes} bytes on one HTTP/2 connection are all answered if the client reads them`, async (t) => {
    const server = await aServer(t);
    const text = 'x'.repeat(objectBytes);
    for (let i = 0; i < objects; i += 1) await server.client().create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text } }));
    const client = await RawHttp2.open({ port: server.port, as: server.master, windowBytes: 16_000_000 });
    t.teardown(() => client.destroy());
    client.windowUpdate(0, 1_000_000_000);
    t.is((await client.ask('GET', aPath())).status, 200);

    const lists = Array.from({ length: count }, () => client.request('GET', aPath()));
    await client.until(() => lists.every(({ isOver }) => isOver), 'all', 15_000).catch(() => {});
    const whole = lists.filter(({ isWhole }) => isWhole).length;
    t.is(
      whole,
      count,
      `${lists.filter(({ status }) => status === 0).length} without a head; ${await server.metric('strata_buffered_bytes')} bytes buffered`,
    );
  });

test('with 32 MiB for all requests, twelve lists of one shard, each on a connection of its own, are answered', async (t) => {
  const server = await aServer(t, { flags: { 'buffered-bytes-max': '32MiB' } });
  const shard = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const text = 'x'.repeat(2_900_000);
  for (let i = 0; i < 3; i += 1) await server.client().create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text } }));
  const clients = await Promise.all(Array.from({ length: 12 }, () => RawHttp1.open({ port: server.port, as: shard })));
  t.teardown(() => clients.forEach((client) => client.destroy()));
  const came = clients.map(() => 0);
  clients.forEach((client, at) => {
    client.socket.removeAllListeners('data');
    client.socket.on('data', (bytes: Buffer) => void (came[at]! += bytes.length));
    client.head('GET', aPath());
  });
  await clients[0]!.until(() => came.every((bytes) => bytes > 8_700_000), 'all', 15_000).catch(() => {});
  t.true(
    came.every((bytes) => bytes > 8_700_000),
    `${came.join(' ')}; ${await server.metric('strata_buffered_bytes')} bytes buffered`,
  );
});
