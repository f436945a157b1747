/**
 * What a server reads from etcd when it starts. Finds contents that differ from those of a server
 * that saw them written. Also finds pages that are too many, too large, or too slow for the
 * network.
 */
import { Buffer } from 'node:buffer';
import { test } from '../../support/test.js';
import { Refused } from '../../../src/domain/errors.js';
import { formatSlice } from '../../../src/domain/slice.js';
import type { EtcdClient } from '../../../src/store/etcd/client.js';
import { followerOptions } from '../../../src/store/etcd/follower.js';
import { listed } from '../../../src/store/etcd/listing.js';
import { formatObjectKey } from '../../../src/store/etcd/object-keys.js';
import type { RangeRequest, RangeResponse } from '../../../src/store/etcd/rpc.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { changesBehind, changeText, list, mustWrite } from '../../contract/read-all.js';
import { aBody, aKey, aPut, aScope } from '../../support/objects.js';
import { opened, prefix } from './open-stores.js';
import { bytes, members, text } from './with-members.js';

type Entry = Readonly<{ key: string; value: Uint8Array }>;

async function put(client: EtcdClient, entries: readonly Entry[], atOnce = 100): Promise<void> {
  for (let from = 0; from < entries.length; from += atOnce) {
    const success = entries.slice(from, from + atOnce).map(({ key, value }) => ({ kind: 'put' as const, key: bytes(key), value }));
    await client.txn({ compare: [], success, failure: [] });
  }
}

test('a server that starts on many objects holds the same as a server that saw them written', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  const before = await opened(t, etcd, { recentBytesMax: 1024 * 1024 });
  const objects = Array.from({ length: 3_000 }, (_none, i): Entry => {
    const place = {
      shard: i % 3 === 0 ? 'amber' : 'birch',
      cluster: `c${i % 40}`,
      namespace: i % 2 === 0 ? '' : `n${i % 5}`,
      name: `one${i}`,
    };
    const key = aKey(i % 7 === 0 ? { ...place, identity: 'ab'.repeat(32) } : place);
    const body = aBody(key, { path: `root:c${i % 40}`, spec: { filling: 'x'.repeat(i % 900), text: 'ü' } });
    const value = i % 500 === 0 ? Buffer.from('{}') : Buffer.concat([body.bytes, Buffer.from('\n')]);
    return { key: formatObjectKey(prefix, key), value };
  });
  await put(client, objects);
  await before.revisions.reachNewest();
  client.close();

  const after = await opened(t, etcd, { recentBytesMax: 1024 * 1024, resumedRevisionsMax: 0 });
  // A slice without a record: a server does not know when it changed before the start.
  const untimed = async (store: typeof before) =>
    [...store.state.slices]
      .map((slice) => ({ ...slice, changedMs: 0 }))
      .toSorted((a, b) => (formatSlice(a.slice) < formatSlice(b.slice) ? -1 : 1));
  t.deepEqual(await untimed(after), await untimed(before));
  t.is(after.unreadableKeys, 6);
  t.is(after.unreadableKeys, before.unreadableKeys);
  const scope = aScope({ identity: '*' });
  t.deepEqual(await list(after, scope), await list(before, scope));
  const places = objects.slice(0, 120).map((_none, i) => aKey({ shard: i % 3 === 0 ? 'amber' : 'birch', cluster: `c${i % 40}` }));
  const paths = await after.paths.pathsOf(places);
  t.deepEqual(paths, await before.paths.pathsOf(places));
  t.true(paths.some((path) => path === 'root:c7'));
});

test('a page holds many small objects, or as many large ones as its bytes allow, also where both meet', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  const named = (folder: string, count: number, size: number): readonly Entry[] =>
    Array.from({ length: count }, (_none, i) => ({ key: `${folder}${i}`, value: Buffer.alloc(size) }));
  const small = [
    ...named('/x/apis/exports/built-in/amber/c/small', 4_000, 2),
    ...named('/x/apis/exports-old/built-in/amber/c/', 3, 2),
    ...named('/x/apis/exports', 3, 2),
    ...named('/x/apis/exports0/', 3, 2),
  ];
  const large = [
    ...named('/x/apis/schemas/built-in/amber/c/large', 1_500, 20_000),
    ...named('/y/apis/schemas/built-in/amber/c/larger', 300, 200_000),
  ];
  await put(client, small);
  await put(client, large, 5);

  const pagesOf = async (key: string, rangeEnd: string): Promise<readonly number[]> => {
    const pages: RangeResponse[] = [];
    const counting = {
      range: async (request: RangeRequest) => {
        const page = await client.range(request);
        pages.push(page);
        return page;
      },
    };
    const keys: string[] = [];
    for await (const { kvs } of listed(counting, { key: bytes(key), rangeEnd: bytes(rangeEnd) }, { at: 0 }))
      keys.push(...kvs.map((kv) => text(kv.key)));
    const expected = [...small, ...large].map((entry) => entry.key).filter((each) => each >= key && each < rangeEnd);
    t.deepEqual(keys, expected.toSorted());
    return pages.map(({ kvs }) => kvs.length);
  };
  // The first 8 keys; 1,000 of one type; the rest of that type; the next 1,000; then 4 MiB a page.
  t.deepEqual(await pagesOf('/x', '/y'), [8, 1_000, 2_995, 1_000, 210, 209, 87]);
  t.deepEqual(await pagesOf('/y', '/z'), [8, ...Array<number>(14).fill(20), 12]);
  client.close();
});

for (const { what, count, bytesEach, bytesPerSecond, timeoutMs } of [
  { what: 'large pages', count: 1_500, bytesEach: 4_000, bytesPerSecond: 2 * 1024 * 1024, timeoutMs: 1_000 },
  { what: 'many large objects at once', count: 60, bytesEach: 1_000_000, bytesPerSecond: 10 * 1024 * 1024, timeoutMs: 5_000 },
])
  test(`over a network that is too slow for ${what}, a server starts on smaller pages`, async (t) => {
    const etcd = await members(t);
    if (etcd === undefined) return;
    await using _ = etcd;
    const client = etcd.client();
    const objects = Array.from({ length: count }, (_none, i): Entry => {
      const key = aKey({ name: `one${i}` });
      return { key: formatObjectKey(prefix, key), value: aBody(key, { spec: { filling: 'x'.repeat(bytesEach) } }).bytes };
    });
    await put(client, objects, Math.max(1, Math.floor(100_000 / bytesEach)));
    client.close();
    const network = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
    t.teardown(() => network.close());
    network.narrow(bytesPerSecond);
    const endpoints = [`http://127.0.0.1:${network.port}`];
    const store = await opened(t, etcd, { endpoints, timeoutMs, resumedRevisionsMax: 0 });
    t.is(await store.objects.count(aScope(), undefined, 10_000), count);
  });

test('a start waits for as long as etcd takes to send what happened before', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  const objects = Array.from({ length: 100 }, (_none, i): Entry => {
    const key = aKey({ name: `one${i}` });
    return { key: formatObjectKey(prefix, key), value: aBody(key, { spec: { filling: 'x'.repeat(1_000_000) } }).bytes };
  });
  await put(client, objects, 1);
  client.close();
  const network = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
  t.teardown(() => network.close());
  network.narrow(5 * 1024 * 1024);
  const begun = performance.now();
  const store = await opened(t, etcd, { endpoints: [`http://127.0.0.1:${network.port}`] });
  t.true(performance.now() - begun > followerOptions.reachMsMax, 'longer than a server waits otherwise');
  t.is(await store.objects.count(aScope(), undefined, 1_000), 100);
});

test('a server that starts after somebody else has compacted etcd has the history that is left', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const before = await opened(t, etcd);
  for (let i = 0; i < 5; i += 1) await mustWrite(before, aPut({ name: `early${i}` }, 'absent'));
  const client = etcd.client();
  const compacted = await client.revision();
  for (let i = 0; i < 5; i += 1) await mustWrite(before, aPut({ name: `late${i}` }, 'absent'));
  await client.compact(compacted);
  client.close();

  const after = await opened(t, etcd);
  const changes = async (store: typeof before) =>
    (await changesBehind(store, aScope(), compacted, before.revisions.published)).map(changeText);
  await after.revisions.reachNewest();
  t.is((await changes(after)).length, 5);
  t.deepEqual(await changes(after), await changes(before));
  await t.throwsAsync(changesBehind(after, aScope(), compacted - 1), { instanceOf: Refused });
});
