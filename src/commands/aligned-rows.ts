import { printable } from './printable.js';

const gap = '   ';

/** A table with aligned columns, for people. */
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
