import { test } from '../../support/test.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { Rollback } from '../../../src/tree/rollback.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';
import { shardName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';

const position = '1795000000000000000';

test('slices are marked stale until the store has committed that, then pushers are sent away, and the rollback is not repeated', async (t) => {
  const pushes = new FakePushes();
  pushes.publish({ shards: [aShardState(shardName('amber'), 5)] });
  pushes.hold(aSlice());
  const done: string[] = [];
  let ended = deferred<void>();
  const rollback = new Rollback({
    store: { writer: pushes, state: pushes.state, revisions: { published: 7, format: String, locatePosition: () => ({ kind: 'below' }) } },
    log: { warn: () => {} },
    links: () => [{ bye: () => (done.push('link'), ended.resolve()) }],
    sendPushersAway: () => done.push('pushers'),
  });

  pushes.outcomeOf = () => ({ kind: 'unavailable', refusal: { reason: 'InternalError', message: 'the disk is full' } });
  t.true(rollback.detect('parent', position));
  t.false(rollback.detect('parent', position), 'it is under way');
  await ended.promise;
  t.deepEqual(done, ['link']);

  ended = deferred<void>();
  pushes.outcomeOf = () => ({ kind: 'unchanged' });
  t.true(rollback.detect('parent', position));
  await ended.promise;
  t.deepEqual(done, ['link', 'link', 'pushers']);
  t.deepEqual(
    pushes.pushed.map(({ kind }) => kind),
    ['invalidate', 'invalidate'],
  );
  t.false(rollback.detect('parent', position));
});
