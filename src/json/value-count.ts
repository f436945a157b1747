/**
 * Estimates how many values JSON text has. The memory for a tree depends on the number of values,
 * not on the length of the text.
 */
const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];

/** Counts only until `max` is exceeded. An empty array or object counts as two. */
export function countValues(json: Uint8Array, max: number): number {
  let count = 1;
  for (let at = 0; at < json.length && count <= max; at++) {
    const byte = json[at];
    if (byte === quote) at = closingQuote(json, at);
    // A value follows each comma and each opening bracket, 0x5b or 0x7b.
    else if (byte === comma || byte === 0x5b || byte === 0x7b) count += 1;
  }
  return count;
}

/**
 * The text of an unchecked body; undefined if it is too large to be parsed in one turn of the event
 * loop.
 */
export function boundedText(
  body: Uint8Array,
  { bytesMax, valuesMax }: Readonly<{ bytesMax: number; valuesMax: number }>,
): string | undefined {
  return body.length > bytesMax || countValues(body, valuesMax) > valuesMax ? undefined : new TextDecoder().decode(body);
}

/** `start`: the opening quote. */
export function closingQuote(json: Uint8Array, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    if (json[at] === backslash) at += 1;
    else if (json[at] === quote) return at;
  }
  return json.length;
}
