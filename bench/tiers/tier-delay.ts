/**
 * How long does a change take from one leaf of a tree to a watcher at another, over four links?
 *
 *   this process ──push──▶ west leaf ─▶ west ─▶ root ─▶ east ─▶ east leaf ──watch──▶ a load process
 *
 * Five caches on one machine, one change at a time. Unloaded: median at most 12 ms, p99 at most 40 ms, for processes that have just
 * started and for processes after 20,000 changes, whose code is compiled by then. With a round trip of 20 and of 250 ms put into
 * the two links beside the root: the sum of the ways there plus 15 ms at the median.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StrataProcess } from '../../test/support/strata-process.js';
import { wallClock } from '../harness/jobs.js';
import { percentile } from '../harness/statistics.js';
import { group, resource, version, wildcardPath } from '../harness/objects.js';
import { pushTargetOf, readStatus } from '../harness/push-target.js';
import { pushedObject, PushingShard, putBatches, sync } from '../harness/pushing-shard.js';
import { check, type Answer, type Bench, type Question } from '../harness/question.js';
import { TreeProcesses } from '../harness/tree-processes.js';

const shard = 'leafy';
const objects = 50;
const changesUnloaded = 400;
const changesDelayed = 60;
const pauseMs = 20;
/** Changes sent before those that are measured, and the time they need to get through. */
const changesBefore = 20_000;
const changesBeforeMs = 5_000;
const medianMsMax = 12;
const p99MsMax = 40;
const medianBesideWaysMsMax = 15;
const syncedMsMax = 60_000;
const lateMsMax = 10_000;
const pollMs = 50;

/** `roundsBefore`: how often each object has changed before. */
type Case = Readonly<{ roundTripMs: number; roundsBefore: number }>;

const cases: readonly Case[] = [
  { roundTripMs: 0, roundsBefore: 0 },
  { roundTripMs: 0, roundsBefore: changesBefore / objects },
  { roundTripMs: 20, roundsBefore: 0 },
  { roundTripMs: 250, roundsBefore: 0 },
];

type Delays = Readonly<{ delaysMs: readonly number[]; isWhole: boolean; seen: number }>;

export const tierDelay: Question = {
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
  const plainOrigin = await tree.start('west-leaf', { parent: west });
  const far = await tree.start('east-leaf', { parent: east });
  const { delaysMs, isWhole, seen } = await measure(bench, { plainOrigin, far, changes, roundsBefore });

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
    plainOrigin,
    far,
    changes,
    roundsBefore,
  }: Readonly<{ plainOrigin: StrataProcess; far: StrataProcess; changes: number; roundsBefore: number }>,
): Promise<Delays> {
  const pushing = await PushingShard.open(await pushTargetOf(ends(plainOrigin)), shard);
  try {
    await pushing.send(sync(putBatches(shard, objects, 0)));
    await arrived(far);
    for (let round = 1; round <= roundsBefore; round++) await pushing.send(putBatches(shard, objects, round));
    if (roundsBefore > 0) await sleep(changesBeforeMs);
    const { resourceVersion } = (await readStatus({ server: far })).cache;
    const watching = load.begin('witness', {
      target: ends(far).target,
      protocol: 'HTTP/1.1',
      watchers: 1,
      path: wildcardPath,
      shard,
      resourceVersion,
      lateMsMax,
    });
    await watching.ready;
    const sentAt = new Map<string, number>();
    for (let count = 0; count < changes; count++) {
      const [index, round] = [count % objects, roundsBefore + 1 + Math.floor(count / objects)];
      const object = pushedObject(shard, index, round);
      sentAt.set(`${index}|${round}`, wallClock());
      await pushing.send([[{ kind: 'put', version, object }]]);
      await sleep(pauseMs);
    }
    watching.send(changes);
    const { indexes, rounds, seenAt } = await watching.answer;
    const delaysMs = Array.from(indexes, (index, at) => seenAt[at]! - (sentAt.get(`${index}|${rounds[at]}`) ?? Number.NaN));
    const inOrder = [...sentAt.keys()].every((sent, at) => sent === `${indexes[at]}|${rounds[at]}`);
    return { delaysMs, isWhole: indexes.length === changes && inOrder, seen: indexes.length };
  } finally {
    await pushing.close();
  }
}

function ends(server: StrataProcess) {
  return { server, target: { port: server.port, certificate: server.master.certificate, key: server.master.key } };
}

async function arrived(server: StrataProcess): Promise<void> {
  const deadline = performance.now() + syncedMsMax;
  for (;;) {
    const { shards } = await readStatus({ server });
    const slice = shards.find((one) => one.shard === shard)?.slices.find((one) => one.group === group && one.resource === resource);
    if (slice?.objects === objects) return;
    if (performance.now() > deadline) throw new Error(`the shard has not come to the other leaf: ${JSON.stringify(slice)}`);
    await sleep(pollMs);
  }
}
