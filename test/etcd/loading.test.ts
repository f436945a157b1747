/** What a server reads when it starts: the same as one has that was there when it was written, in few pages, and no more of it at once than is said. */
import { Buffer } from 'node:buffer';
import test from 'ava';
import { Refused } from '../../src/domain/errors.js';
import { formatSlice } from '../../src/domain/slice.js';
import type { EtcdClient } from '../../src/store/etcd/client.js';
import { followerOptions } from '../../src/store/etcd/follower.js';
import { listed } from '../../src/store/etcd/listing.js';
import { formatObjectKey } from '../../src/store/etcd/object-keys.js';
import type { RangeRequest, RangeResponse } from '../../src/store/etcd/rpc.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { changesBehind, changeText, list, mustWrite } from '../contract/read-all.js';
import { aBody, aKey, aPut, aScope } from '../support/objects.js';
import { opened, prefix } from './open-stores.js';
import { bytes, members } from './with-members.js';

type Entry = Readonly<{ key: string; value: Uint8Array }>;

async function put(client: EtcdClient, entries: readonly Entry[], atOnce = 100): Promise<void> {
  for (let from = 0; from < entries.length; from += atOnce) {
    const success = entries.slice(from, from + atOnce).map(({ key, value }) => ({ kind: 'put' as const, key: bytes(key), value }));
    await client.txn({ compare: [], success, failure: [] });
  }
}

test('a server that starts on many objects holds what one holds that saw them written', async (t) => {
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
  await before.reachNewest();
  client.close();

  const after = await opened(t, etcd, { recentBytesMax: 1024 * 1024, resumedRevisionsMax: 0 });
  // Without a record of its slice nobody knows when something changed before.
  const untimed = async (store: typeof before) =>
    (await store.slices())
      .map((slice) => ({ ...slice, changedMs: 0 }))
      .toSorted((a, b) => (formatSlice(a.slice) < formatSlice(b.slice) ? -1 : 1));
  t.deepEqual(await untimed(after), await untimed(before));
  t.is(after.unreadableKeys, 6);
  t.is(after.unreadableKeys, before.unreadableKeys);
  const scope = aScope({ identity: '*' });
  t.deepEqual(await list(after, scope), await list(before, scope));
  const places = objects.slice(0, 120).map((_none, i) => aKey({ shard: i % 3 === 0 ? 'amber' : 'birch', cluster: `c${i % 40}` }));
  const paths = await after.pathsOf(places);
  t.deepEqual(paths, await before.pathsOf(places));
  t.true(paths.some((path) => path === 'root:c7'));
});

test('small objects are listed many to a page, and large ones so many as a page may take', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  await put(
    client,
    Array.from({ length: 4_000 }, (_none, i) => ({ key: `/x/small${i}`, value: bytes('{}') })),
  );
  await put(
    client,
    Array.from({ length: 300 }, (_none, i) => ({ key: `/y/large${i}`, value: Buffer.alloc(200_000) })),
    5,
  );

  const pagesOf = async (key: string, rangeEnd: string): Promise<readonly RangeResponse[]> => {
    const pages: RangeResponse[] = [];
    const counting = {
      range: async (request: RangeRequest) => {
        const page = await client.range(request);
        pages.push(page);
        return page;
      },
    };
    let keys = 0;
    for await (const { kvs } of listed(counting, { key: bytes(key), rangeEnd: bytes(rangeEnd) }, { at: 0 })) keys += kvs.length;
    t.is(
      keys,
      pages.reduce((sum, page) => sum + page.kvs.length, 0),
    );
    return pages;
  };
  t.deepEqual(
    (await pagesOf('/x', '/y')).map(({ kvs }) => kvs.length),
    [250, 3_000, 750],
  );
  t.deepEqual(
    (await pagesOf('/y', '/z')).map(({ kvs }) => kvs.length),
    [250, 41, 9],
  );
  client.close();
});

test('over a network that is too slow for large pages, a server starts on smaller ones', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  const objects = Array.from({ length: 1_500 }, (_none, i): Entry => {
    const key = aKey({ name: `one${i}` });
    return { key: formatObjectKey(prefix, key), value: aBody(key, { spec: { filling: 'x'.repeat(4_000) } }).bytes };
  });
  await put(client, objects);
  client.close();
  const network = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
  t.teardown(() => network.close());
  network.narrow(2 * 1024 * 1024);
  const endpoints = [`http://127.0.0.1:${network.port}`];
  const store = await opened(t, etcd, { endpoints, timeoutMs: 1_000, resumedRevisionsMax: 0 });
  t.is(await store.count(aScope(), undefined, 10_000), 1_500);
});

test('a start takes as long as what happened before takes to come', async (t) => {
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
  t.true(performance.now() - begun > followerOptions.reachMsMax, 'it would have been long enough for anything else');
  t.is(await store.count(aScope(), undefined, 1_000), 100);
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
  const changes = async (store: typeof before) => (await changesBehind(store, aScope(), compacted, before.published)).map(changeText);
  await after.reachNewest();
  t.is((await changes(after)).length, 5);
  t.deepEqual(await changes(after), await changes(before));
  await t.throwsAsync(changesBehind(after, aScope(), compacted - 1), { instanceOf: Refused });
});
