/** Text for a terminal: tables, and states of connections, freshness and syncs in words. */
import { formatDuration } from '../config/options/quantity.js';
import { unreachable } from '../domain/errors.js';
import type { ShardConnection } from '../domain/status.js';
import type { ResolvedFreshness } from '../lookup/path-resolver.js';
import type { SenderState } from '../sender/sender-state.js';

const gap = '   ';

export function alignedRows(texts: readonly (readonly string[])[]): string {
  const rows = texts.map((row) => row.map(printable));
  const widths = (rows[0] ?? []).map((_, column) => rows.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), 0));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join(gap)
        .trimEnd(),
    )
    .join('\n');
}

/**
 * Makes a text safe for a line, or a cell of a table, on a terminal. Texts that neighbours and
 * shards choose could move the cursor, begin new lines, or reverse the order of characters.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, '?');
}

export function formatConnection(connection: ShardConnection): string {
  switch (connection.kind) {
    case 'connected':
      return `connected ${formatDuration(connection.forMs)}`;
    case 'away':
      return `away ${formatDuration(connection.forMs)}`;
    case 'plain':
      return 'plain HTTP';
    default:
      return unreachable(connection);
  }
}

/** The least fresh report counts. Without any report the result is not current. */
export function formatFreshness(freshness: readonly Pick<ResolvedFreshness, 'current' | 'lagMs'>[]): string {
  if (freshness.length === 0 || !freshness.every(({ current }) => current)) return 'not current';
  return `current, ${Math.max(...freshness.map(({ lagMs }) => lagMs ?? 0))} ms behind`;
}

/** One line about the progress of a shard's first sync, from the state of its sender. */
export function formatProgress({ slices, refused }: Pick<SenderState, 'slices' | 'refused'>): string {
  const synced = slices.filter(({ phase }) => phase === 'synced').length;
  const objects = slices.reduce((sum, slice) => sum + slice.objects, 0);
  const line = `${synced} of ${slices.length} types synced, ${count(objects)} ${objects === 1 ? 'object' : 'objects'} sent`;
  return refused === 0 ? line : `${line}, ${count(refused)} refused`;
}

/** The format is the same in every locale, because other programs read logs. */
function count(number: number): string {
  return number.toLocaleString('en-US');
}
