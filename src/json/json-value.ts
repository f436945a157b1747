/** The value of JSON text; undefined, which JSON does not have, when it is invalid. For reading answers, never for passing them on. */
export function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
