/** Returns the map's value for the name, which `create` makes if there is none. */
export function entryOf<Name, Value>(map: Map<Name, Value>, name: Name, create: () => Value): Value {
  const existing = map.get(name);
  if (existing !== undefined) return existing;
  const created = create();
  map.set(name, created);
  return created;
}
