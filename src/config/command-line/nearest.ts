/**
 * The known word that a mistyped word probably meant; undefined if no known word is near. A
 * truncated word such as `STRATA_ROOTDIR` matches the shortest known word that begins with it, even
 * if many letters are missing.
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  const words = [...known];
  return shortestBeginning(word, words) ?? nearestByEdits(word, words);
}

/**
 * Separators are ignored. At least half of the known word must be given, because many words begin
 * with the same letter.
 */
function shortestBeginning(word: string, known: readonly string[]): string | undefined {
  const letters = lettersOf(word);
  return known
    .filter((candidate) => lettersOf(candidate).startsWith(letters) && lettersOf(candidate).length <= 2 * letters.length)
    .toSorted((a, b) => a.length - b.length)[0];
}

function lettersOf(word: string): string {
  return word.replaceAll(/[-_]/g, '');
}

function nearestByEdits(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.ceil(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(word, candidate);
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/** The Levenshtein distance, computed row by row. */
function editDistance(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = above[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, above[column]! + 1, current[column - 1]! + 1));
    }
    above = current;
  }
  return above[to.length]!;
}

/** The end of an error message about an unknown word: '' if no known word is near. */
export function suggestion(word: string, known: Iterable<string>, prefix = ''): string {
  const meant = nearest(word, known);
  return meant === undefined ? '' : `; did you mean ${prefix}${meant}?`;
}
