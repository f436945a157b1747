/**
 * How soon after its deletion is pushed does a path no longer resolve, among 10,000 logical
 * clusters?
 *
 *   shard ──push──▶ cache ──link──▶ front door
 *     ▲ sent          │ unknown       │ 403
 *
 * The client polls each server, one request after the other, until it gives that answer. One
 * Workspace is deleted at a time, with its LogicalCluster and its objects. kcp's own front proxy is
 * not asked, because it reads only a live kcp (kcp#4073).
 */
import { CleanUp } from '../harness/clean-up.js';
import { check, type Answer, type Figure, type Question } from '../harness/question.js';
import { percentile } from '../harness/statistics.js';
import { Workspaces } from '../harness/workspaces.js';

const workspaces = 10_000;
/** How many are deleted while the cache is polled, and again while the front door is polled. */
const deletions = 300;
const askedAfterwards = 200;
const waitMsMax = 60_000;
const p99MsMax = 1_000;

export const deletedPaths: Question = {
  name: 'deleted-paths',
  family: 'scale',
  asks: 'How soon after its deletion is pushed does a path no longer resolve, among 10,000 logical clusters?',
  needs: ['push'],
  isLong: true,
  async ask({ progress }): Promise<Answer> {
    await using stack = new CleanUp();
    const served = await Workspaces.open(stack);
    const names = Array.from({ length: workspaces + 2 * deletions }, (_, i) => `ws-${i}`);
    progress.show(`pushing ${names.length.toLocaleString('en')} workspaces`);
    await served.add(names);
    const [atCache, atDoor, left] = [names.slice(0, deletions), names.slice(deletions, 2 * deletions), names.slice(2 * deletions)];
    const resolves = async (name: string): Promise<boolean> => (await served.statusAtDoor(name)) === 200;
    await until(async () => await resolves(names.at(-1)!));

    progress.show('deleting them one by one');
    const cacheMs = await deleted(served, atCache, async (name) => (await served.resolvedAtCache(name)) === 'unknown');
    const doorMs = await deleted(served, atDoor, async (name) => (await served.statusAtDoor(name)) === 403);
    const gone = [...atCache, ...atDoor];
    const back = await count(gone, resolves);
    const sample = left.filter((_, i) => i % Math.floor(left.length / askedAfterwards) === 0);
    const kept = await count(sample, resolves);
    return {
      figures: [...figuresOf('unknown at the cache', cacheMs), ...figuresOf('403 at the front door', doorMs)],
      checks: [
        check('no deleted path resolves', back === 0, `${back} of ${gone.length} do`),
        check('every other path resolves', kept === sample.length, `${kept} of ${sample.length} do`),
      ],
    };
  },
};

async function deleted(
  served: Workspaces,
  names: readonly string[],
  isGone: (name: string) => Promise<boolean>,
): Promise<readonly number[]> {
  const takenMs: number[] = [];
  for (const name of names) {
    let sentAt = 0;
    const acknowledged = served.delete([name], () => (sentAt = performance.now()));
    await until(async () => await isGone(name));
    takenMs.push(performance.now() - sentAt);
    await acknowledged;
  }
  return takenMs;
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + waitMsMax;
  while (!(await isTrue())) if (performance.now() > deadline) throw new Error(`not in ${waitMsMax} ms`);
}

async function count(names: readonly string[], holds: (name: string) => Promise<boolean>): Promise<number> {
  let holding = 0;
  for (const name of names) if (await holds(name)) holding += 1;
  return holding;
}

function figuresOf(name: string, takenMs: readonly number[]): readonly Figure[] {
  const note = `${takenMs.length} deletions, the latest ${Math.max(...takenMs).toFixed(1)} ms`;
  return [
    { name: `${name} p50`, value: percentile(takenMs, 0.5), unit: 'ms', better: 'less', note },
    { name: `${name} p99`, value: percentile(takenMs, 0.99), unit: 'ms', limit: { kind: 'at most', value: p99MsMax } },
  ];
}
