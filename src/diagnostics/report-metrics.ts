/**
 * A status report as metrics: certificates, shards, their slices, links, and whether the tree is
 * complete. Each report removes the series that it does not contain.
 *
 * A slice has seven series. If there are more slices than `slicesMax`, each shard has these seven
 * once, over all its types, with the type `*`.
 */
import { formatResource } from '../domain/resource.js';
import { sumSlices } from '../domain/slices/slice-sums.js';
import { childNeighbour } from '../domain/via.js';
import type {
  CertificateStatus,
  HeldRemovalStatus,
  LinkStatus,
  ShardStatus,
  SliceStatus,
  StatusReport,
  TreeStatus,
} from '../domain/status.js';
import type { Metrics } from './metrics.js';

export function showReport(
  metrics: Metrics,
  { tree, certificates, shards }: StatusReport,
  { slicesMax }: Readonly<{ slicesMax: number }>,
): void {
  showCertificates(metrics, certificates);
  const slices = shards.reduce((sum, shard) => sum + shard.slices.length, 0);
  showShards(metrics, slices > slicesMax ? shards.map(withoutTypes) : shards);
  if (tree !== undefined) metrics.treeComplete.set(tree.complete ? 1 : 0);
  showLinks(metrics, tree === undefined ? [] : linksOf(tree));
}

/** If several certificates have the same use, the first to expire counts. */
export function showCertificates(
  { certificateExpiresSeconds }: Pick<Metrics, 'certificateExpiresSeconds'>,
  certificates: readonly CertificateStatus[],
): void {
  certificateExpiresSeconds.reset();
  const firstSeconds = new Map<string, number>();
  for (const { use, notAfter } of certificates)
    firstSeconds.set(use, Math.min(firstSeconds.get(use) ?? Infinity, Date.parse(notAfter) / 1000));
  for (const [use, seconds] of firstSeconds) certificateExpiresSeconds.set(seconds, { use });
}

type ShownSlice = Pick<
  SliceStatus,
  'group' | 'resource' | 'identity' | 'everSynced' | 'whole' | 'objects' | 'bytes' | 'changedAgoMs' | 'lagMs'
> &
  Readonly<{ held: Pick<HeldRemovalStatus, 'removes'> | null }>;
type ShownShard = Pick<ShardStatus, 'shard' | 'removed' | 'connection'> & Readonly<{ slices: readonly ShownSlice[] }>;

/**
 * Combines the types of a shard. A flag is set if it is set for every type. Counts are summed. The
 * last change and the longest lag are shown.
 */
function withoutTypes({ shard, removed, connection, slices }: ShardStatus): ShownShard {
  const { everSynced, whole, removes, ...sums } = sumSlices(slices);
  const all: ShownSlice = {
    ...sums,
    group: '',
    resource: '*',
    identity: '',
    everSynced: everSynced === slices.length,
    whole: whole === slices.length,
    held: removes === null ? null : { removes },
  };
  return { shard, removed, connection, slices: slices.length === 0 ? [] : [all] };
}

function showShards(metrics: Metrics, shards: readonly ShownShard[]): void {
  const { shardConnected, sliceEverSynced, sliceWhole, sliceHeldObjects, sliceObjects, sliceBytes, sliceChangedSeconds, sliceLagSeconds } =
    metrics;
  const ofSlices = [sliceEverSynced, sliceWhole, sliceHeldObjects, sliceObjects, sliceBytes, sliceChangedSeconds, sliceLagSeconds];
  for (const gauge of [shardConnected, ...ofSlices]) gauge.reset();
  for (const { shard, removed, connection, slices } of shards) {
    if (connection.kind !== 'plain' && !removed) shardConnected.set(connection.kind === 'connected' ? 1 : 0, { shard });
    for (const slice of slices) {
      const labels = { shard, type: formatResource(slice).replace(/:$/, '') };
      sliceEverSynced.set(slice.everSynced ? 1 : 0, labels);
      sliceWhole.set(slice.whole ? 1 : 0, labels);
      sliceHeldObjects.set(slice.held?.removes ?? 0, labels);
      sliceObjects.set(slice.objects, labels);
      sliceBytes.set(slice.bytes, labels);
      if (slice.changedAgoMs !== null) sliceChangedSeconds.set(slice.changedAgoMs / 1000, labels);
      if (slice.lagMs !== null) sliceLagSeconds.set(slice.lagMs / 1000, labels);
    }
  }
}

type NamedLink = Readonly<{ neighbour: string; link: LinkStatus }>;

function linksOf({ parent, children }: TreeStatus): readonly NamedLink[] {
  const below = children.map((child) => ({ neighbour: childNeighbour(child.name), link: child }));
  return parent === null ? below : [{ neighbour: 'parent', link: parent }, ...below];
}

function showLinks({ linkConnected, linkBehind, linkSlices }: Metrics, links: readonly NamedLink[]): void {
  for (const gauge of [linkConnected, linkBehind, linkSlices]) gauge.reset();
  for (const { neighbour, link } of links) {
    linkConnected.set(link.connection.kind === 'connected' ? 1 : 0, { neighbour });
    if (link.sending === null) continue;
    const { slices, current, behind } = link.sending;
    linkBehind.set(behind, { neighbour });
    linkSlices.set(current, { neighbour, state: 'in-step' });
    linkSlices.set(slices - current, { neighbour, state: 'syncing' });
  }
}
