/**
 * The value of JSON text; undefined if the text is invalid. Never write the value back, because
 * numbers may have lost digits.
 */
export function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
