/**
 * How long does a statement of objects that are all there already take?
 *
 * This is a shard's pusher that was restarted. At most 1 s, no revision is given, and a watch of everything sees nothing.
 */
import { median } from './harness/jobs.js';
import { wildcardPath } from './harness/objects.js';
import { pushTargetOf, readStatus } from './harness/push-target.js';
import { check, type Question } from './harness/question.js';
import { formatShare } from './harness/report.js';

const secondsMax = 1;
const rounds = 5;
const shard = 'restated';
/** One change of this one comes last, so that the watch has had its time and is known to be there. */
const lastShard = 'restated-last';
const lateMsMax = 10_000;

export const restate: Question = {
  name: 'restate',
  asks: 'How long does a statement of objects take that are all there already?',
  pushes: true,
  async ask(bench) {
    const { load, secondLoad, options } = bench;
    const { objects } = options;
    const target = await pushTargetOf(bench);
    const job = { target, shard, objects, round: 0, thenChanges: false };
    await load.ask('push', job);

    const before = await readStatus(bench);
    const { resourceVersion } = before.cache;
    const watching = secondLoad.begin('witness', { target, path: wildcardPath, shard: lastShard, resourceVersion, lateMsMax });
    await watching.ready;
    const stated: number[] = [];
    let refused = 0;
    for (let round = 0; round < rounds; round++) {
      const one = await load.ask('push', job);
      stated.push(one.stateMs);
      refused += one.refused;
    }
    const busy = load.busy;
    const after = await readStatus(bench);
    await load.ask('push', { ...job, shard: lastShard, objects: 1 });
    watching.tell(1);
    const { indexes, others } = await watching.answer;
    const slice = after.shards.find((one) => one.shard === shard)?.slices[0];
    return {
      figures: [
        {
          name: 'statement of unchanged objects',
          value: median(stated) / 1_000,
          unit: 's',
          limit: { kind: 'at most', value: secondsMax },
          note: `${rounds} rounds of ${objects}; client ${formatShare(busy)} busy`,
        },
        { name: 'slowest of them', value: Math.max(...stated) / 1_000, unit: 's' },
      ],
      checks: [
        check('nothing that was stated is refused', refused === 0, `${refused} are`),
        check(
          'a statement of what is there gives no revision',
          after.cache.resourceVersion === resourceVersion,
          `${resourceVersion} before, ${after.cache.resourceVersion} after`,
        ),
        check('a watch of everything sees nothing of it', others === 0, `it saw ${others} events`),
        check('the watch was there: it sees the next change', indexes.length === 1, `it saw ${indexes.length}`),
        check(
          'the slice counts as stated, with every object',
          slice?.stated === 'current' && slice.objects === objects,
          `${slice?.stated}, ${slice?.objects} objects`,
        ),
      ],
    };
  },
};
