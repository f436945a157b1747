/** Of a text that a peer chose, for a log. */
const shownCharactersMax = 256;

export function shown(text: string): string {
  return text.slice(0, shownCharactersMax);
}
