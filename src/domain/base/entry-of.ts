/** A Map, or a WeakMap. */
type Entries<Name, Value> = Readonly<{ get: (name: Name) => Value | undefined; set: (name: Name, value: Value) => unknown }>;

/** Returns the map's value for the name; `create` makes a missing one. */
export function entryOf<Name, Value>(map: Entries<Name, Value>, name: Name, create: () => Value): Value {
  const existing = map.get(name);
  if (existing !== undefined) return existing;
  const created = create();
  map.set(name, created);
  return created;
}
