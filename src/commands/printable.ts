/**
 * For a line, or a cell of a table, on a terminal: what neighbours and shards call themselves may move its cursor, begin further lines, or turn the order of
 * characters around.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, '?');
}
