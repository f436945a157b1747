import { test } from '../../support/test.js';
import { Refused } from '../../../src/domain/errors.js';
import { leftLink } from '../../../src/domain/push.js';
import { childNeighbour } from '../../../src/domain/via.js';
import { Forgetting } from '../../../src/tree/forgetting.js';
import { FakePushes } from '../../support/intake/fake-pushes.js';

const eu = childNeighbour('eu');

test('if the store forgot a child without an answer, the operator’s next request drops it from memory too', async (t) => {
  const store = new FakePushes();
  store.publish({ links: [{ neighbour: eu, cacheId: 'eu-1', position: '' }] });
  const gone: string[] = [];
  const forgetting = new Forgetting({
    store,
    children: { find: () => undefined, without: (_, run) => run() },
    childShards: { leave: (neighbour) => gone.push(`shards of ${neighbour}`) },
    onForgotten: (neighbour) => gone.push(neighbour),
    log: { info: () => {} },
  });
  store.outcomeOf = () => {
    store.publish({ links: [leftLink(eu)] });
    return { kind: 'unavailable', refusal: { reason: 'ServiceUnavailable', message: 'etcd has not answered' } };
  };

  await t.throwsAsync(forgetting.leave('eu'), { instanceOf: Refused });
  t.deepEqual(gone, []);

  t.is(await forgetting.leave('eu'), undefined);
  t.deepEqual(gone, [`shards of ${eu}`, eu]);
});
