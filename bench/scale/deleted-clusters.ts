/**
 * What is left of 10,000 logical clusters and their objects once all are deleted, in memory and in what the servers report?
 *
 * They come and go twice, because V8 gives memory back late: what is kept for each of them would be there twice. History is short, and each figure is read
 * once it is compacted and nothing has happened for ten seconds. kcp's own front proxy is not asked: it reads a live kcp alone (kcp#4071).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { residentMiB } from '../../test/support/process-figures.js';
import { CleanUp } from '../harness/clean-up.js';
import { metric } from '../harness/metrics-text.js';
import { check, type Answer, type Check, type Figure, type Question } from '../harness/question.js';
import { Workspaces } from '../harness/workspaces.js';

const workspaces = 10_000;
const compactedMsMax = 120_000;
const pollMs = 200;
const flags = ['--history-age-max=1s', '--tombstone-age-max=1s'];
/** How much more the second time may leave than the first. */
const growthMiBMax = 20;
const servers = ['cache', 'door'] as const;
const titles = { cache: 'cache', door: 'front door' };
/** Begins every name, and nothing else. */
const mark = 'passing-';

type Seen = Readonly<Record<(typeof servers)[number], Readonly<{ residentMiB: number; series: ReadonlySet<string> }>>>;

export const deletedClusters: Question = {
  name: 'deleted-clusters',
  family: 'scale',
  asks: 'What is left of 10,000 logical clusters once all are deleted, in memory and in what the servers report?',
  needs: ['push'],
  isLong: true,
  async ask({ progress, options: { settleMs } }): Promise<Answer> {
    await using stack = new CleanUp();
    const served = await Workspaces.open(stack, flags);
    const names = Array.from({ length: workspaces }, (_, i) => `${mark}${i}`);
    const look = async (): Promise<Seen> => {
      await compacted(served);
      await sleep(settleMs);
      return await seenOf(served);
    };
    const asked = async (name: string, status: number): Promise<void> => {
      while ((await served.statusAtDoor(name)) !== status) await sleep(pollMs);
    };
    // Series that come with the first request, or the first object of a type, stay.
    const comeAndGo = async (some: readonly string[]): Promise<Seen> => {
      await served.add(some);
      await asked(some.at(-1)!, 200);
      const seen = await look();
      await served.delete(some);
      await asked(some.at(-1)!, 403);
      return seen;
    };
    await comeAndGo([`${mark}first`]);
    const before = await look();
    progress.show(`pushing ${workspaces.toLocaleString('en')} workspaces`);
    const held = await comeAndGo(names);
    const first = await look();
    progress.show('… and again');
    await comeAndGo(names);
    const second = await look();
    return {
      figures: servers.flatMap((server) => figuresOf(server, [before, held, first, second])),
      checks: servers.map((server) => seriesCheck(server, before, second)),
    };
  },
};

async function compacted({ clients }: Workspaces): Promise<void> {
  const deadline = performance.now() + compactedMsMax;
  for (const client of [clients.cache, clients.door]) {
    for (;;) {
      const { text } = await client.raw('GET', '/metrics');
      if (metric(text, 'strata_compacted_revision') >= metric(text, 'strata_published_revision') - 1) break;
      if (performance.now() > deadline)
        throw new Error(`not compacted: ${text.match(/^strata_(?:compacted|published|history).*/gm)?.join(', ')}`);
      await sleep(pollMs);
    }
  }
}

async function seenOf({ cache, door, clients }: Workspaces): Promise<Seen> {
  const series = async (server: keyof Seen): Promise<ReadonlySet<string>> => {
    const { text } = await clients[server].raw('GET', '/metrics');
    return new Set(text.split('\n').flatMap((line) => (line === '' || line.startsWith('#') ? [] : [line.slice(0, line.lastIndexOf(' '))])));
  };
  return {
    cache: { residentMiB: await residentMiB(cache.pid), series: await series('cache') },
    door: { residentMiB: await residentMiB(door.pid), series: await series('door') },
  };
}

function figuresOf(server: keyof Seen, seen: readonly Seen[]): readonly Figure[] {
  const [before = Number.NaN, held = Number.NaN, first = Number.NaN, second = Number.NaN] = seen.map((each) => each[server].residentMiB);
  const title = titles[server];
  return [
    { name: `${title}: resident before`, value: before, unit: 'MiB' },
    { name: `${title}: … with all of them`, value: held, unit: 'MiB' },
    { name: `${title}: … once all are deleted`, value: first, unit: 'MiB', better: 'less' },
    {
      name: `${title}: … more, once as many have come and gone again`,
      value: second - first,
      unit: 'MiB',
      limit: { kind: 'at most', value: growthMiBMax },
    },
  ];
}

function seriesCheck(server: keyof Seen, before: Seen, after: Seen): Check {
  const left = [...after[server].series].filter((each) => !before[server].series.has(each) || each.includes(mark));
  return check(
    `${titles[server]}: no series is left of what was deleted`,
    left.length === 0,
    `${before[server].series.size} before, ${after[server].series.size} after; ${left.slice(0, 3).join(', ')}`,
  );
}
