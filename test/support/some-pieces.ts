/** Pieces as a connection brings them. */
import fc from 'fast-check';

/** Of lengths around what `domain/gathered-bytes.ts` takes for short, each of one letter, and nothing. */
const piece = fc.tuple(fc.constantFrom(0, 1, 2, 100, 1_023, 1_024, 1_025, 5_000, 20_000), fc.constantFrom(...'abcdef'));

export const pieces = fc.array(
  piece.map(([length, letter]) => Buffer.alloc(length, letter)),
  { maxLength: 60 },
);
