/**
 * A status report for people: the cache and its neighbours, then a table with one row for each
 * shard and type.
 */
import { alignedRows, formatConnection, printable } from './terminal-text.js';
import { formatBytes, formatDuration } from '../config/options/quantity.js';
import { sumSlices } from '../domain/slices/slice-sums.js';
import { formatGroupResource } from '../domain/resource.js';
import type { KeptStatus, ShardStatus, SliceStatus, StatusReport } from '../domain/status.js';
import { policyCharactersOfTerminal, treeLines } from './tree-lines.js';

const heading = ['SHARD', 'VIA', 'TYPE', 'CONNECTION', 'SYNCED', 'OBJECTS', 'BYTES', 'CHANGED', 'LAG'];
const nothing = '–';
/** Enough characters of an identity hash to tell two apart. */
const identityCharactersShown = 8;

export function formatStatusTable(report: StatusReport, { isTerminal }: Readonly<{ isTerminal: boolean }>): string {
  const rows = report.shards.flatMap(rowsOf);
  const lines = treeLines(report, { policyCharactersMax: isTerminal ? policyCharactersOfTerminal : Infinity });
  return `${lines.join('\n')}\n\n${rows.length === 0 ? 'no shards yet' : alignedRows([heading, ...rows])}\n${keptTable(report.kept)}`;
}

/**
 * The second table: names of labels and annotations that this cache keeps on copies, if there are
 * any.
 */
function keptTable(kept: readonly KeptStatus[]): string {
  const rows = kept.map((status) => [status.shard, typeOf(status), printable(status.name), String(status.objects)]);
  return rows.length === 0 ? '' : `\n${alignedRows([['SHARD', 'TYPE', 'KEPT', 'OBJECTS'], ...rows])}\n`;
}

export function formatShardList(shards: readonly ShardStatus[]): string {
  const rows = shards.map((shard) => {
    const { everSynced, objects, bytes } = sumSlices(shard.slices);
    const synced = `${everSynced} of ${shard.slices.length}`;
    return [shard.shard, viaOf(shard), connectionOf(shard), synced, String(objects), formatBytes(bytes)];
  });
  return rows.length === 0
    ? 'no shards yet\n'
    : `${alignedRows([['SHARD', 'VIA', 'CONNECTION', 'SYNCED TYPES', 'OBJECTS', 'BYTES'], ...rows])}\n`;
}

function rowsOf(shard: ShardStatus): readonly (readonly string[])[] {
  const empty = [shard.shard, viaOf(shard), nothing, connectionOf(shard), nothing, '0', '0 B', nothing, nothing];
  if (shard.slices.length === 0 && shard.unknownTypes.length === 0) return [empty];
  const unknown = shard.unknownTypes.map((type) => {
    const [name = '', identity = ''] = type.split(':');
    return [shard.shard, viaOf(shard), shortened(name, identity), connectionOf(shard), 'type unknown', '0', '0 B', nothing, nothing];
  });
  const known = shard.slices.map((slice) => [
    shard.shard,
    viaOf(shard),
    typeOf(slice),
    `${connectionOf(shard)}${slice.sourceConnected === false ? ', source away' : ''}`,
    syncTextOf(slice),
    String(slice.objects),
    formatBytes(slice.bytes),
    slice.changedAgoMs === null ? 'never' : `${formatDuration(slice.changedAgoMs)} ago`,
    slice.lagMs === null ? nothing : formatDuration(slice.lagMs),
  ]);
  return [...known, ...unknown];
}

function typeOf({ group, resource, identity }: Pick<SliceStatus, 'group' | 'resource' | 'identity'>): string {
  return shortened(formatGroupResource({ group, resource }), identity);
}

function shortened(type: string, identity: string): string {
  return identity === '' ? type : `${type}:${identity.slice(0, identityCharactersShown)}`;
}

function viaOf({ via }: Pick<ShardStatus, 'via'>): string {
  return via ?? nothing;
}

function connectionOf({ removed, connection, standbys }: Pick<ShardStatus, 'removed' | 'connection' | 'standbys'>): string {
  const words = removed ? 'removed' : formatConnection(connection);
  return standbys === 0 ? words : `${words}, ${standbys} standby`;
}

/**
 * Shows just `yes` for a slice that its present pusher synced in full and that changes keep
 * current.
 */
function syncTextOf({ everSynced, whole, syncedIn, current, held }: SliceStatus): string {
  if (held !== null) return `held: ${held.removes} to be removed in ${formatDuration(held.releaseInMs)}`;
  const words = [everSynced ? 'yes' : 'no'];
  if (syncedIn === 'earlier' || syncedIn === 'assumed') words.push(syncedIn);
  if (current === false) words.push('not current');
  else if (everSynced && !whole && words.length === 1) words.push('not whole');
  return words.join(', ');
}
