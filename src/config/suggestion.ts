import { nearest } from './nearest.js';

/** The end of a complaint about an unknown word: '' when no known one is near. */
export function suggestion(word: string, known: Iterable<string>, prefix = ''): string {
  const meant = nearest(word, known);
  return meant === undefined ? '' : `; did you mean ${prefix}${meant}?`;
}
