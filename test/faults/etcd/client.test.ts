/** The client of etcd against real members. */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { CacheError } from '../../../src/domain/errors.js';
import { EtcdClient } from '../../../src/store/etcd/client.js';
import type { EtcdTls } from '../../../src/store/etcd/members.js';
import { EtcdError, type EtcdErrorKind } from '../../../src/store/etcd/etcd-error.js';
import type { WatchEvent, WatchResponse } from '../../../src/store/etcd/rpc.js';
import { bytes, members, text } from './with-members.js';

async function kindOf(t: ExecutionContext, call: Promise<unknown>): Promise<EtcdErrorKind | undefined> {
  return (await t.throwsAsync(call, { instanceOf: EtcdError }))?.kind;
}

test('a transaction changes keys only if its comparisons hold, and a range shows the result', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  const [a, b] = [bytes('/x/a'), bytes('/x/b')];

  const created = await client.txn({
    compare: [{ key: a, revision: 0 }],
    success: [
      { kind: 'put', key: a, value: bytes('1') },
      { kind: 'put', key: b, value: bytes('') },
    ],
    failure: [],
  });
  t.true(created.succeeded);
  const refused = await client.txn({
    compare: [{ key: a, revision: 0 }],
    success: [{ kind: 'delete', key: a }],
    failure: [{ kind: 'range', request: { key: a } }],
  });
  t.false(refused.succeeded);
  t.deepEqual(
    refused.ranges[0]?.kvs.map(({ key, value, revision }) => [text(key), text(value), revision]),
    [['/x/a', '1', created.revision]],
  );
  const page = await client.range({ key: bytes('/x/'), rangeEnd: bytes('/x0'), limit: 1, revision: created.revision });
  t.deepEqual([page.kvs.length, page.more, page.count], [1, true, 2]);
  const counted = await client.range({ key: bytes('/x/'), rangeEnd: bytes('/x0'), countOnly: true });
  t.deepEqual([counted.kvs.length, counted.count], [0, 2]);
  const keys = await client.range({ key: bytes('/x/'), rangeEnd: bytes('/x0'), keysOnly: true });
  t.deepEqual(
    keys.kvs.map(({ key, value }) => text(key) + text(value)),
    ['/x/a', '/x/b'],
  );
  t.like(await client.status(), { version: '3.6.16' });
  client.close();
});

test('a watch gets every change from its revision on, each with the previous value, and reports its progress', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  const key = bytes('/x/a');
  const first = await client.txn({ compare: [], success: [{ kind: 'put', key, value: bytes('1') }], failure: [] });
  const events: WatchEvent[] = [];
  const progress = deferred<WatchResponse>();
  const watch = client.watch(
    { key: bytes('/x/'), rangeEnd: bytes('/x0'), startRevision: first.revision },
    {
      received: (response) => {
        events.push(...response.events);
        if (response.events.length === 0 && !response.created) progress.resolve(response);
      },
      ended: (error) => progress.reject(error),
    },
  );
  await client.txn({ compare: [], success: [{ kind: 'put', key, value: bytes('2') }], failure: [] });
  const deleted = await client.txn({ compare: [], success: [{ kind: 'delete', key }], failure: [] });
  const other = await client.txn({ compare: [], success: [{ kind: 'put', key: bytes('/y'), value: bytes('') }], failure: [] });
  // etcd ignores the request for progress of a watch that has not caught up, so the test repeats
  // it.
  const asking = setInterval(() => watch.requestProgress(), 20);
  t.teardown(() => clearInterval(asking));

  t.is((await progress.promise).revision, other.revision);
  t.deepEqual(
    events.map(({ kind, kv, previous }) => [kind, kv.revision, previous === undefined ? undefined : text(previous.value)]),
    [
      ['put', first.revision, undefined],
      ['put', first.revision + 1, '1'],
      ['delete', deleted.revision, '2'],
    ],
  );
  watch.close();
  client.close();
});

test('an error says whether the revision was compacted, the request too large, etcd full, or the outcome unknown', async (t) => {
  const etcd = await members(t, { flags: ['--quota-backend-bytes=4194304'] });
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client(etcd.endpoints, 1_000);
  const put = (key: string, value: Uint8Array) =>
    client.txn({ compare: [], success: [{ kind: 'put', key: bytes(key), value }], failure: [] });
  const first = await put('/a', bytes('1'));
  const second = await put('/a', bytes('2'));

  await client.compact(second.revision);
  t.is(await kindOf(t, client.range({ key: bytes('/a'), revision: first.revision })), 'compacted');
  const ended = deferred<WatchResponse>();
  client.watch(
    { key: bytes('/a'), rangeEnd: bytes('/b'), startRevision: first.revision },
    { received: (response) => response.canceled && ended.resolve(response), ended: ended.reject },
  );
  t.is((await ended.promise).compacted, second.revision);
  t.is(await kindOf(t, put('/b', new Uint8Array(2 * 1024 * 1024))), 'too-large');
  const filled = (async () => {
    for (let i = 0; i < 64; i += 1) await put(`/full/${i}`, new Uint8Array(256 * 1024));
  })();
  t.is(await kindOf(t, filled), 'full');
  t.is((await client.range({ key: bytes('/a') })).kvs.length, 1);
  await etcd.freeze(0);
  t.is(await kindOf(t, client.range({ key: bytes('/a') })), 'unknown');
  etcd.thaw(0);
  await etcd.signal(0, 'SIGKILL');
  t.is(await kindOf(t, put('/a', bytes('3'))), 'unknown');
  client.close();
});

test('a lease can be kept and ended, and to end one that is gone is no error', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client([...etcd.endpoints, ...etcd.endpoints.map((endpoint) => endpoint.replace('127.0.0.1', 'localhost'))]);
  await client.grantLease({ id: 7, ttlSeconds: 60 });
  const { endpoint } = client;
  t.is(await client.keepLease(7), 60);
  // The stream of keepLease ends in a later turn of the event loop.
  await client.range({ key: bytes('/a') });
  t.is(client.endpoint, endpoint, 'the client stays at a member that answers');

  await client.endLease(7);

  t.is(await client.keepLease(7), 0);
  await t.notThrowsAsync(client.endLease(7));
  const underIt = client.txn({ compare: [], success: [{ kind: 'put', key: bytes('/a'), value: bytes('1'), lease: 7 }], failure: [] });
  t.is(await kindOf(t, underIt), 'unknown');
  client.close();
});

test('with three members and TLS, a read goes on at the next member when one is killed, and a watch reports its end', async (t) => {
  const etcd = await members(t, { members: 3, isSecure: true });
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client(etcd.endpoints, 2_000);
  await client.txn({ compare: [], success: [{ kind: 'put', key: bytes('/a'), value: bytes('1') }], failure: [] });
  const ended = deferred<EtcdError>();
  client.watch({ key: bytes('/a'), rangeEnd: bytes('/b'), startRevision: 1 }, { received: () => {}, ended: ended.resolve });
  const before = client.endpoint;

  await etcd.signal(0, 'SIGKILL');

  t.is((await ended.promise).kind, 'unknown');
  t.is((await client.range({ key: bytes('/a') })).kvs.length, 1);
  t.not(client.endpoint, before);
  client.close();
});

test('a client without a certificate is refused, and is answered once it reads a certificate', async (t) => {
  const etcd = await members(t, { isSecure: true });
  if (etcd === undefined) return;
  await using _ = etcd;
  const files: { read: () => EtcdTls } = { read: () => ({ ca: etcd.tls!.ca, certificate: undefined, key: undefined }) };
  const client = new EtcdClient({ clock: systemClock }, { endpoints: etcd.endpoints, tls: () => files.read(), timeoutMs: 1_000 });
  t.is(await kindOf(t, client.range({ key: bytes('/a') })), 'unknown');

  files.read = () => {
    throw new CacheError('only the half of it is there');
  };
  t.is(await kindOf(t, client.range({ key: bytes('/a') })), 'unknown');
  files.read = () => etcd.tls!;
  await client.range({ key: bytes('/a') }).catch(() => {});
  t.is((await client.range({ key: bytes('/a') })).kvs.length, 0);
  client.close();
});
