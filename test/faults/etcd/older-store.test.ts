/**
 * An upgrade: a server opens a store that an earlier commit wrote. Finds one that becomes another
 * cache, forgets who has a shard, or shuts its pusher out.
 */
import { test } from '../../support/test.js';
import { formatObjectKey } from '../../../src/store/etcd/object-keys.js';
import { valueOf } from '../../../src/store/etcd/stored-values.js';
import { aBody, aKey, aScope, shardName } from '../../support/objects.js';
import { aClaim, aFullSync, aSlice, anUpsert, mustPush } from '../../support/pushes.js';
import { olderPrefix, olderRecords } from '../../support/store/older-records.js';
import { opened } from './open-stores.js';
import { bytes, members } from './with-members.js';

test('a store of an earlier commit stays the same cache, with its objects, shards, slices and links, and its pusher goes on', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const client = etcd.client();
  const object = { key: bytes(formatObjectKey(olderPrefix, aKey())), value: valueOf(aBody(aKey())) };
  const records = olderRecords.map(([text, , value]) => ({ key: bytes(text), value: bytes(value) }));
  const { revision } = await client.txn({
    compare: [],
    success: [object, ...records].map((each) => ({ kind: 'put', ...each }) as const),
    failure: [],
  });
  client.close();

  const store = await opened(t, etcd);

  t.is(store.cacheId, 'c-older');
  t.true(store.epoch > 7_000_001);
  t.like(store.state.shard(shardName('amber')), { term: 1_000, via: 'local', plain: false, process: 'process-1000' });
  t.like(store.state.shard(shardName('birch')), { via: 'child/east', origin: 'c-east' });
  t.true(store.state.shard(shardName('cedar'))?.removed);
  t.like(store.state.slice(aSlice()), { objects: 1, syncedTerm: 1_000, everSynced: true });
  t.like(store.state.link('parent'), { cacheId: 'c-root', position: '' });
  t.is((await store.objects.get(aKey()))?.revision, revision);
  const lane = store.writer.lane();
  t.deepEqual(await mustPush(lane, [aClaim(), ...aFullSync({}, [anUpsert(), anUpsert({ name: 'two' })])]), [
    'acquired',
    'unchanged',
    'unchanged',
    'written',
    'swept 0',
  ]);
  t.is(await store.objects.count(aScope(), undefined, 10), 2);
});
