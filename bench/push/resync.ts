/**
 * How long does a sync take if all of its objects are already there?
 *
 * This is a shard's restarted pusher. Limits: 1 s, no new revision, and no event at a watch of
 * everything.
 */
import { median } from '../harness/statistics.js';
import { wildcardPath } from '../harness/mixed-objects.js';
import { pushTargetOf, readStatus } from '../harness/push-target.js';
import { check, type Question } from '../harness/question.js';
import { formatShare } from '../harness/report.js';

const secondsMax = 1;
const rounds = 5;
const shard = 'restated';
/**
 * One change of this object comes last. It gives the watch time for late events, and proves that
 * the watch works.
 */
const lastShard = 'restated-last';
const lateMsMax = 10_000;

export const resync: Question = {
  name: 'resync',
  family: 'push',
  asks: 'How long does a sync take if all of its objects are already there?',
  needs: ['push'],
  isLong: true,
  async ask(bench) {
    const { load, secondLoad, options } = bench;
    const { objects } = options;
    const target = await pushTargetOf(bench.server);
    const job = { target, shard, objects, round: 0, thenChanges: false };
    await load.ask('push', job);

    const before = await readStatus(bench.server);
    const { resourceVersion } = before.cache;
    const watching = secondLoad.begin('witness', {
      target,
      protocol: 'HTTP/1.1',
      watchers: 1,
      path: wildcardPath,
      shard: lastShard,
      resourceVersion,
      lateMsMax,
    });
    await watching.ready;
    const synced: number[] = [];
    let refused = 0;
    for (let round = 0; round < rounds; round++) {
      const one = await load.ask('push', job);
      synced.push(one.syncMs);
      refused += one.refused;
    }
    const busy = load.busy;
    const after = await readStatus(bench.server);
    await load.ask('push', { ...job, shard: lastShard, objects: 1 });
    watching.send(1);
    const { indexes, others } = await watching.answer;
    const slice = after.shards.find((one) => one.shard === shard)?.slices[0];
    return {
      figures: [
        {
          name: 'sync of unchanged objects',
          value: median(synced) / 1_000,
          unit: 's',
          limit: { kind: 'at most', value: secondsMax },
          note: `${rounds} rounds of ${objects}; client ${formatShare(busy)} busy`,
        },
        { name: 'slowest of them', value: Math.max(...synced) / 1_000, unit: 's' },
      ],
      checks: [
        check('no synced object is refused', refused === 0, `${refused} are`),
        check(
          'a sync of existing objects gives no revision',
          after.cache.resourceVersion === resourceVersion,
          `${resourceVersion} before, ${after.cache.resourceVersion} after`,
        ),
        check('a watch of everything sees nothing of it', others === 0, `it saw ${others} events`),
        check('the watch works: it sees the next change', indexes.length === 1, `it saw ${indexes.length}`),
        check(
          'the slice counts as synced, with every object',
          slice?.syncedIn === 'this-term' && slice.objects === objects,
          `${slice?.syncedIn}, ${slice?.objects} objects`,
        ),
      ],
    };
  },
};
