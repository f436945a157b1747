/** Path entries of an invented installation, in memory, as a walk reads them. */
import type { ClusterName } from '../../../src/domain/cluster.js';
import type { ClusterEntry, WorkspaceEntry } from '../../../src/domain/path-entry.js';
import type { Dispute } from '../../../src/domain/path-resolution.js';
import type { ShardName } from '../../../src/domain/shard.js';
import type { EntryOnShard, PathEntries } from '../../../src/paths/resolve.js';
import { clusterName, shardName } from '../objects.js';

export class MemoryEntries implements PathEntries {
  readonly conflicts: string[] = [];
  /** How many entries the walk has read. */
  reads = 0;
  readonly #clusters = new Map<ClusterName, EntryOnShard[]>();
  readonly #workspaces = new Map<string, WorkspaceEntry>();
  #revision = 0;

  cluster(shard: string, cluster: string, entry: Partial<ClusterEntry> = {}): this {
    const places = this.#clusters.get(clusterName(cluster)) ?? [];
    this.#revision += 1;
    const complete: ClusterEntry = { kind: 'cluster', path: undefined, isParentless: false, isMigrating: false, ...entry };
    this.#clusters.set(clusterName(cluster), [...places, { shard: shardName(shard), revision: this.#revision, entry: complete }]);
    return this;
  }

  /**
   * `target`: a URL, or the name of a logical cluster; `@` and a shard follow if the Workspace
   * names its shard.
   */
  edge(shard: string, parent: string, name: string, target: string, isUnavailable = false): this {
    const [cluster = '', on] = target.split('@');
    const to = target.startsWith('https:')
      ? { url: target }
      : { cluster: clusterName(cluster), shard: on === undefined ? undefined : shardName(on) };
    this.#workspaces.set([shard, parent, name].join('|'), { kind: 'workspace', target: to, isUnavailable });
    return this;
  }

  async shardsOf(cluster: ClusterName): Promise<readonly ShardName[]> {
    this.reads += 1;
    return (this.#clusters.get(cluster) ?? []).map(({ shard }) => shard);
  }

  async clusterOn(shard: ShardName, cluster: ClusterName): Promise<EntryOnShard | undefined> {
    this.reads += 1;
    return this.#clusters.get(cluster)?.find((place) => place.shard === shard);
  }

  async workspace(shard: ShardName, parent: ClusterName, name: string): Promise<WorkspaceEntry | undefined> {
    this.reads += 1;
    return this.#workspaces.get([shard, parent, name].join('|'));
  }

  async ownersOf(path: string): Promise<readonly ClusterName[]> {
    this.reads += 1;
    const owners = [...this.#clusters].filter(([, places]) => places.some(({ entry }) => entry.isParentless && entry.path === path));
    return owners.map(([cluster]) => cluster);
  }

  conflict({ cluster, shards }: Dispute): void {
    this.conflicts.push(`${cluster} on ${shards.join()}`);
  }
}
