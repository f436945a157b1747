/**
 * Resolves paths over the wire while entries are created, changed and deleted, and compares with a
 * walk over a copy of the entries that remembers nothing. The tests would find a remembered path
 * that outlives the change that made it wrong. TEST_SEED=n repeats a run.
 */
import { largeTest } from '../../support/sizes.js';
import { pathEntryVersion } from '../../../src/domain/path-entry.js';
import type { PathAnswer } from '../../../src/domain/path-resolution.js';
import { parsePathSegments } from '../../../src/paths/kcp-path.js';
import { walk } from '../../../src/paths/resolve.js';
import { seeded } from '../../support/crash/random.js';
import { clusterSlice, pushedCluster, pushedWorkspace, syncPaths, workspaceSlice } from '../../support/path-pusher.js';
import { RawPusher } from '../../support/raw-pusher.js';
import { aServer } from '../../support/test-server.js';
import { MemoryEntries } from '../../support/paths/memory-entries.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const steps = 150;
const shards = ['root', 'birch'] as const;
const clusters = ['root', 'org1', 'team1', 'al1'];
const names = ['org', 'team'];
const paths = ['root', 'root:org', 'root:org:team', 'root:team', 'org1:team', 'team1', 'home:alice', 'home:alice:org'];

type Cluster = Readonly<{ path: string; parentless: boolean; migrating: boolean }>;

largeTest('a path resolves by the current entries, however often it was resolved before', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  const of = <T>(all: readonly T[]): T => all[random.below(all.length)]!;
  const server = await aServer(t);
  const pushers = { root: await RawPusher.open(server, { name: 'root' }), birch: await RawPusher.open(server, { name: 'birch' }) };
  t.teardown(() => Object.values(pushers).forEach(({ socket }) => socket.terminate()));
  for (const shard of shards) await syncPaths(pushers[shard], shard, {});
  const held = { clusters: new Map<string, Cluster>(), workspaces: new Map<string, string>() };

  const change = async (): Promise<void> => {
    const shard = of(shards);
    const pusher = pushers[shard];
    const [cluster, name] = [of(clusters), of(names)];
    const [place, edge] = [`${shard} ${cluster}`, `${shard} ${cluster} ${name}`];
    // Deletes first, so that the last change of a place is also the last entry of the map.
    if (random.below(2) === 0) {
      held.clusters.delete(place);
      if (random.below(3) === 0) return void (await pusher.acknowledged(pusher.delete(clusterSlice(shard), ['cluster'], cluster)));
      const entry: Cluster = {
        path: of(['home:alice', 'root:org', 'root', `other:p${random.below(1_000_000)}`]),
        parentless: random.below(2) === 0,
        migrating: random.below(3) === 0,
      };
      // Deletes first, because an unchanged entry would keep the time of its last change in the
      // server but not in the copy.
      await pusher.acknowledged(pusher.delete(clusterSlice(shard), ['cluster'], cluster));
      held.clusters.set(place, entry);
      await pusher.acknowledged(pusher.put(clusterSlice(shard), [pushedCluster(cluster, entry)], pathEntryVersion));
    } else if (random.below(3) === 0) {
      held.workspaces.delete(edge);
      await pusher.acknowledged(pusher.delete(workspaceSlice(shard), [name], cluster));
    } else {
      const [to, on] = [of(clusters), of([...shards, undefined])];
      held.workspaces.set(edge, on === undefined ? to : `${to}@${on}`);
      const pushed = pushedWorkspace(`${cluster} ${name}`, { cluster: to, ...(on !== undefined && { shard: on }) });
      await pusher.acknowledged(pusher.put(workspaceSlice(shard), [pushed], pathEntryVersion));
    }
  };
  const expected = async (path: string): Promise<string> => {
    const entries = new MemoryEntries();
    for (const [place, { path: own, parentless, migrating }] of held.clusters) {
      const [shard = '', cluster = ''] = place.split(' ');
      entries.cluster(shard, cluster, { path: own as never, isParentless: parentless, isMigrating: migrating });
    }
    for (const [edge, to] of held.workspaces) {
      const [shard = '', cluster = '', name = ''] = edge.split(' ');
      entries.edge(shard, cluster, name, to);
    }
    const found = await walk(parsePathSegments(path)!, entries);
    return found.kind === 'cluster' ? `${found.cluster} on ${found.shard}` : found.kind === 'missing' ? 'unknown' : found.kind;
  };
  const answered = async (path: string): Promise<string> => {
    const { status, text } = await server.client().raw('GET', `/services/cache/resolve?${new URLSearchParams({ path }).toString()}`);
    if (status !== 200) return `${status}: ${text}`;
    const answer = JSON.parse(text) as PathAnswer;
    return answer.kind === 'cluster' ? `${answer.cluster} on ${answer.shard}` : answer.kind;
  };

  const seen = new Set<string>();
  for (let step = 0; step < steps; step += 1) {
    await change();
    for (const path of paths) {
      const wanted = await expected(path);
      seen.add(wanted);
      t.is(await answered(path), wanted, `${path} after ${step} changes`);
    }
  }
  // Each seed that was tried gives more than three different results.
  t.true(seen.size > 3, `they were told ${[...seen].join('; ')}`);
});
