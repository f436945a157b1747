/**
 * What remains of 10,000 logical clusters and their objects after all are deleted, in memory and in
 * what the servers report?
 *
 * They are added and deleted twice, so that anything that is kept for each of them is kept twice.
 * History is short. Each figure is read after compaction, a full garbage collection (collect.ts)
 * and ten quiet seconds. kcp's own front proxy is not asked, because it reads only a live kcp
 * (kcp#4071).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { residentMiB } from '../../test/support/process-figures.js';
import { CleanUp } from '../harness/clean-up.js';
import { collecting } from '../harness/collect.js';
import { metric } from '../harness/metrics-text.js';
import { check, type Answer, type Check, type Figure, type Question } from '../harness/question.js';
import { Workspaces } from '../harness/workspaces.js';

const workspaces = 10_000;
const compactedMsMax = 120_000;
const pollMs = 200;
const quietMs = 3_000;
const bytesPerMiB = 1024 ** 2;
/** With the default, recent deleted objects would fill 32 MiB before others displace them. */
const flags = ['--history-age-max=1s', '--tombstone-age-max=1s', '--recent-bytes-max=1MiB'];
/**
 * How much more V8 may hold after the second time than after the first. Memory kept for each
 * cluster would have doubled.
 */
const growthMiBMax = 5;
const servers = ['cache', 'door'] as const;
const titles = { cache: 'cache', door: 'front door' };
/** Every name begins with this text, and nothing else does. */
const mark = 'passing-';

type Seen = Readonly<Record<(typeof servers)[number], Readonly<{ residentMiB: number; liveMiB: number; series: ReadonlySet<string> }>>>;

export const deletedClusters: Question = {
  name: 'deleted-clusters',
  family: 'scale',
  asks: 'What is left of 10,000 logical clusters once all are deleted, in memory and in what the servers report?',
  needs: ['push'],
  isLong: true,
  async ask({ progress, options: { settleMs } }): Promise<Answer> {
    await using stack = new CleanUp();
    const served = await Workspaces.open(stack, { flags, environment: collecting });
    const names = Array.from({ length: workspaces }, (_, i) => `${mark}${i}`);
    const look = async (): Promise<Seen> => {
      await compacted(served);
      for (const server of [served.cache, served.door]) process.kill(server.pid, 'SIGUSR2');
      await sleep(settleMs);
      return await seenOf(served);
    };
    const asked = async (name: string, status: number): Promise<void> => {
      while ((await served.statusAtDoor(name)) !== status) await sleep(pollMs);
    };
    // Series that appear with the first request, or with the first object of a type, stay.
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

/**
 * Resolves when neither server has compacted anything for `quietMs`, which is longer than history
 * is kept.
 */
async function compacted({ clients }: Workspaces): Promise<void> {
  const state = async (): Promise<string> => {
    const texts = [(await clients.cache.raw('GET', '/metrics')).text, (await clients.door.raw('GET', '/metrics')).text];
    return texts.map((text) => metric(text, 'strata_compacted_revision')).join(' ');
  };
  const deadline = performance.now() + compactedMsMax;
  for (let before = await state(); ;) {
    await sleep(quietMs);
    const now = await state();
    if (now === before) return;
    if (performance.now() > deadline) throw new Error('compaction does not end');
    before = now;
  }
}

async function seenOf({ cache, door, clients }: Workspaces): Promise<Seen> {
  const seen = async (server: keyof Seen, pid: number): Promise<Seen[keyof Seen]> => {
    const { text } = await clients[server].raw('GET', '/metrics');
    const liveBytes = metric(text, 'nodejs_heap_size_used_bytes') + metric(text, 'nodejs_external_memory_bytes');
    // Leaves out the series of the process, such as its garbage collections by kind.
    const series = new Set(text.match(/^(?:strata|proxy|kcp)_.*(?= )/gm));
    return { residentMiB: await residentMiB(pid), liveMiB: liveBytes / bytesPerMiB, series };
  };
  return { cache: await seen('cache', cache.pid), door: await seen('door', door.pid) };
}

function figuresOf(server: keyof Seen, seen: readonly Seen[]): readonly Figure[] {
  const moments = ['before', '… with all of them', '… once all are deleted', '… once as many have come and gone again'];
  const of = seen.map((each) => each[server]);
  const resident = of.map(({ residentMiB: value, liveMiB }, i): Figure => {
    const name = i === 0 ? `${titles[server]}: resident ${moments[i]}` : `${titles[server]}: ${moments[i]}`;
    return { name, value, unit: 'MiB', note: `${liveMiB.toFixed(0)} live in V8` };
  });
  const growth = (of[3]?.liveMiB ?? Number.NaN) - (of[2]?.liveMiB ?? Number.NaN);
  return [
    ...resident,
    {
      name: `${titles[server]}: more live than the first time`,
      value: growth,
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
