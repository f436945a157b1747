/**
 * The texts of a list option, read as pflag's StringSlice does: as a CSV record. A text with a
 * comma or a quotation mark is written `"a,b"`, `"a ""b"""`. If the option is given several times,
 * each line is one value, and all of them count.
 */
import { readCsvRecord } from '../../domain/base/csv-record.js';

/**
 * An empty text means none; undefined for invalid CSV. A line break separates records, where pflag
 * would drop all but the first.
 */
export function readStringSlice(text: string): readonly string[] | undefined {
  const found: string[] = [];
  for (const line of text.split('\n')) {
    const texts = readCsvRecord(line);
    if (texts === undefined) return undefined;
    found.push(...texts);
  }
  return found;
}
