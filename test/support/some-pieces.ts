import fc from 'fast-check';

/**
 * Nothing, or bytes of one letter; the lengths are around the one below which
 * `domain/base/gathered-bytes.ts` copies a piece.
 */
const piece = fc.tuple(fc.constantFrom(0, 1, 2, 100, 1_023, 1_024, 1_025, 5_000, 20_000), fc.constantFrom(...'abcdef'));

export const pieces = fc.array(
  piece.map(([length, letter]) => Buffer.alloc(length, letter)),
  { maxLength: 60 },
);
