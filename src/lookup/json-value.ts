/** What JSON text says; undefined, which JSON cannot say, when it is none. For looking into answers, never for passing them on. */
export function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
