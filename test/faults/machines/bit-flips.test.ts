/**
 * Damages a bit or a sector at a random place of a stopped store's database or WAL (F5). The server
 * must then serve all as it was, or refuse, or serve an older state. In the last case a client that
 * has seen a newer state must get an error. If the store is too large for a start to check, an
 * entry may also be missing that the damage removed from an index.
 *
 * TEST_SEED=n repeats a run, TEST_FLIPS=n damages each file n times.
 */
import { cp, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { seeded } from '../../support/crash/random.js';
import { collectionPath, wildcardPath, Writer } from '../../support/crash/writers.js';
import { StrataProcess } from '../../support/strata-process.js';
import { positionOf } from '../../support/watch-history.js';
import { damage } from './damage.js';
import { compareStory, readStory, type Story, type Verdict } from './story.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const flips = Number(process.env['TEST_FLIPS'] ?? 5);
const readyMsMax = 6_000;
const writeMs = 1_500;

for (const { title, file, ending, flags, mayMiss } of [
  { title: 'strata.db', file: 'strata.db', ending: 'SIGTERM', flags: [], mayMiss: false },
  {
    title: 'strata.db of a store too large for a start to check',
    file: 'strata.db',
    ending: 'SIGTERM',
    flags: ['--start-check-bytes-max=0B'],
    mayMiss: true,
  },
  { title: 'strata.db-wal', file: 'strata.db-wal', ending: 'SIGKILL', flags: [], mayMiss: false },
] as const)
  test(`whatever is damaged in ${title} is found or harmless, and nothing is served that never was`, async (t) => {
    t.timeout(60_000 + flips * 20_000);
    t.log(`TEST_SEED=${seed}`);
    const random = seeded(seed);
    await using server = await StrataProcess.start({ flags: ['--bookmark-interval=100ms', ...flags] });
    const story = await aStory(server);
    await (ending === 'SIGTERM' ? server.stop() : server.kill());
    const origin = join(server.folder, 'origin');
    await cp(server.dataFolder, origin, { recursive: true });
    t.true((await stat(join(origin, 'data', file))).size > 0, `${file} is there`);

    const wrong: string[] = [];
    const found = new Map<Verdict['kind'], number>();
    for (let flip = 1; flip <= flips; flip += 1) {
      await rm(server.dataFolder, { recursive: true });
      await cp(origin, server.dataFolder, { recursive: true });
      const what = damage(join(server.dataFolder, 'data', file), random);
      const verdict = await verdictOn(server, story);
      found.set(verdict.kind, (found.get(verdict.kind) ?? 0) + 1);
      if (verdict.kind === 'wrong' || (verdict.kind === 'incomplete' && !mayMiss)) wrong.push(`${what}: ${verdict.why}`);
    }
    t.log([...found].map(([kind, count]) => `${kind} ${count}`).join(', '));
    t.deepEqual(wrong, []);
  });

test('the comparison finds an undamaged store whole, and content that it never held wrong', async (t) => {
  await using server = await StrataProcess.start({ flags: ['--bookmark-interval=100ms'] });
  const story = await aStory(server);
  const [key = '', text = ''] = [...story.objects].find(([, each]) => each.includes('xx')) ?? [];
  const objects = new Map(story.objects).set(key, text.replace('xx', 'xy'));
  const lie: Story = { ...story, objects, changes: story.changes.map((change) => change.replace(text, text.replace('xx', 'xy'))) };
  await server.restart('SIGKILL');
  const client = server.client();

  t.deepEqual(await compareStory(client, wildcardPath, story), { kind: 'whole', why: '' });
  t.is((await compareStory(client, wildcardPath, lie)).kind, 'wrong');
  t.is((await compareStory(client, wildcardPath, { ...story, changes: story.changes.slice(1) })).kind, 'wrong');
  const longer = [...story.changes.slice(0, 3), 'ADDED\0of\0nothing', ...story.changes.slice(3)];
  t.is((await compareStory(client, wildcardPath, { ...story, changes: longer })).kind, 'incomplete');
});

async function verdictOn(server: StrataProcess, story: Story): Promise<Verdict> {
  try {
    await server.resume(readyMsMax);
  } catch {
    return { kind: 'refused', why: 'not ready' };
  }
  try {
    return await compareStory(server.client(), wildcardPath, story);
  } finally {
    await server.kill();
  }
}

/** Creates, changes and deletes objects; resolves with all that the store can then show. */
async function aStory(server: StrataProcess): Promise<Story> {
  const client = server.client();
  const born = positionOf(await client.list(wildcardPath));
  const stop = AbortSignal.timeout(writeMs);
  const writers = Array.from({ length: 4 }, (_, index) => new Writer(client, seeded(seed + index), { index, places: 20 }));
  await Promise.all(writers.map((writer) => writer.run(stop)));
  await client.create(collectionPath('amber', 'acme'), {
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIExport',
    metadata: { name: 'last' },
    spec: {},
  });
  return readStory(client, wildcardPath, born);
}
