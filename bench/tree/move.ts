/**
 * What does a child send and receive when it moves to another parent and back, if both parents hold
 * the same objects as the child?
 *
 *           root
 *         ╱      ╲
 *   parent a    parent b
 *         ╲  or  ╱
 *           child
 *
 * Half of the objects are the root's, half the child's. One proxy leads to the parents. A move
 * points it at the other parent and breaks the link. The proxy counts the bytes in both directions,
 * heartbeats included. The first link carries everything. Each move should carry only digests, and
 * the buckets in which something has changed.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StrataProcess } from '../../test/support/strata-process.js';
import { exportsOf, pushTargetOf, readStatus } from '../harness/push-target.js';
import { PushingShard, putBatches, sync } from '../harness/pushing-shard.js';
import { check, type Question } from '../harness/question.js';
import { TreeProcesses } from '../harness/tree-processes.js';

const ours = 'below';
const theirs = 'above';
const percentMax = 1;
/** Objects that change, of each shard. */
const changed = 20;
const names = [
  'to another parent, of the bytes of the first link',
  '… and back',
  `… and once more, with ${changed} objects changed on each side`,
];
const waitMsMax = 120_000;
const pollMs = 200;

export const treeMove: Question = {
  name: 'tier-move',
  family: 'tiers',
  asks: 'What does a child send and receive when it goes to another parent and back, and holds what both have?',
  needs: ['push'],
  isLong: true,
  async ask({ folder, options: { objects } }) {
    await using tree = await TreeProcesses.open();
    const root = await tree.start('root');
    const [a, b] = [await tree.start('parent-a', { parent: root }), await tree.start('parent-b', { parent: root })];
    const proxy = await tree.proxyTo(a);
    const authorities = join(folder, 'both-parents.crt');
    await writeFile(authorities, a.certificate + b.certificate);
    const child = await tree.start('child', { parent: a, proxy, flags: [`--parent-ca-file=${authorities}`] });
    const each = Math.floor(objects / 2);
    const pushing = [await open(root, theirs), await open(child, ours)];
    try {
      for (const [i, shard] of [theirs, ours].entries()) await pushing[i]?.send(sync(putBatches(shard, each, 0)));
      for (const server of [root, a, b, child]) await holds(server, each);
      await current(child, a);
      const bytes = (): number => proxy.passed.up + proxy.passed.down;
      const first = bytes();
      const moves: { bytes: number; elapsedMs: number }[] = [];
      const moveTo = async (parent: StrataProcess): Promise<void> => {
        const before = bytes();
        const startedAt = performance.now();
        proxy.redirect(parent.port);
        proxy.cut();
        await current(child, parent);
        moves.push({ bytes: bytes() - before, elapsedMs: performance.now() - startedAt });
      };
      await moveTo(b);
      await moveTo(a);
      // Refuse the link until objects on both sides have changed.
      proxy.refuse();
      proxy.cut();
      for (const [i, shard] of [theirs, ours].entries()) await pushing[i]?.send(putBatches(shard, changed, 1));
      proxy.heal();
      await moveTo(b);
      const held = (await Promise.all([root, a, b, child].map((server) => counts(server)))).flat();
      return {
        figures: moves.map((move, i) => ({
          name: names[i] ?? '',
          value: (100 * move.bytes) / first,
          unit: '%',
          ...(i < 2 ? { limit: { kind: 'at most' as const, value: percentMax } } : {}),
          note: `${move.bytes} of ${first} bytes, ${2 * each} objects, current after ${(move.elapsedMs / 1_000).toFixed(1)} s`,
        })),
        checks: [check('all caches hold everything', held.every((count) => count === each) && held.length === 8, held.join(', '))],
      };
    } finally {
      for (const shard of pushing) await shard.close();
    }
  },
};

async function open(server: StrataProcess, shard: string): Promise<PushingShard> {
  return PushingShard.open(await pushTargetOf(server), shard);
}

/** The number of objects of each shard. */
async function counts(server: StrataProcess): Promise<readonly number[]> {
  const status = await readStatus(server);
  return [theirs, ours].map((shard) => exportsOf(status, shard)?.objects ?? 0);
}

async function holds(server: StrataProcess, objects: number): Promise<void> {
  await until(async () => (await counts(server)).every((count) => count === objects));
}

/** Resolves when each end has everything that the other end has. */
async function current(child: StrataProcess, parent: StrataProcess): Promise<void> {
  const { cache } = await readStatus(parent);
  await until(async () => {
    const { tree } = await readStatus(child);
    const below = (await readStatus(parent)).tree?.children.find(({ name }) => name === 'child');
    if (tree?.parent?.connection.kind !== 'connected' || tree.parent.cacheId !== cache.id) return false;
    return [tree.parent.sending, below?.sending].every(
      (sending) => sending !== null && sending !== undefined && sending.slices > 0 && sending.current === sending.slices,
    );
  });
}

async function until(holdsNow: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + waitMsMax;
  while (!(await holdsNow())) {
    if (performance.now() > deadline) throw new Error('the caches did not come to hold the same in time');
    await sleep(pollMs);
  }
}
