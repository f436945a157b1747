/**
 * The order of a merged list, as strategicpatch's normalizeElementOrder has it: items that the patch names are in its order, the
 * others in the order they had; where both were in the live list, an unnamed item stays before a named one that it stood before.
 *
 *   live  a b c d      first  d b      merged  a d b c
 *
 * (a stood before d; c did not stand before d or b, so it comes when both are out.)
 */
export function orderMerged<T>(
  items: ReadonlyMap<string, readonly T[]>,
  { first, live }: { first: readonly string[]; live: readonly string[] },
): readonly T[] {
  const named = [...new Set(first)].filter((key) => items.has(key));
  const isNamed = new Set(named);
  const placeInLive = new Map<string, number>();
  for (const [place, key] of live.entries()) if (!placeInLive.has(key)) placeInLive.set(key, place);
  const others = [...items.keys()].filter((key) => !isNamed.has(key));

  const ordered: string[] = [];
  let next = 0;
  for (const key of named) {
    const place = placeInLive.get(key) ?? -1;
    while (next < others.length && (placeInLive.get(others[next] as string) ?? Infinity) < place) ordered.push(others[next++] as string);
    ordered.push(key);
  }
  return [...ordered, ...others.slice(next)].flatMap((key) => items.get(key) ?? []);
}
