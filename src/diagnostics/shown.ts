/** How much of a text that a peer chose a log shows. */
const shownCharactersMax = 256;

export function shown(text: string): string {
  return text.slice(0, shownCharactersMax);
}
