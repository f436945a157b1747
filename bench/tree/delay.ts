/**
 * How long does a change take from one leaf of a tree to a watcher at another leaf, over four
 * links?
 *
 *   this process ─push─▶ west leaf ─▶ west ─▶ root ─▶ east ─▶ east leaf ─watch─▶ a load process
 *
 * Five caches run on one machine, with one change at a time. Limits without delay: 12 ms at the
 * median, 40 ms p99. They hold for new processes and for processes after 20,000 changes, whose code
 * is compiled by then.
 *
 * Two more cases put a round trip of 20 and of 250 ms into the two links beside the root. Their
 * limit is the sum of the one-way delays plus 15 ms at the median.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StrataProcess } from '../../test/support/strata-process.js';
import { delaysOf, type Change, type ChangeDelays } from '../harness/change-delays.js';
import { percentile } from '../harness/statistics.js';
import { exportsType } from '../harness/mixed-objects.js';
import { pushTargetOf, readStatus, targetOf, untilHolds } from '../harness/push-target.js';
import { pushedObject, PushingShard, putBatches, sync } from '../harness/pushing-shard.js';
import { check, type Answer, type Bench, type Question } from '../harness/question.js';
import { TreeProcesses } from '../harness/tree-processes.js';

const { version } = exportsType;
const shard = 'leafy';
const objects = 50;
const changesUnloaded = 400;
const changesDelayed = 60;
/** Changes sent before the measured ones, and the time that they take to arrive. */
const changesBefore = 20_000;
const changesBeforeMs = 5_000;
const medianMsMax = 12;
const p99MsMax = 40;
const medianBesideWaysMsMax = 15;

/** `roundsBefore`: how often each object has changed before. */
type Case = Readonly<{ roundTripMs: number; roundsBefore: number }>;

const cases: readonly Case[] = [
  { roundTripMs: 0, roundsBefore: 0 },
  { roundTripMs: 0, roundsBefore: changesBefore / objects },
  { roundTripMs: 20, roundsBefore: 0 },
  { roundTripMs: 250, roundsBefore: 0 },
];

export const treeDelay: Question = {
  name: 'tier-delay',
  family: 'tiers',
  asks: 'How long does a change take from one leaf to a watcher at another, over four links?',
  needs: ['push'],
  isLong: true,
  async ask(bench) {
    const answers: Answer[] = [];
    for (const each of cases) answers.push(await askWith(bench, each));
    return { figures: answers.flatMap(({ figures }) => figures), checks: answers.flatMap(({ checks }) => checks) };
  },
};

async function askWith(bench: Bench, { roundTripMs, roundsBefore }: Case): Promise<Answer> {
  const changes = roundTripMs === 0 ? changesUnloaded : changesDelayed;
  await using tree = await TreeProcesses.open();
  const delayMs = roundTripMs / 2;
  const root = await tree.start('root');
  const proxy = delayMs === 0 ? undefined : await tree.proxyTo(root);
  proxy?.delay(delayMs);
  const link = { parent: root, ...(proxy === undefined ? {} : { proxy }) };
  const west = await tree.start('west', link);
  const east = await tree.start('east', link);
  const plainWrites = await tree.start('west-leaf', { parent: west });
  const far = await tree.start('east-leaf', { parent: east });
  const { delaysMs, isWhole, seen } = await measure(bench, { plainWrites, far, changes, roundsBefore });

  const name = nameOf({ roundTripMs, roundsBefore });
  const waysMs = 2 * delayMs;
  const p50: Answer['figures'][number] = {
    name: `${name}: p50`,
    value: percentile(delaysMs, 0.5),
    unit: 'ms',
    limit: { kind: 'at most', value: roundTripMs === 0 ? medianMsMax : waysMs + medianBesideWaysMsMax },
    note: `${changes} changes, the latest ${Math.max(...delaysMs).toFixed(1)} ms`,
  };
  const p99: Answer['figures'][number] = { name: `${name}: p99`, value: percentile(delaysMs, 0.99), unit: 'ms' };
  return {
    figures: [p50, roundTripMs === 0 ? { ...p99, limit: { kind: 'at most', value: p99MsMax } } : p99],
    checks: [check(`${name}: every change is seen once, in order`, isWhole, `${seen} of ${changes}`)],
  };
}

function nameOf({ roundTripMs, roundsBefore }: Case): string {
  if (roundTripMs > 0) return `four links, ${roundTripMs} ms of round trip in two`;
  return roundsBefore === 0 ? 'four links' : `four links, ${roundsBefore * objects} changes later`;
}

async function measure(
  { load }: Bench,
  {
    plainWrites,
    far,
    changes,
    roundsBefore,
  }: Readonly<{ plainWrites: StrataProcess; far: StrataProcess; changes: number; roundsBefore: number }>,
): Promise<ChangeDelays> {
  const pushing = await PushingShard.open(await pushTargetOf(plainWrites), shard);
  try {
    await pushing.send(sync(putBatches(shard, objects, 0)));
    await untilHolds(far, shard, objects);
    for (let round = 1; round <= roundsBefore; round++) await pushing.send(putBatches(shard, objects, round));
    if (roundsBefore > 0) await sleep(changesBeforeMs);
    const { resourceVersion } = (await readStatus(far)).cache;
    function* measured(): Generator<Change> {
      for (let count = 0; count < changes; count++) {
        const [index, round] = [count % objects, roundsBefore + 1 + Math.floor(count / objects)];
        const object = pushedObject(shard, index, round);
        yield { index, round, send: () => pushing.send([[{ kind: 'put', version, object }]]) };
      }
    }
    return await delaysOf(load, { target: targetOf(far), shard, resourceVersion }, measured());
  } finally {
    await pushing.close();
  }
}
