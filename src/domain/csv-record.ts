/** A text, whole, and what follows it. As Go's encoding/csv, it may have no quotation mark unless it begins with one. */
const field = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;

/** The fields of a line of CSV as Go's encoding/csv reads it: none of an empty one, undefined for a malformed one. */
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
