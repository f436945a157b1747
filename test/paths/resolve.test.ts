import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { parsePathSegments } from '../../src/paths/kcp-path.js';
import { walk, type Walked } from '../../src/paths/resolve.js';
import { MemoryEntries } from './memory-entries.js';

async function walked(entries: MemoryEntries, path: string): Promise<Walked> {
  return walk(parsePathSegments(path)!, entries);
}

async function leads(t: ExecutionContext, entries: MemoryEntries, to: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, wanted] of Object.entries(to)) t.is(shown(await walked(entries, path)), wanted, path);
}

function shown(found: Walked): string {
  switch (found.kind) {
    case 'cluster':
      return `${found.cluster} on ${found.shard}${found.unavailable ? ', unavailable' : ''}`;
    case 'mount':
      return `${found.url}${found.unavailable ? ', unavailable' : ''}`;
    case 'missing':
      return `missing on ${found.on ?? 'any shard'}`;
    case 'ambiguous':
      return `ambiguous: ${found.clusters.join()}`;
  }
}

const town = (): MemoryEntries =>
  new MemoryEntries()
    .cluster('amber', 'root', { path: 'root', isParentless: true })
    .cluster('amber', 'org1', { path: 'root:org' })
    .cluster('birch', 'team1', { path: 'root:org:team' })
    .cluster('amber', 'sub1', { path: 'root:org:team:sub' })
    .edge('amber', 'root', 'org', 'org1')
    .edge('amber', 'org1', 'team', 'team1')
    .edge('birch', 'team1', 'sub', 'sub1');

test('a path leads from Workspace to Workspace, over shards, and begins with any logical cluster', (t) =>
  leads(t, town(), {
    root: 'root on amber',
    'root:org': 'org1 on amber',
    'root:org:team': 'team1 on birch',
    'root:org:team:sub': 'sub1 on amber',
    org1: 'org1 on amber',
    'org1:team:sub': 'sub1 on amber',
    team1: 'team1 on birch',
    'root:nope': 'missing on amber',
    'root:org:team:nope': 'missing on birch',
    nope: 'missing on any shard',
    'nope:org': 'missing on any shard',
  }));

test('what is found names the shards that led there', async (t) => {
  const found = await walked(town(), 'org1:team:sub');
  t.deepEqual(found, {
    kind: 'cluster',
    shard: 'amber' as never,
    cluster: 'sub1' as never,
    unavailable: false,
    shards: ['amber' as never, 'birch' as never],
  });
});

test('a Workspace counts only on the shard where its parent is active', async (t) => {
  const entries = town().edge('birch', 'root', 'org', 'stolen').cluster('birch', 'stolen').edge('birch', 'root', 'more', 'stolen');
  await leads(t, entries, { 'root:org': 'org1 on amber', 'root:more': 'missing on amber' });
});

test('a Workspace that leads to a logical cluster on no shard may lead to one on any', (t) =>
  leads(t, town().edge('amber', 'root', 'gone', 'nowhere'), { 'root:gone': 'missing on any shard' }));

test('an unavailable Workspace anywhere on the way makes what is found unavailable, and nothing else', (t) =>
  leads(t, town().edge('amber', 'org1', 'team', 'team1', true), {
    'root:org': 'org1 on amber',
    'root:org:team': 'team1 on birch, unavailable',
    'root:org:team:sub': 'sub1 on amber, unavailable',
    'root:org:team:nope': 'missing on birch',
    'team1:sub': 'sub1 on amber',
  }));

test('a mounted Workspace leads to its URL, whatever follows', (t) =>
  leads(
    t,
    town().edge('amber', 'org1', 'mnt', 'https://mounts.example.com/a').edge('amber', 'org1', 'off', 'https://mounts.example.com/b', true),
    {
      'root:org:mnt': 'https://mounts.example.com/a',
      'root:org:mnt:child:of:it': 'https://mounts.example.com/a',
      'root:org:off': 'https://mounts.example.com/b, unavailable',
    },
  ));

test('a logical cluster that migrates is active where it does not', async (t) => {
  const entries = town().cluster('cedar', 'team1', { isMigrating: true }).edge('cedar', 'team1', 'sub', 'other').cluster('cedar', 'other');
  await leads(t, entries, { 'root:org:team': 'team1 on birch', 'root:org:team:sub': 'sub1 on amber' });
  t.deepEqual(entries.conflicts, []);
  const everywhere = new MemoryEntries().cluster('amber', 'one', { isMigrating: true }).cluster('birch', 'one', { isMigrating: true });
  await leads(t, everywhere, { one: 'one on birch' });
  t.deepEqual(everywhere.conflicts, []);
});

test('of shards that claim the same logical cluster, one that is current goes first, then the later one; and it is counted', async (t) => {
  const entries = () => new MemoryEntries().cluster('amber', 'one').cluster('birch', 'one').cluster('cedar', 'one', { isMigrating: true });
  const later = entries();
  await leads(t, later, { one: 'one on birch' });
  t.deepEqual(later.conflicts, ['one on amber,birch']);
  const current = entries();
  current.notCurrent.add('birch');
  await leads(t, current, { one: 'one on amber' });
  const neither = entries();
  for (const shard of ['amber', 'birch']) neither.notCurrent.add(shard);
  await leads(t, neither, { one: 'one on birch' });
});

test('a logical cluster without an owner is found by its path, and its Workspaces below it', async (t) => {
  const entries = town()
    .cluster('birch', 'al1', { path: 'home:alice', isParentless: true })
    .cluster('amber', 'al2', { path: 'home:alice:deep:own', isParentless: true })
    .cluster('amber', 'al3', { path: 'home:alice:team' })
    .edge('birch', 'al1', 'team', 'al3')
    .edge('birch', 'al1', 'deep', 'al3')
    .cluster('amber', 'imp', { path: 'home:alice' });
  await leads(t, entries, {
    'home:alice': 'al1 on birch',
    'home:alice:team': 'al3 on amber',
    'home:alice:nope': 'missing on birch',
    'home:alice:deep': 'al3 on amber',
    'home:alice:deep:own': 'al2 on amber',
    'home:bob': 'missing on any shard',
  });
});

test('the name of a logical cluster goes before a path that another one has', (t) =>
  leads(
    t,
    new MemoryEntries()
      .cluster('amber', 'home')
      .edge('amber', 'home', 'bob', 'bob1')
      .cluster('amber', 'bob1')
      .cluster('birch', 'al1', { path: 'home:alice', isParentless: true }),
    { 'home:bob': 'bob1 on amber', 'home:alice': 'missing on amber' },
  ));

test('a path that two logical clusters without an owner have is ambiguous', (t) =>
  leads(
    t,
    new MemoryEntries()
      .cluster('amber', 'al1', { path: 'home:alice', isParentless: true })
      .cluster('birch', 'al2', { path: 'home:alice', isParentless: true }),
    { 'home:alice': 'ambiguous: al1,al2', 'home:alice:team': 'ambiguous: al1,al2' },
  ));

test('a path belongs to a logical cluster only where that is active: what another shard has of it counts for nothing', async (t) => {
  const entries = new MemoryEntries()
    .cluster('amber', 'h3', { path: 'home:y', isParentless: true, isMigrating: true })
    .cluster('birch', 'h3', { path: 'home:z' });
  await leads(t, entries, { 'home:y': 'missing on any shard', 'home:z': 'missing on any shard', h3: 'h3 on birch' });
  const moved = new MemoryEntries()
    .cluster('amber', 'old', { path: 'home:x', isParentless: true, isMigrating: true })
    .cluster('birch', 'old', { path: 'home:former', isParentless: true })
    .cluster('birch', 'new', { path: 'home:x', isParentless: true });
  await leads(t, moved, { 'home:x': 'new on birch', 'home:former': 'old on birch' });
});

test('the home of a user is found by the name that kcp makes of it', (t) =>
  leads(t, new MemoryEntries().cluster('amber', 'v1u4alow0iv9').edge('amber', 'v1u4alow0iv9', 'team', 'one').cluster('amber', 'one'), {
    'user:alice': 'v1u4alow0iv9 on amber',
    'user:alice:team': 'one on amber',
    'user:bob': 'missing on any shard',
    user: 'missing on any shard',
  }));

test('entries that lead in a circle end with the path', async (t) => {
  const entries = new MemoryEntries().cluster('amber', 'a').cluster('birch', 'b').edge('amber', 'a', 'x', 'b').edge('birch', 'b', 'x', 'a');
  await leads(t, entries, { [['a', ...Array.from({ length: 63 }, () => 'x')].join(':')]: 'b on birch' });
  t.true(entries.reads <= 2 * 64, `${entries.reads} reads`);
});

test('a path of the greatest length that begins with nothing known costs two reads for each segment at most', async (t) => {
  const entries = town();
  await walked(entries, Array.from({ length: 64 }, () => 'x').join(':'));
  t.true(entries.reads <= 2 * 64, `${entries.reads} reads`);
});

/**
 * The rules of kcp's index (pkg/index/index.go of August 2026) in a few lines, for installations without migrations, whose logical clusters
 * have one shard each: all of a logical cluster's Workspaces are on its shard.
 */
class KcpIndex {
  readonly shards = new Map<string, string>();
  readonly children = new Map<string, Map<string, { cluster: string; url: string; unavailable: boolean }>>();

  lookUp(path: string): string {
    const [head = '', ...names] = path.split(':');
    let [cluster, shard] = [head, this.shards.get(head)];
    let unavailable = false;
    for (const name of names) {
      if (shard === undefined) return 'missing';
      const workspace = this.children.get(`${shard}|${cluster}`)?.get(name);
      if (workspace === undefined) return 'missing';
      unavailable ||= workspace.unavailable;
      if (workspace.cluster === '') return `${workspace.url}${unavailable ? ', unavailable' : ''}`;
      cluster = workspace.cluster;
      shard = this.shards.get(cluster);
    }
    return shard === undefined ? 'missing' : `${cluster} on ${shard}${unavailable ? ', unavailable' : ''}`;
  }
}

test('a path leads where it leads in kcp', async (t) => {
  const clusters = ['c0', 'c1', 'c2', 'c3', 'c4'];
  const names = ['a', 'b', 'c1'];
  const edges = fc.array(
    fc.record({
      parent: fc.constantFrom(...clusters),
      name: fc.constantFrom(...names),
      target: fc.constantFrom(...clusters, 'https://mounts.example.com/a', 'gone'),
      unavailable: fc.boolean(),
    }),
    { maxLength: 12 },
  );
  const path = fc
    .tuple(fc.constantFrom(...clusters, 'gone'), fc.array(fc.constantFrom(...names), { maxLength: 6 }))
    .map(([head, rest]) => [head, ...rest].join(':'));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('amber', 'birch', 'cedar'), { minLength: clusters.length, maxLength: clusters.length }),
      edges,
      fc.array(path, { minLength: 1, maxLength: 10 }),
      async (shards, made, paths) => {
        const [entries, index] = [new MemoryEntries(), new KcpIndex()];
        clusters.forEach((cluster, i) => {
          const shard = shards[i]!;
          entries.cluster(shard, cluster);
          index.shards.set(cluster, shard);
          index.children.set(`${shard}|${cluster}`, new Map());
        });
        for (const { parent, name, target, unavailable } of made) {
          const shard = index.shards.get(parent)!;
          entries.edge(shard, parent, name, target, unavailable);
          const isMount = target.startsWith('https:');
          index.children.get(`${shard}|${parent}`)!.set(name, { cluster: isMount ? '' : target, url: isMount ? target : '', unavailable });
        }
        for (const each of paths) t.is(shown(await walked(entries, each)).replace(/^missing.*/, 'missing'), index.lookUp(each), each);
      },
    ),
    { numRuns: 500 },
  );
});
