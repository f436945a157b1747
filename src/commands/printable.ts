/**
 * Makes a text safe for a line, or a cell of a table, on a terminal. Texts that neighbours and
 * shards choose could move the cursor, begin new lines, or reverse the order of characters.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, '?');
}
