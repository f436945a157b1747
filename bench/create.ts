/**
 * How many creates a second are acknowledged, each durable before its answer, with 16 writers at once?
 *
 * Ceiling: the same client against a bare Node TLS server that parses the JSON and keeps it in a Map. At least half of it.
 * It comes first: its objects are what all other questions read.
 */
import { BareProcess } from './harness/bare-process.js';
import { check, type Bench, type Question } from './harness/question.js';
import { formatShare } from './harness/report.js';

const shareMin = 0.5;
const warmUpShare = 0.25;

export const create: Question = {
  name: 'create',
  asks: 'How many creates a second are acknowledged with 16 writers, against a bare server that stores in memory?',
  async ask(bench) {
    const { load, target, bare, options, acknowledged } = bench;
    const { objects, writers } = options;
    await warmUp(bench);
    const ceiling = await load.ask('create', { target: bare.target, objects, writers });
    const created = await load.ask('create', { target, objects, writers });
    acknowledged.resourceVersions = created.resourceVersions;
    const note = `client ${formatShare(load.busy)} busy`;

    const listed = await load.ask('list', { target, protocol: 'HTTP/1.1', rounds: 0 });
    const missing = created.resourceVersions.filter((resourceVersion, index) => listed.resourceVersions[index] !== resourceVersion).length;
    const perSecond = objects / (created.elapsedMs / 1_000);
    const ceilingPerSecond = objects / (ceiling.elapsedMs / 1_000);
    return {
      figures: [
        { name: 'creates acknowledged', value: perSecond, unit: '/s', ceiling: ceilingPerSecond, note },
        {
          name: 'share of the ceiling',
          value: (perSecond / ceilingPerSecond) * 100,
          unit: '%',
          limit: { kind: 'at least', value: shareMin * 100 },
        },
        { name: 'acknowledged after p50', value: created.p50Ms, unit: 'ms', ceiling: ceiling.p50Ms },
        { name: 'acknowledged after p99', value: created.p99Ms, unit: 'ms', ceiling: ceiling.p99Ms },
      ],
      checks: [
        check(
          'every acknowledged object is listed, at the very revision that was acknowledged (G1)',
          missing === 0,
          `${missing} of ${objects} are not`,
        ),
        check('an object is listed once', listed.duplicates === 0, `${listed.duplicates} came again`),
        check('a revision is given once (G9)', new Set(created.resourceVersions).size === objects),
      ],
    };
  },
};

/** The client is warm for both, and both servers are new: the one used for warming up is thrown away. */
async function warmUp({ load, target, options }: Bench): Promise<void> {
  await using bare = await BareProcess.start(target);
  await load.ask('create', { target: bare.target, objects: Math.ceil(options.objects * warmUpShare), writers: options.writers });
}
