/** The characters that a log shows of a text that a peer chose. */
const shownCharactersMax = 256;

export function shown(text: string): string {
  return text.slice(0, shownCharactersMax);
}
