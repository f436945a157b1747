/**
 * How many objects a second does one session push, each durable before it is acknowledged?
 *
 * The ceiling is the same objects over a bare websocket into one table, with msgpack and TLS, in
 * one thread of another process. ws and SQLite have their defaults, except `synchronous=FULL`. A
 * commit has one frame or several, and the faster counts. Limit: 70 % of the ceiling. The share of
 * the same loop with every known improvement is shown too.
 *
 * All clients have every body ready before the clock starts. Rounds alternate. Each has a new
 * shard, so that every object is created. In the last one all objects also change; that has no
 * limit.
 */
import { join } from 'node:path';
import { BareProcess } from '../harness/bare-process.js';
import { median } from '../harness/statistics.js';
import { readProcessorMs } from '../harness/process-usage.js';
import { pushTargetOf } from '../harness/push-target.js';
import { check, type Bench, type Question } from '../harness/question.js';
import { formatNumber, formatShare } from '../harness/report.js';

const shareMin = 0.7;
const rounds = 5;
const frameObjects = 128;
/**
 * With so many frames there are more unacknowledged objects than the server's own credit allows.
 */
const framesMax = 32;

/** `processorUs`: processor time of the receiving process, per object. */
type Measured = Readonly<{ perSecond: number; processorUs: number }>;
type Loop = Readonly<{ name: string; framesPerCommitMax: number; masked: boolean; tuned: boolean }>;

const plain: readonly Loop[] = [
  { name: 'a frame a commit', framesPerCommitMax: 1, masked: true, tuned: false },
  { name: '8 frames a commit', framesPerCommitMax: 8, masked: true, tuned: false },
];
const tuned: Loop = { name: 'without masks, larger pages, 8 frames a commit', framesPerCommitMax: 8, masked: false, tuned: true };

export const push: Question = {
  name: 'push',
  family: 'push',
  asks: 'How many objects a second does one session push, durably, against a bare websocket and one table?',
  needs: ['push'],
  async ask(bench) {
    const { load, options, server } = bench;
    const { objects } = options;
    const target = await pushTargetOf(bench.server);
    await using bare = await BareProcess.start(bench.target, 'bare-push-server');
    const loops = new Map<Loop, Measured[]>([...plain, tuned].map((loop) => [loop, []]));
    const ours: Measured[] = [];
    let busy = 0;
    let refused = 0;

    // The first round warms up all of them and is dropped.
    for (let round = 0; round <= rounds; round++) {
      for (const [loop, measured] of loops) {
        const one = await measure(objects, bare.pid, () => pushBare(bench, bare, round, loop));
        if (round > 0) measured.push(one);
      }
      const one = await measure(objects, server.pid, async () => {
        const pushed = await load.ask('push', { target, shard: shardOf(round), objects, round: 0, thenChanges: false });
        refused += pushed.refused;
        return pushed.syncMs;
      });
      busy = load.busy;
      if (round > 0) ours.push(one);
    }
    const changed = await load.ask('push', { target, shard: shardOf(rounds), objects, round: 1, thenChanges: true });
    refused += changed.refused;
    const compared = await load.ask('compare', { target, shard: shardOf(rounds), objects, round: 2 });

    const plainLoops = plain.map((loop) => loops.get(loop)!);
    const tunedLoop = loops.get(tuned)!;
    const ceiling = plainLoops.reduce((best, one) => (speed(one) > speed(best) ? one : best));
    return {
      figures: [
        {
          name: 'objects pushed, created',
          value: speed(ours),
          unit: '/s',
          better: 'more',
          ceiling: speed(ceiling),
          note: `${rounds} rounds of ${objects}, ${spread(ours)}; client ${formatShare(busy)} busy`,
        },
        {
          name: 'share of the ceiling',
          value: Math.min(...plainLoops.map((one) => share(ours, one))),
          unit: '%',
          limit: { kind: 'at least', value: shareMin * 100 },
          note: plain.map((loop) => `${loop.name} ${spread(loops.get(loop)!)}`).join(', '),
        },
        {
          name: 'share of the tuned loop',
          value: share(ours, tunedLoop),
          unit: '%',
          note: `${tuned.name}: ${formatNumber(speed(tunedLoop))} /s, ${spread(tunedLoop)}`,
        },
        {
          name: "server's processor time",
          value: processorTime(ours),
          unit: 'µs an object',
          better: 'less',
          ceiling: processorTime(ceiling),
        },
        { name: 'objects resynced, all changed', value: objects / (changed.syncMs / 1_000), unit: '/s', better: 'more' },
        { name: 'changes pushed', value: objects / (changed.changeMs / 1_000), unit: '/s', better: 'more' },
      ],
      checks: [
        check('no pushed object is refused', refused === 0, `${refused} are`),
        check('every pushed object is listed, once', compared.listed === objects, `${compared.listed} of ${objects}`),
        check('each is listed byte for byte as it was pushed', compared.different === 0, `${compared.different} are not`),
      ],
    };
  },
};

async function pushBare(
  { load, folder, options }: Bench,
  bare: BareProcess,
  round: number,
  { name, framesPerCommitMax, masked, tuned }: Loop,
): Promise<number> {
  const file = join(folder, `bare-${round}-${name.replaceAll(/\W/g, '-')}.db`);
  await bare.store({ file, framesPerCommitMax, tuned });
  const { elapsedMs } = await load.ask('pushBare', {
    target: bare.target,
    shard: shardOf(round),
    objects: options.objects,
    frameObjects,
    framesMax,
    masked,
  });
  return elapsedMs;
}

function shardOf(round: number): string {
  return `pushed-${round}`;
}

async function measure(objects: number, pid: number, run: () => Promise<number>): Promise<Measured> {
  const before = await readProcessorMs(pid);
  const elapsedMs = await run();
  return { perSecond: objects / (elapsedMs / 1_000), processorUs: (((await readProcessorMs(pid)) - before) * 1_000) / objects };
}

function speed(measured: readonly Measured[]): number {
  return median(measured.map(({ perSecond }) => perSecond));
}

function processorTime(measured: readonly Measured[]): number {
  return median(measured.map(({ processorUs }) => processorUs));
}

/**
 * The share in percent. Rounds are compared one by one, because both values of a round had the same
 * load on the machine.
 */
function share(ours: readonly Measured[], theirs: readonly Measured[]): number {
  return median(ours.map(({ perSecond }, round) => (perSecond / theirs[round]!.perSecond) * 100));
}

function spread(measured: readonly Measured[]): string {
  const values = measured.map(({ perSecond }) => perSecond);
  return `${formatNumber(Math.min(...values))}…${formatNumber(Math.max(...values))}`;
}
