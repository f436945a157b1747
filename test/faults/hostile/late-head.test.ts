import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';

test('a HEAD that is late is answered 504 without a body, and the connection goes on', async (t) => {
  const server = await aServer(t, { flags: { 'synthetic-delay': '1500ms', 'request-timeout': '1s', 'headers-timeout': '1s' } });
  const client = await RawHttp2.open({ port: server.port, as: server.master });
  t.teardown(() => client.destroy());
  const head = await client.ask('HEAD', aPath({ name: 'one' }));
  t.is(head.status, 504);
  t.true(head.isWhole, head.came.join());
  t.is(head.bytes, 0);
  const h1 = await RawHttp1.open({ port: server.port, as: server.master });
  t.teardown(() => h1.destroy());
  h1.head('HEAD', aPath({ name: 'one' }));
  await sleep(2500);
  t.log(h1.unread.slice(0, 300), h1.answers);
  const again = client.request('GET', '/livez');
  await client.answered(again);
  t.is(again.status, 504);
  await sleep(1000);
});
