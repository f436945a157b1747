/**
 * How many events a second reach 32 wildcard watchers while 16 writers update at full speed?
 *
 * Counted from the first PUT to the last event at the slowest watcher, so that nothing may pile up. Upstream's cache server
 * delivered 6,658 events/s on the machine the limit was set on; at least nine times that. The ceiling is a bare server that
 * writes every event to every watch.
 */
import type { Target } from './harness/client.js';
import type { SeenByWatcher, Updated } from './harness/jobs.js';
import { check, type Bench, type Check, type Question } from './harness/question.js';
import { formatShare } from './harness/report.js';

const upstreamEventsPerSecond = 6_658;
const timesUpstreamMin = 9;
const lateMsMax = 60_000;

type Round = Readonly<{
  updated: Updated;
  watchers: readonly SeenByWatcher[];
  events: number;
  eventsPerSecond: number;
  updatesPerSecond: number;
  lagMs: number;
}>;

export const fanOut: Question = {
  name: 'fan-out',
  asks: 'How many events a second reach 32 wildcard watchers while 16 writers update at full speed?',
  async ask(bench) {
    const ceiling = await deliver(bench, bench.bare.target);
    const round = await deliver(bench, bench.target);
    return {
      figures: [
        {
          name: 'events delivered',
          value: round.eventsPerSecond,
          unit: '/s',
          limit: { kind: 'at least', value: upstreamEventsPerSecond * timesUpstreamMin },
          ceiling: ceiling.eventsPerSecond,
          note: `${bench.options.watchers} watchers, ${round.events} events; clients ${formatShare(bench.load.busy)} and ${formatShare(bench.secondLoad.busy)} busy`,
        },
        { name: 'updates acknowledged', value: round.updatesPerSecond, unit: '/s', ceiling: ceiling.updatesPerSecond },
        { name: 'acknowledged after p50', value: round.updated.p50Ms, unit: 'ms', ceiling: ceiling.updated.p50Ms },
        { name: 'acknowledged after p99', value: round.updated.p99Ms, unit: 'ms', ceiling: ceiling.updated.p99Ms },
        { name: 'last event after last answer', value: round.lagMs, unit: 'ms', ceiling: ceiling.lagMs },
      ],
      checks: validate(round),
    };
  },
};

async function deliver({ load, secondLoad, options, target: measured, acknowledged }: Bench, target: Target): Promise<Round> {
  const isBare = target.port !== measured.port;
  const before = isBare
    ? { revision: '0', resourceVersions: acknowledged.resourceVersions }
    : await load.ask('list', { target, protocol: 'HTTP/1.1', rounds: 0 });
  const watching = load.begin('watch', {
    target,
    protocol: 'HTTP/1.1',
    watchers: options.watchers,
    resourceVersion: before.revision,
    lateMsMax,
  });
  await watching.ready;
  const { writers, updatesMax, updateMsMax } = options;
  // A watch that breaks fails the question at once, not after the last update.
  const updated = await Promise.race([
    secondLoad.ask('update', { target, writers, resourceVersions: before.resourceVersions, updatesMax, updateMsMax }),
    neverUnlessFailed(watching.answer),
  ]);
  watching.send(updated.revisions.length);
  const { watchers } = await watching.answer;

  const lastEventAt = Math.max(...watchers.map((watcher) => watcher.lastEventAt));
  const elapsedMs = Math.max(lastEventAt - updated.startedAt, updated.elapsedMs);
  const events = watchers.reduce((sum, { revisions }) => sum + revisions.length, 0);
  return {
    updated,
    watchers,
    events,
    eventsPerSecond: events / (elapsedMs / 1_000),
    updatesPerSecond: updated.revisions.length / (updated.elapsedMs / 1_000),
    lagMs: Math.max(0, lastEventAt - updated.startedAt - updated.elapsedMs),
  };
}

async function neverUnlessFailed(promise: Promise<unknown>): Promise<never> {
  await promise;
  return await new Promise<never>(() => {});
}

/** Every watcher has seen exactly the acknowledged updates, each once and for its own object, by rising revision. */
function validate({ updated, watchers }: Round): readonly Check[] {
  const order = Array.from(updated.revisions.keys()).sort((a, b) => updated.revisions[a]! - updated.revisions[b]!);
  let [unordered, wrong] = [0, 0];
  const counts = watchers.map(({ revisions }) => revisions.length);
  for (const { revisions, indexes } of watchers) {
    for (let at = 1; at < revisions.length; at++) if (revisions[at]! <= revisions[at - 1]!) unordered += 1;
    for (const [at, update] of order.entries())
      if (revisions[at] !== updated.revisions[update] || indexes[at] !== updated.indexes[update]) wrong += 1;
  }
  return [
    check('events come in rising revision, none twice (G2, G3)', unordered === 0, `${unordered} do not`),
    check(
      'no event is missing or too many (G4)',
      counts.every((count) => count === order.length),
      `${order.length} updates; watchers saw ${Math.min(...counts)} to ${Math.max(...counts)}`,
    ),
    check('an event is the acknowledged update, revision and object', wrong === 0, `${wrong} are not`),
  ];
}
