/** Pushes path entries: all entries of a shard, then changes. */
import { clusterEntries, clusterEntryName, pathEntryVersion, workspaceEntries } from '../../src/domain/path-entry.js';
import type { Slice } from '../../src/domain/slice.js';
import type { PushedObject } from '../../src/frames/frame.js';
import { shardName } from './objects.js';
import type { RawPusher } from './raw-pusher.js';

/**
 * `clusters`: the entry of each logical cluster. `workspaces`: the target of each Workspace, by
 * parent and name, as `root org`.
 */
export type Entries = Readonly<{
  clusters?: Readonly<Record<string, Readonly<{ path?: string; parentless?: boolean; migrating?: boolean }>>>;
  workspaces?: Readonly<Record<string, Readonly<{ cluster?: string; shard?: string; url?: string; unavailable?: boolean }>>>;
}>;

export function clusterSlice(shard: string): Slice {
  return { shard: shardName(shard), resource: clusterEntries };
}

export function workspaceSlice(shard: string): Slice {
  return { shard: shardName(shard), resource: workspaceEntries };
}

export function pushedCluster(cluster: string, entry: unknown): PushedObject {
  return pushed(cluster, clusterEntryName, entry);
}

export function pushedWorkspace(place: string, entry: unknown): PushedObject {
  const [parent = '', name = ''] = place.split(' ');
  return pushed(parent, name, entry);
}

/** Syncs both slices and reports them whole and current; resolves once they are acknowledged. */
export async function syncPaths(pusher: RawPusher, shard: string, { clusters = {}, workspaces = {} }: Entries): Promise<void> {
  const ofClusters = Object.entries(clusters).map(([cluster, entry]) => pushedCluster(cluster, entry));
  const ofWorkspaces = Object.entries(workspaces).map(([place, entry]) => pushedWorkspace(place, entry));
  await pusher.syncWhole(clusterSlice(shard), ofClusters, pathEntryVersion);
  await pusher.syncWhole(workspaceSlice(shard), ofWorkspaces, pathEntryVersion);
}

function pushed(cluster: string, name: string, entry: unknown): PushedObject {
  return { cluster, namespace: '', name, sourceVersion: '1', body: new TextEncoder().encode(JSON.stringify(entry)) };
}
