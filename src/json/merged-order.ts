/**
 * The order of a merged list, as in strategicpatch's normalizeElementOrder. Items that the patch
 * names keep the patch's order, the others keep their own. An unnamed item comes before the next
 * named one if it preceded that in the live list.
 *
 *   live  a b c d      first  d b      merged  a c d b
 *
 * (a and c preceded d in the live list.)
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
