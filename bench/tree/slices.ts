/**
 * What do many slices cost a link: when they open, when the policy changes, and without load?
 *
 * 20,000 slices of 22 types are begun on one link, then synced and ended with one object each, and
 * sent to a child. 8,000 of them are resynced after a change of the policy. The other end of each
 * link is bare: it sends and receives what a cache does and stores nothing, so the time is the
 * server's. Turns are those of the server's serving thread, in processor time. The cost of an idle
 * child is the difference that some of them make to the processor time of that thread.
 */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { meteredEnvironment, turnsMs } from '../../test/support/longest-turn.js';
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import type { StrataProcess } from '../../test/support/strata-process.js';
import { BareCache, manySlices, type OfSlice } from '../harness/bare-cache.js';
import { readThreadMs } from '../harness/process-usage.js';
import { readStatus } from '../harness/push-target.js';
import { check, type Answer, type Figure, type Question } from '../harness/question.js';
import { TreeProcesses } from '../harness/tree-processes.js';

const typesEach = kcpTypes.length;
const shardsOpened = 910;
const shardsChanged = 364;
const secondsMax = 1;
const turnMsMax = 20;
/** The time until the last turn is recorded. */
const settleMs = 50;
const idleChildren = 2;
const intervalMs = 5_000;
const idleMsMax = 0.5;
const everything = JSON.stringify([{ types: ['*'] }]);
const nothing = '[]';

export const treeSlices: Question = {
  name: 'tier-slices',
  family: 'tiers',
  asks: 'What do many slices cost a link when they open, when the policy changes, and when nothing happens?',
  needs: ['push'],
  isLong: true,
  async ask({ folder }): Promise<Answer> {
    await using tree = await TreeProcesses.open();
    const turns = await mkdtemp(join(folder, 'turns-'));
    const metered = await tree.start('metered', { environment: meteredEnvironment(turns) });
    const slices = manySlices(shardsOpened * typesEach);
    const changing = shardsChanged * typesEach;

    const feeder = await openFeeder(metered, slices);
    const measured = (work: () => Promise<unknown>): Promise<Work> => worked(metered, turns, work);
    const begun = await measured(() => feeder.begin(slices));
    const received = await measured(() => feeder.send(slices));
    const reported = await measured(() => feeder.report(slices));
    const follower = await BareCache.open(metered, 'follower');
    const opened = await measured(() => follow(follower, slices.length));
    const changed = await measured(async () => {
      const before = follower.ends;
      follower.policy(nothing, policyWithout(slices.slice(changing)));
      await follower.ended(before + changing);
    });
    const asked = await measured(() => readStatus(metered));
    await feeder.close();
    await follower.close();
    await metered.stop();
    const idle = await idleChild(await tree.start('quiet'), slices);
    return {
      figures: [
        ...work(`${slices.length} slices begun on one link`, begun, secondsMax),
        ...work('… synced and ended, with an object each', received),
        ...work('… reported', reported),
        ...work('… and sent to a child', opened),
        ...work(`a policy change with ${changing} slices, at the sender`, changed, secondsMax),
        ...work('a status report of them', asked),
        {
          name: `an idle child with ${slices.length} slices, each ${intervalMs / 1_000} s`,
          value: idle,
          unit: 'ms',
          limit: { kind: 'at most', value: idleMsMax },
          note: `processor time of the serving thread, ${idleChildren} children; milliseconds are noise where others use the machine`,
        },
      ],
      checks: [check('every object was accepted', feeder.refused === 0, `${feeder.refused} were refused`)],
    };
  },
};

async function openFeeder(server: StrataProcess, slices: readonly OfSlice[]): Promise<BareCache> {
  const feeder = await BareCache.open(server, 'feeder');
  feeder.policy(everything, nothing);
  feeder.resume();
  await feeder.claim(slices);
  return feeder;
}

/** Resolves when the follower has received the ends of all slices. */
async function follow(follower: BareCache, slices: number): Promise<void> {
  follower.policy(nothing, everything);
  follower.resume();
  await follower.ended(slices);
}

/** The cost of one more child in each interval. */
async function idleChild(server: StrataProcess, slices: readonly OfSlice[]): Promise<number> {
  const feeder = await openFeeder(server, slices);
  await feeder.begin(slices);
  await feeder.send(slices);
  await feeder.report(slices);
  const alone = await quietMs(server);
  const followers: BareCache[] = [];
  for (let child = 0; child < idleChildren; child++) {
    const follower = await BareCache.open(server, `follower-${child}`);
    followers.push(follower);
    await follow(follower, slices.length);
    follower.sendHeartbeats();
  }
  const followed = await quietMs(server);
  for (const cache of [feeder, ...followers]) await cache.close();
  return Math.max(0, followed - alone) / idleChildren;
}

/** Processor time of the serving thread in one interval, after earlier work is over. */
async function quietMs({ pid }: StrataProcess): Promise<number> {
  await sleep(intervalMs);
  const before = await readThreadMs(pid);
  await sleep(intervalMs);
  return (await readThreadMs(pid)) - before;
}

/**
 * One rule for the shards of these slices, another for all others. Only these slices keep their
 * filter.
 */
function policyWithout(slices: readonly OfSlice[]): string {
  const shards = [...new Set(slices.map(({ slice }) => slice.shard))];
  return JSON.stringify([
    { types: ['*'], shards },
    { types: ['*'], clusters: ['acme'] },
  ]);
}

type Work = Readonly<{ elapsedMs: number; servingMs: number; turnMs: number }>;

async function worked({ pid }: StrataProcess, turns: string, task: () => Promise<unknown>): Promise<Work> {
  const startedAt = performance.now();
  const before = await readThreadMs(pid);
  const turnsBefore = turnsMs(turns).length;
  await task();
  const elapsedMs = performance.now() - startedAt;
  const servingMs = (await readThreadMs(pid)) - before;
  await sleep(settleMs);
  return { elapsedMs, servingMs, turnMs: Math.max(0, ...turnsMs(turns).slice(turnsBefore)) };
}

function work(name: string, { elapsedMs, servingMs, turnMs }: Work, max?: number): readonly Figure[] {
  const note = `${(servingMs / 1_000).toFixed(2)} s of the serving thread`;
  return [
    { name, value: elapsedMs / 1_000, unit: 's', note, ...(max !== undefined && { limit: { kind: 'at most', value: max } }) },
    { name: '  its longest turn', value: turnMs, unit: 'ms', limit: { kind: 'at most', value: turnMsMax } },
  ];
}
