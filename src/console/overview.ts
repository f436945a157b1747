/**
 * The console's overview of a cache, made from its status report. It has one entry for each shard
 * and one for each type. A large cache has tens of thousands of slices, so they are not listed.
 * Pure.
 */
import type { LastLine } from '../diagnostics/last-lines.js';
import type { ServedType } from '../domain/catalogue/catalogue.js';
import { entryOf } from '../domain/base/entry-of.js';
import type { LinkStatus, ShardStatus, SliceStatus, StatusReport } from '../domain/status.js';
import { sumSlices, type SliceSums } from '../domain/slices/slice-sums.js';
import type { Activity, NeighbourView, Overview, ShardState, ShardView, TreeView, TypeView } from './page/overview.js';

export type OverviewParts = Readonly<{
  report: StatusReport;
  types: readonly ServedType[];
  activity: Activity;
  lines: readonly LastLine[];
}>;

/**
 * How many shards and slices are processed in one turn of the event loop, unless one shard has
 * more.
 */
const checksPerTurn = 750;

/** `turn` resolves in a later turn of the event loop. */
export async function overviewOf({ report, types, activity, lines }: OverviewParts, turn: () => Promise<void>): Promise<Overview> {
  const { cache, tree, shards, certificates } = report;
  const views: ShardView[] = [];
  const sums = new TypeSums();
  let looks = 0;
  for (const shard of shards) {
    views.push(shardOf(shard));
    for (const slice of shard.slices) sums.add(slice);
    looks += 1 + shard.slices.length;
    if (looks < checksPerTurn) continue;
    await turn();
    looks = 0;
  }
  return {
    cache,
    tree: tree === undefined ? null : treeOf(tree),
    shards: views,
    types: typesOf(types, sums),
    certificates: certificates.map(({ use, subject, expiresInMs }) => ({ use, subject, expiresInMs })),
    activity,
    lines,
  };
}

function treeOf({ name, hops, complete, parent, children }: NonNullable<StatusReport['tree']>): TreeView {
  return {
    name,
    hops,
    complete,
    parent: parent && { ...neighbourOf(new URL(parent.url).host, parent), message: parent.message },
    children: children.map((child) => neighbourOf(child.name, child)),
  };
}

function neighbourOf(name: string, { connection, sending, receiving }: LinkStatus): NeighbourView {
  const { kind, forMs } = connection;
  const { slices, current } = receiving;
  return { name, connected: kind === 'connected', forMs, behind: sending && sending.behind, slices, current, message: null };
}

function shardOf(status: ShardStatus): ShardView {
  const { shard, via, connection, slices } = status;
  const sums = sumSlices(slices);
  const { whole, objects, bytes, changedAgoMs, lagMs } = sums;
  const forMs = connection.kind === 'plain' ? null : connection.forMs;
  return { shard, via, state: stateOf(status, sums), forMs, types: slices.length, whole, objects, bytes, lagMs, changedAgoMs };
}

function stateOf({ removed, connection, slices }: ShardStatus, { removes, whole }: SliceSums): ShardState {
  if (removed) return 'removed';
  if (connection.kind === 'away' || slices.some(({ sourceConnected }) => sourceConnected === false)) return 'away';
  if (removes !== null) return 'held';
  return whole === slices.length ? 'fresh' : 'partial';
}

type TypeName = Pick<SliceStatus, 'group' | 'resource' | 'identity'>;
type TypeSum = TypeName & { shards: number; objects: number; bytes: number };

class TypeSums {
  /** Keyed by resource, group and identity. Nested maps need no joined key for each slice. */
  readonly #byResource = new Map<string, Map<string, Map<string, TypeSum>>>();

  add(slice: TypeName & Pick<SliceStatus, 'objects' | 'bytes'>): void {
    const { objects, bytes } = slice;
    const sum = this.of(slice) ?? this.#begin(slice);
    sum.objects += objects;
    sum.bytes += bytes;
    if (objects > 0) sum.shards += 1;
  }

  of({ group, resource, identity }: TypeName): TypeSum | undefined {
    return this.#byResource.get(resource)?.get(group)?.get(identity);
  }

  #begin({ group, resource, identity }: TypeName): TypeSum {
    const sum = { group, resource, identity, shards: 0, objects: 0, bytes: 0 };
    const byGroup = entryOf(this.#byResource, resource, () => new Map<string, Map<string, TypeSum>>());
    entryOf(byGroup, group, () => new Map<string, TypeSum>()).set(identity, sum);
    return sum;
  }
}

function typesOf(types: readonly ServedType[], sums: TypeSums): readonly TypeView[] {
  return types
    .map(({ group, resource, identity, kind, namespaced, versions }): TypeView => {
      const { shards, objects, bytes } = sums.of({ group, resource, identity }) ?? { shards: 0, objects: 0, bytes: 0 };
      return { group, version: versions[0]?.name ?? '', resource, identity, kind, namespaced, shards, objects, bytes };
    })
    .toSorted((a, b) => b.objects - a.objects || a.resource.localeCompare(b.resource));
}
