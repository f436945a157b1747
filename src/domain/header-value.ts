/**
 * Whether a header can carry the text unchanged. Blanks at its ends would be lost, and control
 * characters would end the header.
 */
export function isHeaderValue(text: string): boolean {
  return text !== '' && text.trim() === text && !/\p{Cc}/u.test(text);
}
