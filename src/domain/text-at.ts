/**
 * The string at a path of members of parsed JSON; undefined if there is none, or another type of
 * value.
 */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  let found = value;
  for (const name of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return typeof found === 'string' ? found : undefined;
}
