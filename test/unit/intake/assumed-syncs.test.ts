import { setImmediate as turn } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { ShardState } from '../../../src/domain/claim.js';
import { AssumedSyncs } from '../../../src/intake/writes/assumed-syncs.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { shardName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';

const amber = shardName('amber');
const quietMs = 30_000;

async function someAssumedSyncs(shard: ShardState, { syncedTerm = 0 } = {}) {
  const clock = new ManualClock();
  const pushes = new FakePushes();
  pushes.publish({ shards: [shard] });
  pushes.hold(aSlice(), { syncedTerm });
  const logged: string[] = [];
  const write = (event: string): void => void logged.push(event);
  const log = { debug: write, info: write, warn: write, error: write, child: () => log };
  const known = pushes.state;
  const since = { ms: clock.now() };
  const writers = new AssumedSyncs(
    { writer: pushes, known, clock, log, runningSinceMs: () => since.ms, isLeader: () => true },
    { quietMs },
  );
  const changed = (): void => {
    const [state] = pushes.state.slices;
    if (state !== undefined) pushes.publish({ slices: [{ ...state, changedMs: clock.now() }] });
  };
  const advance = async (ms: number): Promise<void> => {
    for (let leftMs = ms; leftMs > 0; leftMs -= 1_000) {
      clock.advance(Math.min(1_000, leftMs));
      await turn();
    }
  };
  return { clock, since, pushes, writers, logged, changed, advance };
}

const plain = aShardState(amber, 5, { plain: true });

test('a plain writer’s objects count as synced once it has been quiet for a while, counted from the start', async (t) => {
  const { pushes, advance, logged, writers } = await someAssumedSyncs(plain);

  await advance(quietMs - 1_000);
  t.deepEqual(pushes.pushed, []);
  await advance(1_000);

  t.deepEqual(pushes.pushed, [{ kind: 'assume', shard: amber }]);
  t.deepEqual(logged, ['shard.assumed-synced']);
  writers.close();
});

test('every change restarts the quiet time', async (t) => {
  const { pushes, advance, changed, writers } = await someAssumedSyncs(plain);

  await advance(20_000);
  changed();
  await advance(quietMs - 1_000);
  t.deepEqual(pushes.pushed, []);
  await advance(1_000);

  t.is(pushes.pushed.length, 1);
  writers.close();
});

test('no sync is assumed for a synced slice, a pusher’s shard, or a shard with another via', async (t) => {
  const table: readonly (readonly [ShardState, number])[] = [
    [plain, 5],
    [aShardState(amber, 5), 0],
    [aShardState(amber, 5, { plain: true, via: 'parent' }), 0],
    [aShardState(amber, 5, { plain: true, removed: true }), 0],
  ];
  for (const [shard, syncedTerm] of table) {
    const { pushes, advance, writers } = await someAssumedSyncs(shard, { syncedTerm });

    await advance(2 * quietMs);

    t.deepEqual(pushes.pushed, []);
    writers.close();
  }
});

test('after close nothing is checked any more', async (t) => {
  const { pushes, advance, writers, clock } = await someAssumedSyncs(plain);

  writers.close();
  await advance(2 * quietMs);

  t.deepEqual(pushes.pushed, []);
  t.is(clock.pending, 0);
});

test('a plain writer that wrote nothing while this process was paused does not count as quiet', async (t) => {
  const { clock, since, pushes, advance, writers } = await someAssumedSyncs(plain);

  clock.skip(2 * quietMs);
  since.ms = clock.now();
  await advance(quietMs - 1_000);
  t.deepEqual(pushes.pushed, []);
  await advance(1_000);

  t.deepEqual(pushes.pushed, [{ kind: 'assume', shard: amber }]);
  writers.close();
});
