/**
 * The texts of a list option, read as pflag's StringSlice reads them: a record of CSV, so a text that has a comma or a quotation mark is written `"a,b"`, `"a ""b"""`.
 * Of an option that is given several times, each line is one of its values, and all of them count.
 */
import { readCsvRecord } from '../domain/csv-record.js';

/** Empty means none; undefined: it is no such text. A line break ends what is before it: pflag would lose what comes behind. */
export function readStringSlice(text: string): readonly string[] | undefined {
  const found: string[] = [];
  for (const line of text.split('\n')) {
    const texts = readCsvRecord(line);
    if (texts === undefined) return undefined;
    found.push(...texts);
  }
  return found;
}
