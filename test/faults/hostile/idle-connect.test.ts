/**
 * CONNECT or an unknown Expect opens a stream that is no exchange. Finds such a stream that nothing
 * ends, so that its connection stays beyond its idle time.
 */
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeFields } from '../../support/hpack.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';

for (const what of ['CONNECT', 'expect', 'nothing'])
  test(`an idle connection with ${what} on it is closed`, async (t) => {
    const server = await aServer(t, { flags: { 'keep-alive-timeout': '1s' } });
    const client = await RawHttp2.open({ port: server.port });
    t.teardown(() => client.destroy());
    if (what === 'CONNECT') {
      const stream = client.begin();
      client.headers(
        stream.id,
        encodeFields([
          [':method', 'CONNECT'],
          [':authority', 'x:1'],
        ]),
        { ends: false },
      );
    } else if (what === 'expect') client.request('POST', '/livez', { headers: { expect: 'what' }, ends: false });
    await sleep(4000);
    t.true(
      client.isClosed,
      `open; ${[...client.streams.values()].map(({ status, came }) => `${status} ${came.join()}`).join('; ')}, GOAWAY ${client.goaway?.code}`,
    );
  });
