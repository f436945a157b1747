/** Which objects `copyStore` copies. `faults/etcd/copy` copies whole stores between the engines. */
import { test } from '../../support/test.js';
import { copyStore } from '../../../src/store/copy-store.js';
import { list } from '../../contract/read-all.js';
import { aPut, aScope, shardName } from '../../support/objects.js';
import { aClaim, aFullSync, anUpsert, mustPush } from '../../support/pushes.js';
import { openTestStore, storeDirectory, write } from '../../support/test-store.js';

test('the objects of a shard whose removal has not ended are not copied, and the shard stays removed', async (t) => {
  const [from, to] = [await openTestStore(storeDirectory(t)), await openTestStore(storeDirectory(t))];
  t.teardown(() => Promise.all([from.close(), to.close()]));
  await mustPush(from.writer.lane(), [
    aClaim({ via: 'parent' }),
    ...aFullSync({}, [anUpsert({ name: 'left' }, {}, 'parent'), anUpsert({ name: 'over' }, {}, 'parent')], 'parent', 'all'),
    aClaim({ via: 'parent', term: 2_000, removed: true }),
  ]);
  await write(from, aPut({ shard: 'birch', name: 'kept' }, 'absent'));

  const copied = await copyStore(from, to, () => {});

  t.like(copied, { objects: 1, left: 2 });
  t.deepEqual(
    (await list(to, aScope())).map(({ key }) => key.name),
    ['kept'],
  );
  t.like(to.state.shard(shardName('amber')), { removed: true, via: undefined });
});
