/**
 * How long does a change take from its PUT to its watchers, at a pace that leaves the server time to rest?
 *
 * From the sending of the PUT to the event in the hands of a watcher, over all watchers and changes; the writer and each watcher have a connection of
 * their own. Beside it the processor time of the whole server, threads included, for each event: it hardly depends on what else the machine does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Protocol } from './harness/client.js';
import { percentile } from './harness/jobs.js';
import { wildcardPath } from './harness/objects.js';
import { readProcessorMs } from './harness/process-usage.js';
import { check, type Answer, type Bench, type Question } from './harness/question.js';

const measuredMs = 6_000;
const lateMsMax = 10_000;
const microsecondsPerMs = 1_000;

type Load = Readonly<{ perSecond: number; watchers: number; protocol: Protocol }>;

const loads: readonly Load[] = [
  { perSecond: 100, watchers: 8, protocol: 'HTTP/2' },
  { perSecond: 100, watchers: 8, protocol: 'HTTP/1.1' },
  { perSecond: 1_000, watchers: 8, protocol: 'HTTP/2' },
  { perSecond: 100, watchers: 256, protocol: 'HTTP/2' },
];

export const delay: Question = {
  name: 'delay',
  asks: 'How long does a change take from its PUT to its watchers, at a steady pace?',
  async ask(bench) {
    const answers: Answer[] = [];
    for (const load of loads) answers.push(await measure(bench, load));
    return { figures: answers.flatMap(({ figures }) => figures), checks: answers.flatMap(({ checks }) => checks) };
  },
};

async function measure(bench: Bench, { perSecond, watchers, protocol }: Load): Promise<Answer> {
  const { load, secondLoad, server, target } = bench;
  const shard = `delay-${perSecond}-${watchers}-${protocol.replaceAll(/\W/g, '').toLowerCase()}`;
  const objects = Math.max(50, perSecond / 4);
  const { revision } = await load.ask('list', { target, protocol: 'HTTP/1.1', rounds: 0 });
  const watching = load.begin('witness', { target, protocol, watchers, path: wildcardPath, shard, resourceVersion: revision, lateMsMax });
  await watching.ready;
  const writing = secondLoad.begin('steady', { target, protocol, shard, objects, everyMs: 1_000 / perSecond });
  await writing.ready;
  const before = await readProcessorMs(server.pid);
  await sleep(measuredMs);
  writing.send(0);
  const written = await writing.answer;
  watching.send(objects + written.indexes.length);
  const { indexes, rounds, seenAt } = await watching.answer;
  const processorMs = (await readProcessorMs(server.pid)) - before;

  const sentAt = new Map(Array.from(written.indexes, (index, at) => [`${index}|${written.rounds[at]}`, written.sentAt[at]!]));
  const delaysMs = Array.from(indexes, (index, at) => seenAt[at]! - (sentAt.get(`${index}|${rounds[at]}`) ?? Number.NaN)).filter(
    (ms) => !Number.isNaN(ms),
  );
  const name = `${perSecond}/s × ${watchers} over ${protocol}`;
  const expected = watchers * written.indexes.length;
  return {
    figures: [
      { name: `${name}, p50`, value: percentile(delaysMs, 0.5), unit: 'ms', note: `the PUT answered after ${written.p50Ms.toFixed(1)} ms` },
      {
        name: `${name}, p99`,
        value: percentile(delaysMs, 0.99),
        unit: 'ms',
        note: `the PUT answered after ${written.p99Ms.toFixed(1)} ms`,
      },
      { name: `${name}, processor`, value: (processorMs * microsecondsPerMs) / expected, unit: 'µs/event' },
    ],
    checks: [check(`every watcher sees every change once (${name})`, delaysMs.length === expected, `${delaysMs.length} of ${expected}`)],
  };
}
