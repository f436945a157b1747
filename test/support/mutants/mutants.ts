/**
 * Mutants that can be planted into more than one build, to compare what their tests notice. The
 * text of its line identifies a mutant, so each file must have that line exactly once.
 */
import { mutated, mutationsOf } from './mutations.js';

/** `file` is below `build`. `column` counts from 0 in `line`, and `before` is the text there. */
export type Mutant = Readonly<{ file: string; line: string; column: number; before: string; after: string }>;

/** The mutants of a file whose line occurs exactly once in each of these texts. */
export function mutantsOf(file: string, [text, ...others]: readonly [string, ...string[]]): readonly Mutant[] {
  return mutationsOf(text).flatMap(({ from, to, after }) => {
    const start = text.lastIndexOf('\n', from - 1) + 1;
    const line = text.slice(start, text.indexOf('\n', from));
    if (![text, ...others].every((each) => placeOf(each, line) !== undefined)) return [];
    return [{ file, line, column: from - start, before: text.slice(from, to), after }];
  });
}

/** The text with the mutant; undefined unless its line occurs exactly once. */
export function planted(text: string, { line, column, before, after }: Mutant): string | undefined {
  const place = placeOf(text, line);
  return place === undefined ? undefined : mutated(text, { from: place + column, to: place + column + before.length, after });
}

function placeOf(text: string, line: string): number | undefined {
  const place = `\n${text}`.indexOf(`\n${line}\n`);
  return place < 0 || `\n${text}`.indexOf(`\n${line}\n`, place + 1) >= 0 ? undefined : place;
}
