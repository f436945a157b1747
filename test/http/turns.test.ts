/** Callers take turns. */
import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import type { Exchange } from '../../src/http/exchange.js';
import { Turns } from '../../src/http/turns.js';

const request = (name: string, isEnded = false): Exchange => ({ name, isEnded }) as unknown as Exchange;

function aTurns(): { turns: Turns; handled: string[] } {
  const handled: string[] = [];
  return { turns: new Turns((exchange) => void handled.push((exchange as unknown as { name: string }).name)), handled };
}

test('a caller with one request waits for one of each other caller, not for all of theirs', async (t) => {
  const { turns, handled } = aTurns();
  for (let i = 0; i < 1_000; i++) turns.add('a', request(`a${i}`));
  turns.add('b', request('b0'));

  await turn();

  t.deepEqual(handled.slice(0, 3), ['a0', 'b0', 'a1']);
  t.true(handled.length <= 33, `${handled.length} in one turn`);
});

test('every request is handled in the end, in order of each caller; one that is gone by its turn is not', async (t) => {
  const { turns, handled } = aTurns();
  for (let i = 0; i < 100; i++) turns.add('a', request(`a${i}`, i % 10 !== 0));
  for (let i = 0; i < 50; i++) turns.add('b', request(`b${i}`));

  for (let i = 0; i < 10; i++) await turn();

  t.deepEqual(
    handled.filter((name) => name.startsWith('a')),
    ['a0', 'a10', 'a20', 'a30', 'a40', 'a50', 'a60', 'a70', 'a80', 'a90'],
  );
  t.deepEqual(
    handled.filter((name) => name.startsWith('b')),
    Array.from({ length: 50 }, (_, i) => `b${i}`),
  );
  turns.add('a', request('later'));
  await turn();
  t.is(handled.at(-1), 'later');
});
