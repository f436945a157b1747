/**
 * The value of JSON text; undefined if the text is invalid. Only for reading, because numbers may
 * lose digits.
 */
export function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
