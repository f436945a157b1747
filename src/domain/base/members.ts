/** The members of a JSON object, whose types are not checked yet. */
export type Members = Readonly<Record<string, unknown>>;

/** Whether parsed JSON or YAML is an object: neither null nor a list. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function membersOf(value: unknown): Members {
  return isObject(value) ? value : {};
}

export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The string at a path of member names in parsed JSON; undefined if there is no string. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  let found = value;
  for (const name of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return typeof found === 'string' ? found : undefined;
}
