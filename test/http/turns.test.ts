/** Callers take turns. */
import { test } from '../support/test.js';
import { setImmediate as turn } from 'node:timers/promises';
import type { Exchange } from '../../src/http/exchange.js';
import { Turns } from '../../src/http/turns.js';

const request = (name: string, isEnded = false): Exchange => ({ name, isEnded }) as unknown as Exchange;

function aTurns(): { turns: Turns<Exchange>; handled: string[] } {
  const handled: string[] = [];
  const run = (exchange: Exchange): void => void handled.push((exchange as unknown as { name: string }).name);
  return { turns: new Turns(run, { costMax: 32 }), handled };
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

test('a turn ends once its tasks cost as much as it may, whoever waits, and what is dear comes alone', async (t) => {
  const { turns, handled } = aTurns();
  for (let i = 0; i < 100; i++) turns.add(`caller ${i}`, request(`${i}`));
  turns.add('dear', request('dear'), 1_000);
  turns.add('next', request('next'));

  await turn();
  t.is(handled.length, 32);

  while (!handled.includes('dear')) await turn();
  t.false(handled.includes('next'));
  await turn();
  t.is(handled.at(-1), 'next');
});

test('who was not reached in a turn is first in the next', async (t) => {
  const { turns, handled } = aTurns();
  for (let round = 0; round < 2; round++) for (let i = 0; i < 40; i++) turns.add(`caller ${i}`, request(`${i}`));

  await turn();
  await turn();

  t.deepEqual(handled.slice(32, 40), ['32', '33', '34', '35', '36', '37', '38', '39']);
});
