import { nearest } from './nearest.js';

/** The end of an error message about an unknown word: '' if no known word is near. */
export function suggestion(word: string, known: Iterable<string>, prefix = ''): string {
  const meant = nearest(word, known);
  return meant === undefined ? '' : `; did you mean ${prefix}${meant}?`;
}
