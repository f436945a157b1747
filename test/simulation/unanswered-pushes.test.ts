/**
 * A push that the store answered as unavailable may be stored all the same (`PushOutcome`). Pushers
 * and links must push again until every cache holds what the model says.
 */
import { test } from '../support/test.js';
import { aGrownTree } from './a-grown-tree.js';
import { fractions, streamOf } from './seeded-random.js';
import { aSimObject } from './sim-objects.js';
import { UnansweredPushes } from './unanswered-pushes.js';

test('a tree whose stores leave stored pushes unanswered ends as one whose stores answer all pushes', async (t) => {
  const unanswered = new UnansweredPushes(fractions(streamOf(Number(process.env['TEST_SEED'] ?? 7), 'unanswered')));
  const { world, tree, amber, birch } = await aGrownTree({}, { unanswered });
  unanswered.share = 0.2;
  for (let i = 0; i < 120; i += 1) {
    if (i % 20 === 10) tree.plainWrites(amber, i % 40 === 10 ? 'us' : 'eu-1');
    for (const [shard, pusher] of [
      ['amber', amber],
      ['birch', birch],
    ] as const) {
      pusher.put(aSimObject({ shard, name: `n${i % 12}` }, { spec: { content: i } }));
      pusher.remove(aSimObject({ shard, name: `n${(i * 5) % 12}` }).key);
    }
    await world.time.advance(500);
  }
  unanswered.share = 0;

  await tree.converge(120_000);

  for (const kind of ['acquire', 'meet', 'claim', 'reach', 'begin', 'end', 'upsert', 'retract'] as const)
    t.true((unanswered.stored.get(kind) ?? 0) > 0, `no ${kind} was stored without an answer`);
  t.deepEqual(world.faults, []);
});
