/**
 * How much room the pieces of request bodies take from their caller's budget. A fault would let
 * many short pieces take much memory, or keep out short bodies.
 */
import { test } from '../../support/test.js';
import { Budget } from '../../../src/domain/base/budget.js';
import { BodyPieces } from '../../../src/http/body-pieces.js';

const crumbs = (pieces: BodyPieces<number>, count: number): boolean[] => Array.from({ length: count }, () => pieces.tryReserve(0, 1));

test('short bodies are accepted even if their caller’s room is full, but hundreds of one-byte pieces are not', (t) => {
  const room = new Budget(100_000);
  room.add(100_000);
  const pieces = new BodyPieces<number>(room);
  for (let request = 1; request < 10_000; request += 1) {
    for (let i = 0; i < 5; i += 1) t.true(pieces.tryReserve(request, 34));
    pieces.ended(request);
    t.is(room.used, 100_000);
  }
  t.true(crumbs(pieces, 200).every(Boolean));
  t.true(crumbs(pieces, 200).includes(false));
  pieces.close();
  t.is(room.used, 100_000);
});

test('with room a caller may hold some thousand one-byte pieces, and their room is given back when the request ends', (t) => {
  const room = new Budget(100_000_000);
  const pieces = new BodyPieces<number>(room);
  pieces.tryReserve(1, 1_000_000);
  const taken = crumbs(pieces, 10_000).filter(Boolean).length;
  t.true(taken > 4_000 && taken < 5_000, `${taken}`);
  t.true(room.used > taken * 200);
  pieces.ended(0);
  t.is(room.used, 0);
  t.true(crumbs(pieces, 200).includes(false));
  pieces.close();
  t.is(room.used, 0);
});
