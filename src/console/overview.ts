/**
 * What the console shows of a cache, made from its status report: a line for each shard and for each type, and not one for each of both, of which a
 * large cache has tens of thousands. Pure.
 */
import type { LastLine } from '../diagnostics/last-lines.js';
import type { ServedType } from '../domain/catalogue.js';
import type { LinkStatus, ShardStatus, SliceStatus, StatusReport } from '../domain/status.js';
import type { Activity, NeighbourView, Overview, ShardState, ShardView, TreeView, TypeView } from './page/overview.js';

export type OverviewParts = Readonly<{
  report: StatusReport;
  types: readonly ServedType[];
  activity: Activity;
  lines: readonly LastLine[];
}>;

export function overviewOf({ report, types, activity, lines }: OverviewParts): Overview {
  const { cache, tree, shards, certificates } = report;
  return {
    cache,
    tree: tree === undefined ? null : treeOf(tree),
    shards: shards.map(shardOf),
    types: typesOf(types, shards),
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
  return {
    shard,
    via,
    state: stateOf(status),
    forMs: connection.kind === 'plain' ? null : connection.forMs,
    types: slices.length,
    whole: slices.filter(({ whole }) => whole).length,
    objects: sum(slices, ({ objects }) => objects),
    bytes: sum(slices, ({ bytes }) => bytes),
    lagMs: extreme(Math.max, slices, ({ lagMs }) => lagMs),
    changedAgoMs: extreme(Math.min, slices, ({ changedAgoMs }) => changedAgoMs),
  };
}

function stateOf({ removed, connection, slices }: ShardStatus): ShardState {
  if (removed) return 'removed';
  if (connection.kind === 'away' || slices.some(({ sourceConnected }) => sourceConnected === false)) return 'away';
  if (slices.some(({ held }) => held !== null)) return 'held';
  return slices.every(({ whole }) => whole) ? 'fresh' : 'partial';
}

/** Every served type, those with objects first. */
function typesOf(types: readonly ServedType[], shards: readonly ShardStatus[]): readonly TypeView[] {
  const bySlice = new Map<string, SliceStatus[]>();
  for (const slice of shards.flatMap(({ slices }) => slices)) {
    const known = bySlice.get(nameOf(slice));
    if (known === undefined) bySlice.set(nameOf(slice), [slice]);
    else known.push(slice);
  }
  return types
    .map(({ group, resource, identity, kind, namespaced, versions }): TypeView => {
      const slices = bySlice.get(nameOf({ group, resource, identity })) ?? [];
      return {
        group,
        version: versions[0]?.name ?? '',
        resource,
        identity,
        kind,
        namespaced,
        shards: slices.filter(({ objects }) => objects > 0).length,
        objects: sum(slices, ({ objects }) => objects),
        bytes: sum(slices, ({ bytes }) => bytes),
      };
    })
    .toSorted((a, b) => b.objects - a.objects || a.resource.localeCompare(b.resource));
}

function nameOf({ group, resource, identity }: Pick<SliceStatus, 'group' | 'resource' | 'identity'>): string {
  return `${resource}.${group}:${identity}`;
}

function sum(slices: readonly SliceStatus[], of: (slice: SliceStatus) => number): number {
  return slices.reduce((total, slice) => total + of(slice), 0);
}

function extreme(
  pick: (...values: number[]) => number,
  slices: readonly SliceStatus[],
  of: (slice: SliceStatus) => number | null,
): number | null {
  const known = slices.map(of).filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((a, b) => pick(a, b));
}
