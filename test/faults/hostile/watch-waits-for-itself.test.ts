/**
 * Finds a watch whose initial events wait for room that its own queue holds. Such a watch goes on
 * only when the next event overflows the queue.
 */
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';

const cases = [
  {
    what: '1 MiB for a connection',
    flags: { 'connection-buffered-bytes-max': '1MiB', 'body-bytes-max': '768KiB' },
    watches: 1,
    events: 4,
    eventBytes: 205_000,
  },
] as const;

for (const { what, flags, watches, events, eventBytes } of cases)
  test(`${what}: events that come while ${watches} watches send their initial events arrive once those are read`, async (t) => {
    const server = await aServer(t, { flags });
    await server.client().create(aPath(), anApiExport({ name: 'first' }, { spec: { text: 'x'.repeat(70_000) } }));
    const client = await RawHttp2.open({ port: server.port, as: server.master, windowBytes: 0 });
    t.teardown(() => client.destroy());
    client.windowUpdate(0, 1_000_000_000);
    const open = Array.from({ length: watches }, () => client.request('GET', `${aPath()}?watch=true`));
    await client.until(() => open.every(({ status }) => status === 200), 'a beginning');
    await sleep(300);
    for (let i = 0; i < events; i += 1)
      await server.client().create(aPath(), anApiExport({ name: `n${i}` }, { spec: { text: 'x'.repeat(eventBytes) } }));
    await sleep(500);
    const [held, fallbacks] = [await server.metric('strata_buffered_bytes'), await server.metric('strata_watch_fallbacks_total')];
    for (const { id } of open) client.windowUpdate(id, 1_000_000_000);
    const all = events * eventBytes;
    await client.until(() => open.every(({ bytes }) => bytes > all), 'all', 8_000).catch(() => {});
    t.true(
      open.every(({ bytes }) => bytes > all),
      `${open.map(({ bytes }) => bytes).join(' ')} bytes of ${all}; ${held} buffered before it was read, ${await server.metric('strata_buffered_bytes')} after; ${fallbacks} fallbacks`,
    );
  });
