/** The members of a JSON object whose types nobody has looked at yet. */
export type Members = Readonly<Record<string, unknown>>;

/** Whether parsed JSON or YAML is an object: neither null nor a list. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The members of an object; none of anything else. */
export function membersOf(value: unknown): Members {
  return isObject(value) ? value : {};
}

/** The items of a list; none of anything else. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
