/**
 * A Go client gives up many requests at once when one context ends. Finds a server that then ends
 * their connection, and so the watches on it.
 */
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';

test('a client that gives up 60 requests at once keeps the watch on the same connection', async (t) => {
  const server = await aServer(t, { flags: { 'synthetic-delay': '1s' } });
  await server.client().create(aPath(), anApiExport({ name: 'one' }));
  const client = await RawHttp2.open({ port: server.port, as: server.master });
  t.teardown(() => client.destroy());
  const watch = client.request('GET', `${aPath()}?watch=true`);
  await client.until(() => watch.status === 200, 'watch');
  const streams = Array.from({ length: 60 }, () => client.request('GET', aPath({ name: 'one' })));
  await sleep(300);
  for (const { id } of streams) client.reset(id);
  await sleep(1500);
  t.false(client.isClosed, `closed, GOAWAY ${client.goaway?.code}`);
});
