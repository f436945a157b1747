/** A body or an answer is read only as fast as memory in the budget becomes free. */
import { test } from '../../support/test.js';
import { setImmediate as turn } from 'node:timers/promises';
import { Budget } from '../../../src/domain/base/budget.js';
import { withMemory } from '../../../src/domain/base/memory-reservation.js';
import { ExchangeMemory } from '../../../src/http/exchange-memory.js';

function pieces(lengths: readonly number[]): { source: AsyncGenerator<Uint8Array>; state: { read: number; closed: boolean } } {
  const state = { read: 0, closed: false };
  async function* all(): AsyncGenerator<Uint8Array> {
    try {
      for (const length of lengths) {
        state.read += 1;
        yield new Uint8Array(length);
      }
    } finally {
      state.closed = true;
    }
  }
  return { source: all(), state };
}

test('a piece is read once there is room for a piece, and then holds room for its own size', async (t) => {
  const budget = new Budget(100);
  const memory = new ExchangeMemory(budget, turn);
  const { source, state } = pieces([30, 30, 30]);
  const reading = withMemory(source, memory, 60);

  t.is((await reading.next()).value?.length, 30);
  t.is(budget.used, 30);
  t.is((await reading.next()).value?.length, 30);
  t.is(budget.used, 60);
  const third = reading.next();
  for (let i = 0; i < 5; i++) await turn();
  t.is(state.read, 2);
  memory.release(30);
  t.is((await third).value?.length, 30);
  memory.release(30);
  t.true((await reading.next()).done);
  t.is(budget.used, 30);
});

test('when the client has gone, reading ends and gives back all its room', async (t) => {
  const budget = new Budget(100);
  const memory = new ExchangeMemory(budget, turn);
  const { source, state } = pieces([80, 80]);
  const reading = withMemory(source, memory, 80);
  await reading.next();

  const next = reading.next();
  memory.close();

  t.true((await next).done);
  t.true(state.closed);
  t.is(budget.used, 0);
  t.false(memory.tryReserve(1));
  t.false(await memory.reserve(1));
  memory.add(5);
  t.is(budget.used, 0);
});

test('an answer holds room for its own size, however much room making it took', async (t) => {
  const budget = new Budget(100);
  const memory = new ExchangeMemory(budget, turn);

  await memory.reserve(60);
  memory.reserveExactly(10);
  t.is(budget.used, 10);
  memory.reserveExactly(70);
  t.is(budget.used, 70);
  memory.release(1_000);
  t.is(budget.used, 0);
});

test('of many readers that wait for room, none reads once its connection has closed', async (t) => {
  const budget = new Budget(100);
  const readers = Array.from({ length: 50 }, () => {
    const memory = new ExchangeMemory(budget, turn);
    const { source, state } = pieces([30]);
    return { memory, state, next: withMemory(source, memory, 100).next() };
  });
  await turn();

  for (const { memory } of readers) memory.close();
  await Promise.all(readers.map(({ next }) => next));

  const [first, ...others] = readers.map(({ state }) => state.read);
  t.is(first, 1, 'it had room at once');
  t.deepEqual(new Set(others), new Set([0]));
  t.is(budget.used, 0);
});
