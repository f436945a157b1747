/**
 * Keys and values that other clients put into etcd and that no server can read. Finds a server that
 * cannot start, write or sync because of one.
 */
import { test } from '../../support/test.js';
import type { Push } from '../../../src/domain/push.js';
import { formatClientKey } from '../../../src/domain/key.js';
import { formatObjectKey } from '../../../src/store/etcd/object-keys.js';
import { formatRecordKey } from '../../../src/store/etcd/records.js';
import { aKey, aPut, aScope, shardName } from '../../support/objects.js';
import { aClaim, aFullSync, aSlice, anUpsert, mustPush } from '../../support/pushes.js';
import { opened, prefix } from './open-stores.js';
import { bytes, members } from './with-members.js';

const objectKey = formatObjectKey(prefix, aKey());
const poisons: readonly (readonly [what: string, key: Uint8Array])[] = [
  ['an object', bytes(objectKey)],
  ['the record of a shard', bytes(formatRecordKey(prefix, { kind: 'shard', shard: shardName('amber') }))],
  ['the record of a slice', bytes(formatRecordKey(prefix, { kind: 'slice', slice: aSlice() }))],
  ['a mark of a namesake', bytes(formatRecordKey(prefix, { kind: 'rewrite', of: formatClientKey(aKey()) }))],
  ['a key that is no text', Buffer.concat([bytes(objectKey), Buffer.of(0xff)])],
  ['a mark that is no text', Buffer.concat([bytes(formatRecordKey(prefix, { kind: 'rewrite', of: '' })), Buffer.of(0xff)])],
];

for (const [what, key] of poisons)
  for (const [how, ask] of [
    ['a client writes', undefined],
    ['a pusher syncs', [aClaim(), ...aFullSync({}, [anUpsert(), anUpsert({ name: 'two' })])]],
  ] as const)
    test(`${what} that cannot be read does not keep ${how === 'a client writes' ? 'a client from writing' : 'a pusher from syncing'} there`, async (t) => {
      const etcd = await members(t);
      if (etcd === undefined) return;
      await using _ = etcd;
      const client = etcd.client();
      const put = async (value: string): Promise<void> => {
        await client.txn({ compare: [], success: [{ kind: 'put', key, value: bytes(value) }], failure: [] });
      };
      await put('before');
      const store = await opened(t, etcd);
      await put('and once more, while it is open');
      await store.revisions.reachNewest();

      if (ask === undefined) {
        for (const name of ['one', 'two']) t.is((await store.writer.submit(aPut({ name }, 'absent'))).kind, 'written');
      } else await mustPush(store.writer.lane(), ask as readonly Push[]);

      t.is(await store.objects.count(aScope(), undefined, 10), 2);
      client.close();
    });

test('an object in etcd that Go cannot decode is skipped and counted, also after a good one, and a good one replaces it', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  const textOf = (name: string, metadata = '', rest = ''): string =>
    `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"${name}","uid":"u"${metadata}}${rest}}\n`;
  const put = async (name: string, value: string): Promise<void> => {
    const key = bytes(formatObjectKey(prefix, aKey({ name })));
    await client.txn({ compare: [], success: [{ kind: 'put', key, value: bytes(value) }], failure: [] });
  };
  const undecodable = [
    ['', ',"spec":{"x":1E400}'],
    ['', ',"items":5'],
    [',"Name":"other"', ''],
    ['', ',"Metadata":{}'],
    ['', ',"items":[]'],
    [`,"generation":${'9'.repeat(400)}`, ''],
    [',"generation":1.5', ''],
    [',"labels":{"a":1}', ''],
    [',"creationTimestamp":"nonsense"', ''],
    [',"ownerReferences":[{"uid":5,"uid":"x"}]', ''],
    ['', ',"Kind":"Other"'],
    ['', ',"kind":"APIBinding"'],
    ['', ',"metadata":null'],
  ] as const;
  for (const [i, [metadata, rest]] of undecodable.entries()) await put(`before-${i}`, textOf(`before-${i}`, metadata, rest));
  await put('good', textOf('good'));

  const store = await opened(t, etcd);
  t.is(store.unreadableKeys, undecodable.length);
  for (const [i, [metadata, rest]] of undecodable.entries()) await put(`behind-${i}`, textOf(`behind-${i}`, metadata, rest));
  await put('good', textOf('good', '', ',"spec":{"x":1E400}'));
  await store.revisions.reachNewest();
  t.is(store.unreadableKeys, 2 * undecodable.length + 1);
  t.is(await store.objects.count(aScope(), undefined, 10), 0);

  await put('good', textOf('good'));
  await store.revisions.reachNewest();
  t.is(store.unreadableKeys, 2 * undecodable.length);
  t.is(await store.objects.count(aScope(), undefined, 10), 1);
  client.close();
});
