/** What stands in the map under the name; made and put there when there is nothing. */
export function entryOf<Name, Value>(map: Map<Name, Value>, name: Name, create: () => Value): Value {
  const existing = map.get(name);
  if (existing !== undefined) return existing;
  const created = create();
  map.set(name, created);
  return created;
}
