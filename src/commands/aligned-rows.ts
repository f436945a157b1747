/** A table for people, columns aligned. */
const gap = '   ';

export function alignedRows(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join(gap)
        .trimEnd(),
    )
    .join('\n');
}
