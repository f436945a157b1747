/**
 * Go's encoding/json matches members without regard to case, with Unicode's folding: the Kelvin
 * sign is a k, the long s an s.
 */
export type Spellings = ReadonlyMap<string, string>;

export function spellingsOf(names: readonly string[]): Spellings {
  return new Map(names.map((name) => [folded(name), name]));
}

/**
 * The known name from which `name` differs only in case; undefined if there is none, or if they are
 * equal.
 */
export function otherSpelling(name: string, known: Spellings): string | undefined {
  const meant = known.get(folded(name));
  return meant === name ? undefined : meant;
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll('\u017f', 's');
}
