/**
 * What does a flooding pusher cost other clients and the server's memory?
 *
 * For some seconds one session changes its 2,000 objects without end, as fast as the server
 * accepts. Another sends without waiting for acknowledgements, and reconnects when it is cut off.
 * Meanwhile a third client writes 50 objects a second. Limits:
 * - 50 ms p99 from the sending of a write to its event at a watch of that client's shard.
 * - 96 MiB growth of resident memory over its size after an ordinary sync.
 *
 * A second run has a watch of everything, which also receives the flood. Its delay has no limit.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Flooded, PushTarget, Witnessed, Written } from '../harness/jobs.js';
import { percentile } from '../harness/statistics.js';
import { collectionPath, exportsType, wildcardPath } from '../harness/mixed-objects.js';
import { readProcessMemory } from '../harness/process-usage.js';
import { pushTargetOf, readStatus } from '../harness/push-target.js';
import { check, type Bench, type Check, type Figure, type Question } from '../harness/question.js';
import { formatNumber, formatShare } from '../harness/report.js';

const floodMs = 8_000;
const objects = 2_000;
/** More than the server keeps in memory of what was pushed last. */
const ordinaryObjects = 15_000;
const steadyObjects = 200;
const everyMs = 20;
const delayMsMax = 50;
/**
 * Growth beyond an ordinary sync: two sessions' credit and their commits, sent and not yet
 * collected.
 */
const grownMbMax = 96;
const lateMsMax = 10_000;
const sampleEveryMs = 100;
const megabyte = 1024 ** 2;

type Round = Readonly<{ flooded: Flooded; written: Written; witnessed: Witnessed; delaysMs: readonly number[]; peakBytes: number }>;

export const flood: Question = {
  name: 'flood',
  family: 'push',
  asks: 'What does a pusher that floods cost others, and the memory of the server?',
  needs: ['push'],
  isLong: true,
  async ask(bench) {
    const target = await pushTargetOf(bench.server);
    const fresh = await readProcessMemory(bench.server.pid);
    await bench.load.ask('push', { target, shard: 'ordinary', objects: ordinaryObjects, round: 0, thenChanges: false });
    const before = await readProcessMemory(bench.server.pid);
    const quiet = await measure(bench, target, { shard: 'calm', path: collectionPath(exportsType, 'calm'), isFlooded: false });
    const scoped = await measure(bench, target, { shard: 'steady', path: collectionPath(exportsType, 'steady'), isFlooded: true });
    const { busy } = bench.load;
    const wide = await measure(bench, target, { shard: 'steady-wide', path: wildcardPath, isFlooded: true });
    const perSecond = ({ pushed, elapsedMs }: Flooded): number => pushed / (elapsedMs / 1_000);
    return {
      figures: [
        ...delays('watch delay', scoped, { limit: { kind: 'at most', value: delayMsMax } }, quiet),
        ...delays('watch of everything, delay', wide, {}, undefined),
        { name: 'write answered p99', value: scoped.written.p99Ms, unit: 'ms', ceiling: quiet.written.p99Ms },
        {
          name: 'changes pushed meanwhile',
          value: perSecond(scoped.flooded),
          unit: '/s',
          note: `${scoped.flooded.pushed} in all; client ${formatShare(busy)} busy; beside a watch of everything ${formatNumber(perSecond(wide.flooded))} /s`,
        },
        {
          name: 'resident memory grows by',
          value: (Math.max(scoped.peakBytes, wide.peakBytes) - before.residentBytes) / megabyte,
          unit: 'MiB',
          limit: { kind: 'at most', value: grownMbMax },
          note: `from ${formatNumber(before.residentBytes / megabyte)} MiB after a sync of ${ordinaryObjects}, ${formatNumber(fresh.residentBytes / megabyte)} before that`,
        },
        {
          name: 'sent without waiting',
          value: scoped.flooded.rawSent,
          unit: 'objects',
          note: `${scoped.flooded.rawSessions} sessions: ${scoped.flooded.rawEnds.join(', ')}`,
        },
      ],
      checks: [...validate('a watch of the shard', scoped), ...validate('a watch of everything', wide)],
    };
  },
};

async function measure(
  bench: Bench,
  target: PushTarget,
  { shard, path, isFlooded }: Readonly<{ shard: string; path: string; isFlooded: boolean }>,
): Promise<Round> {
  const { load, secondLoad, server } = bench;
  const { resourceVersion } = (await readStatus(bench.server)).cache;
  const watching = secondLoad.begin('witness', { target, protocol: 'HTTP/1.1', watchers: 1, path, shard, resourceVersion, lateMsMax });
  await watching.ready;
  const writing = secondLoad.begin('steady', { target, protocol: 'HTTP/1.1', shard, objects: steadyObjects, everyMs });
  await writing.ready;

  const memory = samplePeak(server.pid);
  const flooded = isFlooded
    ? await load.ask('flood', { target, shard: 'flooding', rawShard: 'ruthless', objects, floodMs })
    : await sleep(floodMs / 4, { pushed: 0, elapsedMs: floodMs, rawSent: 0, rawSessions: 0, rawEnds: [] });
  writing.send(0);
  const written = await writing.answer;
  watching.send(steadyObjects + written.indexes.length);
  const witnessed = await watching.answer;
  const sentAt = new Map(Array.from(written.indexes, (index, at) => [`${index}|${written.rounds[at]}`, written.sentAt[at]!]));
  const delaysMs = Array.from(witnessed.indexes, (index, at) => {
    const sent = sentAt.get(`${index}|${witnessed.rounds[at]}`);
    return sent === undefined ? undefined : witnessed.seenAt[at]! - sent;
  }).filter((delay) => delay !== undefined);
  return { flooded, written, witnessed, delaysMs, peakBytes: await memory.stop() };
}

function delays(name: string, { delaysMs }: Round, limit: Pick<Figure, 'limit'>, quiet: Round | undefined): readonly Figure[] {
  const ceilingOf = (share: number): Pick<Figure, 'ceiling'> => (quiet === undefined ? {} : { ceiling: percentile(quiet.delaysMs, share) });
  return [
    { name: `${name} p50`, value: percentile(delaysMs, 0.5), unit: 'ms', ...ceilingOf(0.5) },
    {
      name: `${name} p99`,
      value: percentile(delaysMs, 0.99),
      unit: 'ms',
      ...limit,
      ...ceilingOf(0.99),
      note: `${delaysMs.length} writes, the latest ${formatNumber(Math.max(...delaysMs))} ms${quiet === undefined ? '' : '; ceiling: without the flood'}`,
    },
  ];
}

function validate(watch: string, { written, witnessed, delaysMs }: Round): readonly Check[] {
  return [
    check(
      `${watch} sees every write of the others, once (G3, G4)`,
      delaysMs.length === written.indexes.length && witnessed.indexes.length === steadyObjects + written.indexes.length,
      `${steadyObjects} creates and ${written.indexes.length} updates; it saw ${witnessed.indexes.length} events, ${delaysMs.length} of them updates`,
    ),
  ];
}

/** The largest resident size until `stop`, sampled several times a second. */
function samplePeak(pid: number): Readonly<{ stop: () => Promise<number> }> {
  const stopped = new AbortController();
  const sampling = (async () => {
    let peakBytes = 0;
    do {
      peakBytes = Math.max(peakBytes, (await readProcessMemory(pid)).residentBytes);
      await sleep(sampleEveryMs, undefined, { signal: stopped.signal }).catch(() => {});
    } while (!stopped.signal.aborted);
    return peakBytes;
  })();
  sampling.catch(() => {});
  return {
    stop: async () => {
      stopped.abort();
      return await sampling;
    },
  };
}
