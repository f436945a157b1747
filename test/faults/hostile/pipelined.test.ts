/**
 * HTTP/1.1: finds later answers that hold the room for which the first answer waits, so that none
 * is sent.
 */
import { test } from '../../support/test.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { aServer } from '../../support/test-server.js';

for (const what of ['lists', 'gets'])
  test(`pipelined ${what} are all answered to a client that reads them`, async (t) => {
    const server = await aServer(t, {
      flags: { 'connection-buffered-bytes-max': '1MiB', 'body-bytes-max': '768KiB', 'send-timeout': '3s' },
    });
    const text = 'x'.repeat(100_000);
    for (let i = 0; i < 12; i += 1) await server.client().create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text } }));
    const client = await RawHttp1.open({ port: server.port, as: server.master });
    t.teardown(() => client.destroy());
    const count = 20;
    client.send(
      Array.from(
        { length: count },
        () => `GET ${what === 'lists' ? aPath() : aPath({ name: 'n1' })} HTTP/1.1\r\nhost: localhost\r\n\r\n`,
      ).join(''),
    );
    await client.until(() => client.answers.length === count || client.isClosed, 'all', 15_000).catch(() => {});
    t.is(client.answers.length, count, `closed: ${client.isClosed}`);
  });
