import { test } from '../../support/test.js';
import { unknownShard } from '../../../src/domain/claim.js';
import { Refused } from '../../../src/domain/errors.js';
import { leftLink } from '../../../src/domain/push.js';
import { childNeighbour } from '../../../src/domain/via.js';
import { Forgetting } from '../../../src/tier/forgetting.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';
import { shardName } from '../../support/objects.js';

const eu = childNeighbour('eu');
const amber = shardName('amber');

test('if the store forgot a shard or child without an answer, the operator’s next request drops it from memory too', async (t) => {
  const store = new FakePushes();
  store.publish({ shards: [aShardState(amber, 6, { removed: true })], links: [{ neighbour: eu, cacheId: 'eu-1', position: '' }] });
  const gone: string[] = [];
  const forgetting = new Forgetting({
    store,
    children: { find: () => undefined, without: (_, run) => run() },
    routes: { claimants: () => [], hasRemoved: () => true },
    childShards: { leave: (neighbour) => gone.push(`shards of ${neighbour}`), forget: (shard) => gone.push(shard) },
    hasParent: false,
    hasReported: () => true,
    onForgotten: (neighbour) => gone.push(neighbour),
    log: { info: () => {} },
  });
  store.outcomeOf = ({ kind }) => {
    store.publish(kind === 'leave' ? { links: [leftLink(eu)] } : { shards: [unknownShard(amber)] });
    return { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'etcd has not answered' } };
  };

  await t.throwsAsync(forgetting.leave('eu'), { instanceOf: Refused });
  await t.throwsAsync(forgetting.forget(amber), { instanceOf: Refused });
  t.deepEqual(gone, []);

  t.is(await forgetting.leave('eu'), undefined);
  t.false(await forgetting.forget(amber));
  t.deepEqual(gone, [`shards of ${eu}`, eu, amber]);
});
