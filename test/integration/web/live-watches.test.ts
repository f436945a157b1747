/**
 * Many watches (`watch/watcher.ts`), on one connection and on their own, beside updates at full
 * speed. Some are read slowly.
 */
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../../support/objects.js';
import { aServer, until } from '../../support/test-server.js';

const watches = 24;
const objects = 8;
const updates = objects * rounds(30);
const sizes = [100, 3_000, 20_000, 100_000] as const;

test('every watch sends every change once, in order and with bookmarks in their places, even if some are read slowly', async (t) => {
  const server = await aServer(t, { flags: { 'bookmark-interval': '100ms', 'watcher-queue-bytes-max': '256KiB' } });
  const client = server.client();
  const stop = new AbortController();
  setMaxListeners(watches, stop.signal);
  const seen: string[][] = Array.from({ length: watches }, () => []);
  const shared = server.client({});
  const { metadata } = await client.list(aPath());
  const query = { resourceVersion: metadata.resourceVersion ?? '', allowWatchBookmarks: 'true' };
  let open = 0;
  const reading = seen.map(async (events, i) => {
    const own = i % 2 === 0 ? shared : server.client({});
    for await (const { type, object } of own.watch(aPath(), { query, signal: stop.signal, opened: () => (open += 1) })) {
      events.push(`${type} ${object.metadata.resourceVersion}`);
      if (i % 6 < 2) await sleep(i % 6 === 0 ? 1 : 10);
    }
  });
  await until(() => open === watches);

  const written: string[] = [];
  const write = async (name: string, times: number): Promise<void> => {
    await client.create(aPath(), anApiExport({ name })).then(({ metadata }) => written.push(metadata.resourceVersion ?? ''));
    for (let i = 1; i < times; i += 1) {
      const text = `${i}`.padEnd(sizes[i % sizes.length]!, 'x');
      const { metadata } = await client.mergePatch(aPath({ name }), { spec: { text } });
      written.push(metadata.resourceVersion ?? '');
    }
  };
  await Promise.all(Array.from({ length: objects }, (_, i) => write(`n${i}`, updates / objects)));
  const changesOf = (events: readonly string[]): readonly string[] =>
    events.filter((event) => !event.startsWith('BOOKMARK')).map((event) => event.split(' ')[1]!);
  await until(() => seen.every((events) => changesOf(events).length >= updates)).catch(() => {});
  stop.abort();
  await Promise.all(reading);

  const order = written.toSorted((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));
  for (const [i, events] of seen.entries()) {
    t.deepEqual(changesOf(events), order, `watch ${i}`);
    const revisions = events.map((event) => BigInt(event.split(' ')[1]!));
    const behind = events.filter(
      (event, at) => revisions[at]! < (revisions[at - 1] ?? 0n) || (!event.startsWith('B') && revisions[at]! === revisions[at - 1]),
    );
    t.deepEqual(behind, [], `watch ${i}`);
  }
  t.true(seen.every((events) => events.some((event) => event.startsWith('BOOKMARK'))));
});
