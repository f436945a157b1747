/**
 * What does each of many children with equal policies cost its parent?
 *
 * The children are bare: they send a heartbeat once a second, receive frames, and store nothing.
 * Each figure is processor time of the parent's serving thread for each child. It is measured
 * without load, and for changes that all or none of them get, single and in bulk. It is also
 * measured when all reconnect and have missed changes. The parent's time without children is
 * subtracted.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StrataProcess } from '../../test/support/strata-process.js';
import { BareCache, type Memory } from '../harness/bare-cache.js';
import { exportsType } from '../harness/mixed-objects.js';
import { readThreadMs } from '../harness/process-usage.js';
import { pushTargetOf } from '../harness/push-target.js';
import { pushedObject, PushingShard, putBatches, sync } from '../harness/pushing-shard.js';
import { check, type Figure, type Question } from '../harness/question.js';
import { TreeProcesses } from '../harness/tree-processes.js';

const { version } = exportsType;
const shard = 'crossing';
const children = 60;
const objects = 500;
const singles = 50;
const idleMs = 10_000;
const intervalMs = 5_000;
const idleMsMax = 0.5;
/** By then the parent has finished its own work. */
const settleMs = 1_500;
const everything = JSON.stringify([{ types: ['*'] }]);
const onlyPublic = JSON.stringify([{ annotations: { 'example.io/visibility': 'public' } }]);
const nothing = '[]';

export const treeChildren: Question = {
  name: 'tier-children',
  family: 'tiers',
  asks: 'What does each of many children with equal policies cost its parent?',
  needs: ['push'],
  isLong: true,
  async ask() {
    await using tree = await TreeProcesses.open();
    const parent = await tree.start('parent', { flags: [`--push-sessions-per-caller-max=${children + 1}`] });
    const pushing = await PushingShard.open(await pushTargetOf(parent), shard);
    let round = 0;
    const many = (): Promise<number> => pushing.send(putBatches(shard, objects, (round += 1)));
    const oneByOne = async (): Promise<void> => {
      round += 1;
      for (let i = 0; i < singles; i++) await pushing.send([[{ kind: 'put', version, object: pushedObject(shard, i, round) }]]);
    };
    const quiet = (): Promise<unknown> => sleep(idleMs);
    try {
      await pushing.send(sync(putBatches(shard, objects, 0)));
      // Warm up, because the first time is slower.
      await oneByOne();
      const alone = { single: await work(parent, oneByOne), many: await work(parent, many), idle: await work(parent, quiet) };

      const following: BareCache[] = [];
      for (let i = 0; i < children; i++) following.push(await follow(parent, i));
      for (const child of following) await child.changed(objects);
      const each = (withThem: number, without: number, of: number): number => Math.max(0, withThem - without) / children / of;
      const crosses = async (task: () => Promise<unknown>, changes: number): Promise<number> => {
        const counts = following.map((child) => child.changes + changes);
        return work(parent, async () => {
          await task();
          for (const [i, child] of following.entries()) await child.changed(counts[i]!);
        });
      };
      const crossing = { single: await crosses(oneByOne, singles), many: await crosses(many, objects) };
      const idle = await work(parent, quiet);

      const held = following.map(({ memory }) => memory);
      for (const child of following) child.terminate();
      await sleep(settleMs);
      await many();
      const returning: BareCache[] = [];
      const returned = await work(parent, async () => {
        for (const [i, memory] of held.entries()) returning.push(await follow(parent, i, memory));
        for (const child of returning) await child.changed(objects);
      });
      const resynced = returning.reduce((sum, { ends }) => sum + ends, 0);

      for (const child of returning) child.policy(nothing, onlyPublic);
      for (const child of returning) await child.ended(1);
      const before = returning.reduce((sum, { changes }) => sum + changes, 0);
      const keeping = { single: await work(parent, oneByOne), many: await work(parent, many) };
      const crossed = returning.reduce((sum, { changes }) => sum + changes, 0) - before;
      for (const child of returning) child.terminate();
      return {
        figures: [
          {
            ...figure(`idle, each ${intervalMs / 1_000} s`, (each(idle, alone.idle, 1) * intervalMs) / idleMs, 'ms'),
            limit: { kind: 'at most', value: idleMsMax },
            note: `${children} children, each asks once a second`,
          },
          figure('a change that is let through, one at a time', each(crossing.single, alone.single, singles) * 1_000),
          figure(`a change that is let through, ${objects} at once`, each(crossing.many, alone.many, objects) * 1_000),
          figure('a change that is kept from it, one at a time', each(keeping.single, alone.single, singles) * 1_000),
          figure(`a change that is kept from it, ${objects} at once`, each(keeping.many, alone.many, objects) * 1_000),
          figure(`coming back to ${objects} changes`, each(returned, 0, 1), 'ms'),
        ],
        checks: [
          check('nothing was resynced when they came back', resynced === 0, `${resynced} slices were`),
          check('no change was sent that is kept from them', crossed === 0, `${crossed} changes did`),
        ],
      };
    } finally {
      await pushing.close();
    }
  },
};

async function follow(parent: StrataProcess, index: number, memory?: Memory): Promise<BareCache> {
  const child = await BareCache.open(parent, `child-${index}`, parent.master);
  child.policy(nothing, everything);
  child.resume(memory);
  child.sendHeartbeats();
  return child;
}

/** Processor time of the serving thread during the task. */
async function work({ pid }: StrataProcess, task: () => Promise<unknown>): Promise<number> {
  await sleep(settleMs);
  const before = await readThreadMs(pid);
  await task();
  return (await readThreadMs(pid)) - before;
}

function figure(name: string, value: number, unit = 'µs'): Figure {
  return { name, value, unit };
}
