/** Keys and values that others have put into etcd, and that nobody can read: they stop nothing, and what is written there replaces them. */
import test from 'ava';
import type { Push } from '../../src/domain/push.js';
import { formatClientKey } from '../../src/domain/key.js';
import { formatObjectKey } from '../../src/store/etcd/object-keys.js';
import { formatRecordKey } from '../../src/store/etcd/records.js';
import { aKey, aPut, aScope, shardName } from '../support/objects.js';
import { aClaim, aFullSync, aSlice, anUpsert, mustPush } from '../support/pushes.js';
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
      await store.reachNewest();

      if (ask === undefined) {
        for (const name of ['one', 'two']) t.is((await store.submit(aPut({ name }, 'absent'))).kind, 'written');
      } else await mustPush(store.lane(), ask as readonly Push[]);

      t.is(await store.count(aScope(), undefined, 10), 2);
      client.close();
    });
