/**
 * How fast does a child receive what its parent has: everything, and what changed while it was
 * away?
 *
 * The parent holds the objects of one shard. Limits:
 * - An empty child has 10,000 objects of 2.5 kB after 2 s.
 * - A child whose link was broken while each object changed catches up at 20,000 changes a second
 *   or more. It receives changes, not a sync.
 *
 * Both times run from the opening of the link to the publication of the last object at the child.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StrataProcess } from '../../test/support/strata-process.js';
import { exportsOf, pushTargetOf, readStatus } from '../harness/push-target.js';
import { PushingShard, putBatches, sync } from '../harness/pushing-shard.js';
import { median } from '../harness/statistics.js';
import { metric } from '../harness/metrics-text.js';
import { check, type Question } from '../harness/question.js';
import { TreeProcesses } from '../harness/tree-processes.js';

const shard = 'synced';
const rounds = 2;
const absences = 2;
const syncSecondsMax = 2;
const changesPerSecondMin = 20_000;
const waitMsMax = 60_000;
/**
 * Polls are rare, because each costs the child something. The age of the last change gives its
 * exact time.
 */
const pollMs = 200;

export const treeSync: Question = {
  name: 'tier-sync',
  family: 'tiers',
  asks: 'How fast does a child get what its parent has, and what changed while it was away?',
  needs: ['push'],
  isLong: true,
  async ask({ options: { objects } }) {
    await using tree = await TreeProcesses.open();
    const parent = await tree.start('parent');
    const pushing = await PushingShard.open(await pushTargetOf(parent), shard);
    const synced: number[] = [];
    const caughtUp: number[] = [];
    let syncs = 0;
    try {
      await pushing.send(sync(putBatches(shard, objects, 0)));
      for (let round = 1; round <= rounds; round++) {
        const proxy = await tree.proxyTo(parent);
        const child = await tree.start(`child-${round}`, { parent, proxy });
        synced.push(await untilRevision(child, objects));
        for (let absence = 1; absence <= absences; absence++) {
          proxy.refuse();
          proxy.cut();
          await pushing.send(putBatches(shard, objects, absences * round + absence));
          const before = (await connections(child)).length;
          proxy.refuse(() => false);
          caughtUp.push(await untilRevision(child, (1 + absence) * objects, before));
        }
        syncs += (await child.log()).split('link.resync').length - 1;
        await child.stop();
      }
    } finally {
      await pushing.close();
    }
    return {
      figures: [
        {
          name: 'initial sync of a child',
          value: median(synced) / 1_000,
          unit: 's',
          limit: { kind: 'at most', value: syncSecondsMax },
          note: `${objects} objects, ${rounds} children, the slowest ${(Math.max(...synced) / 1_000).toFixed(2)} s`,
        },
        {
          name: 'a child catches up',
          value: objects / (median(caughtUp) / 1_000),
          unit: '/s',
          limit: { kind: 'at least', value: changesPerSecondMin },
          note: `${objects} changes, each time; the slowest ${(Math.max(...caughtUp) / 1_000).toFixed(2)} s`,
        },
      ],
      checks: [check('nothing had to be resynced', syncs === 0, `${syncs} were`)],
    };
  },
};

/**
 * Milliseconds from the opening of the newest link to the publication of `changes` changes. That
 * link must have been opened after `before` others.
 */
async function untilRevision(child: StrataProcess, changes: number, before = 0): Promise<number> {
  const deadline = performance.now() + waitMsMax;
  const client = child.client();
  for (;;) {
    const status = await readStatus({ client: () => client });
    const publishedMs = Date.now() - (exportsOf(status, shard)?.changedAgoMs ?? 0);
    const openedMs = (await connections(child)).slice(before).at(-1);
    const { text } = await client.raw('GET', '/metrics');
    const published = metric(text, 'strata_published_revision');
    if (published >= changes && openedMs !== undefined) return publishedMs - openedMs;
    if (performance.now() > deadline) throw new Error(`the child is at ${status.cache.resourceVersion}`);
    await sleep(pollMs);
  }
}

/** The times at which the links of the child were opened, from its log. */
async function connections(child: StrataProcess): Promise<readonly number[]> {
  const lines = (await child.log()).split('\n').filter((line) => line.includes('link.connected'));
  return lines.map((line) => Date.parse(/"time":"([^"]+)"/.exec(line)?.[1] ?? ''));
}
