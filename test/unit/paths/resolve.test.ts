import type { ExecutionContext } from 'ava';
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { parsePathSegments } from '../../../src/paths/kcp-path.js';
import { walk, type WalkResult } from '../../../src/paths/resolve.js';
import { MemoryEntries } from '../../support/paths/memory-entries.js';

async function walked(entries: MemoryEntries, path: string): Promise<WalkResult> {
  return walk(parsePathSegments(path)!, entries);
}

async function leads(t: ExecutionContext, entries: MemoryEntries, to: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, wanted] of Object.entries(to)) t.is(shown(await walked(entries, path)), wanted, path);
}

function shown(found: WalkResult): string {
  switch (found.kind) {
    case 'cluster':
      return `${found.cluster} on ${found.shard}${found.unavailable ? ', unavailable' : ''}`;
    case 'mount':
      return `${found.url}${found.unavailable ? ', unavailable' : ''}`;
    case 'missing':
      return `missing on ${found.on ?? 'any shard'}`;
    case 'disputed':
      return `disputed: ${found.cluster} on ${found.shards.join()}${found.expected === undefined ? '' : `, not ${found.expected}`}`;
    case 'ambiguous':
      return `ambiguous: ${found.clusters.join()}`;
  }
}

const town = (): MemoryEntries =>
  new MemoryEntries()
    .cluster('root', 'root', { path: 'root', isParentless: true })
    .cluster('root', 'org1', { path: 'root:org' })
    .cluster('birch', 'team1', { path: 'root:org:team' })
    .cluster('root', 'sub1', { path: 'root:org:team:sub' })
    .edge('root', 'root', 'org', 'org1')
    .edge('root', 'org1', 'team', 'team1')
    .edge('birch', 'team1', 'sub', 'sub1');

test('a path leads from Workspace to Workspace, across shards, and may begin with any logical cluster', (t) =>
  leads(t, town(), {
    root: 'root on root',
    'root:org': 'org1 on root',
    'root:org:team': 'team1 on birch',
    'root:org:team:sub': 'sub1 on root',
    org1: 'org1 on root',
    'org1:team:sub': 'sub1 on root',
    team1: 'team1 on birch',
    'root:nope': 'missing on root',
    'root:org:team:nope': 'missing on birch',
    nope: 'missing on any shard',
    'nope:org': 'missing on any shard',
  }));

test('a result names the shards that led to it', async (t) => {
  const found = await walked(town(), 'org1:team:sub');
  t.deepEqual(found, {
    kind: 'cluster',
    shard: 'root' as never,
    cluster: 'sub1' as never,
    unavailable: false,
    shards: ['root' as never, 'birch' as never],
  });
});

test('a Workspace counts only on the shard where its parent is active', async (t) => {
  const entries = town().edge('birch', 'root', 'org', 'stolen').cluster('birch', 'stolen').edge('birch', 'root', 'more', 'stolen');
  await leads(t, entries, { 'root:org': 'org1 on root', 'root:more': 'missing on root' });
});

test('a Workspace may lead to any shard if its logical cluster is on none', (t) =>
  leads(t, town().edge('root', 'root', 'gone', 'nowhere'), { 'root:gone': 'missing on any shard' }));

test('an unavailable Workspace anywhere on the way makes the result unavailable, and changes nothing else', (t) =>
  leads(t, town().edge('root', 'org1', 'team', 'team1', true), {
    'root:org': 'org1 on root',
    'root:org:team': 'team1 on birch, unavailable',
    'root:org:team:sub': 'sub1 on root, unavailable',
    'root:org:team:nope': 'missing on birch',
    'team1:sub': 'sub1 on root',
  }));

test('a mounted Workspace leads to its URL, whatever follows', (t) =>
  leads(
    t,
    town().edge('root', 'org1', 'mnt', 'https://mounts.example.com/a').edge('root', 'org1', 'off', 'https://mounts.example.com/b', true),
    {
      'root:org:mnt': 'https://mounts.example.com/a',
      'root:org:mnt:child:of:it': 'https://mounts.example.com/a',
      'root:org:off': 'https://mounts.example.com/b, unavailable',
    },
  ));

/** Like `town`, and each Workspace names the shard of its logical cluster. */
const told = (): MemoryEntries =>
  town().edge('root', 'root', 'org', 'org1@root').edge('root', 'org1', 'team', 'team1@birch').edge('birch', 'team1', 'sub', 'sub1@root');

test('a migrating logical cluster is on the shard that its Workspace names, and disputed if it is active only elsewhere', async (t) => {
  const begun = told().cluster('cedar', 'team1', { path: 'root:org:team', isMigrating: true }).edge('cedar', 'team1', 'sub', 'other@cedar');
  await leads(t, begun, { 'root:org:team': 'team1 on birch', team1: 'team1 on birch', 'root:org:team:sub': 'sub1 on root' });
  t.deepEqual(begun.conflicts, []);
  const arrived = new MemoryEntries()
    .cluster('root', 'root', { path: 'root', isParentless: true })
    .edge('root', 'root', 'team', 'team1@birch')
    .cluster('cedar', 'team1', { path: 'root:team' });
  await leads(t, arrived, { 'root:team': 'disputed: team1 on cedar, not birch', team1: 'disputed: team1 on cedar' });
  await leads(t, arrived.edge('root', 'root', 'team', 'team1@cedar'), { 'root:team': 'team1 on cedar', team1: 'team1 on cedar' });
});

test('a shard that claims a logical cluster against its Workspace does not get it, and the conflict is reported', async (t) => {
  const entries = told()
    .cluster('mallory', 'org1', { path: 'root:org' })
    .cluster('mallory', 'team1')
    .cluster('mallory', 'root', { path: 'root' });
  await leads(t, entries.cluster('mallory', 'sub1', { path: 'root:org:team:sub' }), {
    root: 'root on root',
    'root:org': 'org1 on root',
    'root:org:team': 'team1 on birch',
    'root:org:team:sub': 'sub1 on root',
    org1: 'org1 on root',
    'org1:team': 'team1 on birch',
    sub1: 'sub1 on root',
    team1: 'disputed: team1 on birch,mallory',
  });
  t.true(entries.conflicts.includes('org1 on root,mallory'));
});

test('a shard that alone claims a logical cluster does not get it if the cluster’s own path leads to another shard', (t) =>
  leads(
    t,
    new MemoryEntries()
      .cluster('root', 'root', { path: 'root', isParentless: true })
      .edge('root', 'root', 'org', 'org1@root')
      .cluster('mallory', 'org1', { path: 'root:org' }),
    { org1: 'disputed: org1 on mallory', 'root:org': 'disputed: org1 on mallory, not root' },
  ));

test('without a Workspace that decides, only a single shard may claim a logical cluster; several claims are a dispute', async (t) => {
  const entries = new MemoryEntries()
    .cluster('root', 'one')
    .cluster('birch', 'two')
    .cluster('cedar', 'two')
    .edge('root', 'one', 'x', 'two');
  await leads(t, entries, { one: 'one on root', two: 'disputed: two on birch,cedar', 'one:x': 'disputed: two on birch,cedar' });
  t.true(entries.conflicts.includes('two on birch,cedar'));
  const migrating = new MemoryEntries().cluster('root', 'one', { isMigrating: true }).cluster('birch', 'one', { isMigrating: true });
  await leads(t, migrating, { one: 'disputed: one on root,birch' });
});

test('a logical cluster that is not yet on its Workspace’s shard is missing on that shard, and may appear there', (t) =>
  leads(t, town().edge('root', 'root', 'new', 'new1@birch'), { 'root:new': 'missing on birch', new1: 'missing on any shard' }));

test('root is only on the shard named root, whether or not another shard alone claims it', async (t) => {
  const claimed = (...shards: string[]): MemoryEntries => {
    const entries = new MemoryEntries();
    for (const shard of shards) entries.cluster(shard, 'root', { path: 'root', isParentless: true }).edge(shard, 'root', 'org', 'org1');
    return entries;
  };
  await leads(t, claimed('mallory', 'root'), { root: 'root on root' });
  const missing = { root: 'missing on root', 'root:org': 'missing on root' };
  await leads(t, claimed('mallory'), missing);
  await leads(t, claimed('mallory', 'eve'), missing);
  await leads(t, claimed('mallory').cluster('mallory', 'm1', { path: 'root:org', isParentless: true }), missing);
});

test('a path below one that a shard owns cannot belong to another shard', (t) =>
  leads(
    t,
    new MemoryEntries()
      .cluster('birch', 'al1', { path: 'home:alice', isParentless: true })
      .edge('birch', 'al1', 'team', 'al2@birch')
      .cluster('birch', 'al2', { path: 'home:alice:team' })
      .cluster('mallory', 'mal1', { path: 'home:alice:team', isParentless: true }),
    { 'home:alice': 'al1 on birch', 'home:alice:team': 'disputed: mal1 on mallory,birch', al2: 'al2 on birch' },
  ));

test('a logical cluster without an owner is found by its path, and so are its Workspaces below it', async (t) => {
  const entries = town()
    .cluster('birch', 'al1', { path: 'home:alice', isParentless: true })
    .cluster('birch', 'al2', { path: 'home:alice:deep:own', isParentless: true })
    .cluster('root', 'al3', { path: 'home:alice:team' })
    .edge('birch', 'al1', 'team', 'al3')
    .edge('birch', 'al1', 'deep', 'al3')
    .cluster('root', 'imp', { path: 'home:alice' });
  await leads(t, entries, {
    'home:alice': 'al1 on birch',
    'home:alice:team': 'al3 on root',
    'home:alice:nope': 'missing on birch',
    'home:alice:deep': 'al3 on root',
    'home:alice:deep:own': 'al2 on birch',
    'home:bob': 'missing on any shard',
  });
});

test('the name of a logical cluster takes precedence over a path of another one on its shard', (t) =>
  leads(
    t,
    new MemoryEntries()
      .cluster('root', 'home')
      .edge('root', 'home', 'bob', 'bob1')
      .cluster('root', 'bob1')
      .cluster('root', 'al1', { path: 'home:alice', isParentless: true }),
    { 'home:bob': 'bob1 on root', 'home:alice': 'missing on root' },
  ));

test('a shard does not get another shard’s paths by naming a logical cluster like their first segment', (t) =>
  leads(
    t,
    town()
      .cluster('birch', 'al1', { path: 'home:alice', isParentless: true })
      .edge('birch', 'al1', 'team', 'al2@birch')
      .cluster('birch', 'al2', { path: 'home:alice:team' })
      .cluster('mallory', 'home')
      .edge('mallory', 'home', 'alice', 'mal1@mallory')
      .cluster('mallory', 'mal1', { path: 'root:org', isParentless: true })
      .edge('mallory', 'mal1', 'team', 'mal2@mallory')
      .cluster('mallory', 'mal2'),
    {
      'home:alice': 'disputed: al1 on mallory,birch',
      'home:alice:team': 'disputed: al1 on mallory,birch',
      al1: 'al1 on birch',
      'al1:team': 'al2 on birch',
      al2: 'al2 on birch',
      'root:org:team': 'team1 on birch',
    },
  ));

test('a path is ambiguous if two logical clusters without an owner have it', (t) =>
  leads(
    t,
    new MemoryEntries()
      .cluster('root', 'al1', { path: 'home:alice', isParentless: true })
      .cluster('birch', 'al2', { path: 'home:alice', isParentless: true }),
    { 'home:alice': 'ambiguous: al1,al2', 'home:alice:team': 'ambiguous: al1,al2' },
  ));

test('a path of a logical cluster without an owner is disputed while two shards claim that cluster', async (t) => {
  const entries = new MemoryEntries()
    .cluster('root', 'h3', { path: 'home:y', isParentless: true, isMigrating: true })
    .cluster('birch', 'h3', { path: 'home:z' });
  await leads(t, entries, { 'home:y': 'disputed: h3 on root,birch', 'home:z': 'missing on any shard', h3: 'disputed: h3 on root,birch' });
});

test('the home of a user is found by the name that kcp computes for it', (t) =>
  leads(t, new MemoryEntries().cluster('root', 'v1u4alow0iv9').edge('root', 'v1u4alow0iv9', 'team', 'one').cluster('root', 'one'), {
    'user:alice': 'v1u4alow0iv9 on root',
    'user:alice:team': 'one on root',
    'user:bob': 'missing on any shard',
    user: 'missing on any shard',
  }));

test('a walk through entries that form a cycle ends with the path', async (t) => {
  const entries = new MemoryEntries().cluster('root', 'a').cluster('birch', 'b').edge('root', 'a', 'x', 'b').edge('birch', 'b', 'x', 'a');
  await leads(t, entries, { [['a', ...Array.from({ length: 63 }, () => 'x')].join(':')]: 'b on birch' });
  t.true(entries.reads <= 3 * 64, `${entries.reads} reads`);
});

test('a path of maximum length with unknown segments costs at most two reads for each segment', async (t) => {
  const entries = town();
  await walked(entries, Array.from({ length: 64 }, () => 'x').join(':'));
  t.true(entries.reads <= 2 * 64, `${entries.reads} reads`);
});

/**
 * The rules of kcp's index (pkg/index/index.go of August 2026) in a few lines, for installations
 * without migrations, in which each logical cluster has one shard: all of its Workspaces are on its
 * own shard.
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

test('a path leads to the same logical cluster as in kcp', async (t) => {
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
      fc.array(fc.constantFrom('root', 'birch', 'cedar'), { minLength: clusters.length, maxLength: clusters.length }),
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
    { numRuns: rounds(500) },
  );
});

test('whatever a hostile shard claims, paths of Workspaces lead where they led without it, and no other shard’s path leads to it', async (t) => {
  const honest = ['root', 'birch'];
  const clusters = ['root', 'c1', 'c2', 'c3', 'c4'];
  const names = ['a', 'b', 'c'];
  const own = fc.constantFrom(...clusters, 'm1', 'm2', 'v1u4alow0iv9', 'al1', 'hx');
  const anyPath = fc.option(
    fc.constantFrom(
      'root',
      'root:a0',
      'root:a0:b1',
      'm1:a',
      'c1:a1',
      'home:x',
      'home:x:a',
      'user:alice',
      'user:alice:team',
      'v1u4alow0iv9:m',
    ),
    {
      nil: undefined,
    },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(3), fc.constantFrom(...names), fc.constantFrom(...honest)), { minLength: 4, maxLength: 4 }),
      fc.array(fc.record({ cluster: own, path: anyPath, isParentless: fc.boolean(), isMigrating: fc.boolean() }), { maxLength: 12 }),
      fc.array(fc.tuple(own, fc.constantFrom(...names, 'm'), own, fc.constantFrom('@mallory', '@root', '@birch', '')), { maxLength: 12 }),
      async (tree, claims, workspaces) => {
        const [alone, attacked] = [new MemoryEntries(), new MemoryEntries()];
        const paths = new Map([['root', 'root']]);
        for (const entries of [alone, attacked]) {
          entries.cluster('root', 'root', { path: 'root', isParentless: true });
          const at = new Map([['root', { shard: 'root', path: 'root' }]]);
          tree.forEach(([parentIndex, name, shard], i) => {
            const [parent, child] = [clusters[Math.min(parentIndex, i)]!, clusters[i + 1]!];
            const { shard: on, path } = at.get(parent)!;
            const childPath = `${path}:${name}${i}`;
            entries.edge(on, parent, `${name}${i}`, `${child}@${shard}`).cluster(shard, child, { path: childPath as never });
            at.set(child, { shard, path: childPath });
            paths.set(child, childPath);
          });
        }
        for (const { cluster, ...entry } of new Map(claims.map((claim) => [claim.cluster, claim])).values())
          attacked.cluster('mallory', cluster, entry as never);
        for (const entries of [alone, attacked])
          entries
            .cluster('birch', 'v1u4alow0iv9', { path: 'user:alice' as never, isParentless: true })
            .edge('birch', 'v1u4alow0iv9', 'team', 'al1@root')
            .cluster('root', 'al1', { path: 'user:alice:team' as never })
            .cluster('root', 'hx', { path: 'home:x' as never, isParentless: true });
        for (const [parent, name, target, on] of workspaces) attacked.edge('mallory', parent, name, `${target}${on}`);

        for (const [cluster, path] of paths) {
          const wanted = shown(await walked(alone, path));
          t.is(shown(await walked(attacked, path)), wanted, path);
          const byName = shown(await walked(attacked, cluster));
          t.true(byName === wanted || byName.startsWith('disputed'), `${cluster}: ${byName}, not ${wanted}`);
        }
        // No Workspace decides about the first segments of these paths, so they may become
        // disputed, and nothing else.
        for (const path of ['v1u4alow0iv9', 'user:alice', 'user:alice:team', 'al1', 'hx', 'home:x', 'home:x:a']) {
          const [found, wanted] = [shown(await walked(attacked, path)), shown(await walked(alone, path))];
          t.true(found === wanted || /^(?:disputed|ambiguous)/.test(found), `${path}: ${found}, not ${wanted}`);
        }
      },
    ),
    { numRuns: rounds(500) },
  );
});
