/** Whether a header can carry a text as it is: blanks at its ends would be lost, and control characters end a header. */
export function isHeaderValue(text: string): boolean {
  return text !== '' && text.trim() === text && !/\p{Cc}/u.test(text);
}
