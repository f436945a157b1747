/**
 * What does a child cost its parent for changes that the policy keeps from it?
 *
 * The same changes are pushed to a parent without children, and to one whose children follow only
 * public objects. No object is public. The cost of a child for a change is the difference in
 * processor time: the parent matches the change and sends nothing.
 */
import { readProcessorMs } from '../harness/process-usage.js';
import { pushTargetOf, readStatus } from '../harness/push-target.js';
import { PushingShard, putBatches, sync } from '../harness/pushing-shard.js';
import { check, type Question } from '../harness/question.js';
import { TreeProcesses } from '../harness/tree-processes.js';

const shard = 'private';
const children = 2;
const onlyPublic = '[{annotations: {example.io/visibility: public}}]';
/**
 * The limit for each change and child. The parent reads the labels, annotations and path of an
 * object once for all children, and matches them.
 */
const microsecondsMax = 40;

export const treeFilter: Question = {
  name: 'tier-filter',
  family: 'tiers',
  asks: 'What does a child cost its parent for changes that the policy keeps from it?',
  needs: ['push'],
  isLong: true,
  async ask({ options: { objects } }) {
    await using tree = await TreeProcesses.open();
    const parent = await tree.start('parent');
    const pushing = await PushingShard.open(await pushTargetOf(parent), shard);
    let round = 0;
    const costOfRound = async (): Promise<number> => {
      round += 1;
      const batches = putBatches(shard, objects, round);
      const before = await readProcessorMs(parent.pid);
      await pushing.send(batches);
      return ((await readProcessorMs(parent.pid)) - before) / objects;
    };
    try {
      await pushing.send(sync(putBatches(shard, objects, 0)));
      await costOfRound();
      const alone = Math.min(await costOfRound(), await costOfRound());
      const following = [];
      for (let child = 0; child < children; child++) {
        following.push(await tree.start(`child-${child}`, { parent, follow: onlyPublic, forward: '[]' }));
      }
      const followed = Math.min(await costOfRound(), await costOfRound());
      const held = await Promise.all(following.map(async (server) => (await readStatus(server)).shards.flatMap(({ slices }) => slices)));
      const objectsHeld = held.flat().reduce((sum, slice) => sum + slice.objects, 0);
      return {
        figures: [
          { name: 'a change at the parent alone', value: alone * 1_000, unit: 'µs' },
          {
            name: 'more for each child that it is kept from',
            value: ((followed - alone) * 1_000) / children,
            unit: 'µs',
            limit: { kind: 'at most', value: microsecondsMax },
            note: `${objects} changes, ${children} children, processor time of the parent`,
          },
        ],
        checks: [check('nothing of it is at the children', objectsHeld === 0, `${objectsHeld} objects are`)],
      };
    } finally {
      await pushing.close();
    }
  },
};
