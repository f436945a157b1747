/**
 * Matches one field and its end. As in Go's encoding/csv, a field may contain a quotation mark only
 * if it begins with one.
 */
const field = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;

/** Reads a line as Go's encoding/csv does. Undefined if the line is malformed. */
export function readCsvRecord(line: string): readonly string[] | undefined {
  const found: string[] = [];
  if (line === '') return found;
  for (field.lastIndex = 0; ;) {
    const [, quoted, plain, end] = field.exec(line) ?? [];
    if (end === undefined) return undefined;
    found.push(plain ?? quoted!.replaceAll('""', '"'));
    if (end === '') return found;
  }
}
