/**
 * Issue 10, 1.5: a limit that is reached must show in the log and in a metric, also for a body
 * without room.
 */
import { test } from '../../support/test.js';
import { aPath } from '../../support/objects.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';

test('a body for which its connection has no room is reported to the client, in the log and in a metric', async (t) => {
  const server = await aServer(t, { flags: { 'connection-buffered-bytes-max': '1MiB', 'body-bytes-max': '768KiB' } });
  const client = await RawHttp2.open({ port: server.port, as: server.master });
  t.teardown(() => client.destroy());
  await client.ask('GET', '/livez');
  const streams: ReturnType<RawHttp2['request']>[] = [];
  for (let i = 0; i < 30; i += 1) {
    const stream = client.request('POST', aPath(), { headers: { 'content-type': 'application/json' }, ends: false });
    streams.push(stream);
    await client.body(stream, Buffer.alloc(60_000, ' '), { ends: false });
  }
  await client.until(() => streams.some(({ status }) => status === 429), 'a refusal');
  const refused = streams.find(({ status }) => status === 429);
  t.is(refused?.headers['retry-after'], '1');
  t.true((await server.metric('strata_limits_reached_total')) > 0, 'metric');
  t.true(
    server.logged.some(({ event }) => event === 'limit.reached'),
    'log',
  );
});
