/**
 * Watches on the real clock: one with a quiet scope that falls behind, and the mark at the end of
 * initial events.
 */
import { test } from '../../support/test.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer, until } from '../../support/test-server.js';

test.serial(
  'a watch without bookmarks on a quiet scope misses nothing when it falls behind, whatever was compacted in the meantime',
  async (t) => {
    const server = await aServer(t, { flags: { 'history-changes-max': '100', 'watcher-queue-bytes-max': '64KiB' } });
    const client = server.client();
    const quiet = aPath({ cluster: 'quiet' });
    const { metadata } = await client.list(quiet);
    const reader = await RawHttp2.open({ port: server.port, as: server.master, windowBytes: 16_384, silent: true });
    t.teardown(() => reader.destroy());
    const watch = reader.request('GET', `${quiet}?watch=true&resourceVersion=${metadata.resourceVersion}`);
    await until(() => watch.status === 200);

    const large = { spec: { text: 'x'.repeat(40_000) } };
    // More than the flow-control window: the watch leaves this object unread while others change.
    await client.create(quiet, anApiExport({ name: 'q0' }, large));
    await until(() => watch.bytes > 0);
    for (let i = 0; i < 300; i++) await client.create(aPath({ cluster: 'busy' }), anApiExport({ name: `n${i}` }));
    await until(async () => (await server.metric('strata_compacted_revision')) >= 200);
    for (let i = 1; i < 10; i++) await client.create(quiet, anApiExport({ name: `q${i}` }, large));
    await until(async () => (await server.metric('strata_watch_fallbacks_total')) >= 1);
    for (const id of [0, watch.id]) reader.windowUpdate(id, 1 << 24);
    await until(() => watch.isOver || watch.text.split('\n').length > 10);

    const events = watch.text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { type: string; object: { code?: number; metadata: { name: string } } });
    t.deepEqual(
      events.map(({ type, object }) => `${type} ${object.metadata.name ?? object.code}`),
      Array.from({ length: 10 }, (_, i) => `ADDED q${i}`),
    );
  },
);

test.serial('a watch from 0 with bookmarks marks the end of initial events only if it asked for sendInitialEvents', async (t) => {
  const client = (await aServer(t, { flags: { 'bookmark-interval': '200ms' } })).client();
  await client.create(aPath(), anApiExport());
  const received = async (query: Readonly<Record<string, string>>): Promise<readonly string[]> => {
    const events: string[] = [];
    for await (const { type, object } of client.watch(aPath(), { query: { allowWatchBookmarks: 'true', timeoutSeconds: '1', ...query } }))
      events.push(`${type}${object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true' ? ' that ends them' : ''}`);
    return [...new Set(events)];
  };
  const asked = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' };

  for (const from of [{}, { resourceVersion: '0' }]) {
    t.deepEqual(await received(from), ['ADDED', 'BOOKMARK'], JSON.stringify(from));
    t.deepEqual(await received({ ...from, ...asked }), ['ADDED', 'BOOKMARK that ends them', 'BOOKMARK'], JSON.stringify(from));
  }
});
