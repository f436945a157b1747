/**
 * Callers take turns. A turn of the event loop runs their tasks for five milliseconds, and at least
 * one task.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { Turns } from '../../../src/http/turns.js';
import { test } from '../../support/test.js';

/** Returns the tasks that ran in each turn of the event loop, by a clock that the tasks advance. */
function aTurns(): {
  add: (caller: string, name: string, costMs?: number) => void;
  run: string[];
  inNextTurn: () => Promise<readonly string[]>;
} {
  let nowMs = 0;
  const run: string[] = [];
  const turns = new Turns(() => nowMs);
  return {
    run,
    add: (caller, name, costMs = 1) =>
      turns.add(caller, () => {
        // Runs after a few microtasks, because the work of a task may await within its turn.
        void Promise.resolve().then(async () => {
          await undefined;
          run.push(name);
          nowMs += costMs;
        });
      }),
    inNextTurn: async () => {
      const before = run.length;
      await turn();
      return run.slice(before);
    },
  };
}

test('a caller with one request waits for one request of each other caller, not for all of theirs', async (t) => {
  const { add, inNextTurn } = aTurns();
  for (let i = 0; i < 1_000; i++) add('a', `a${i}`);
  add('b', 'b0');

  t.deepEqual(await inNextTurn(), ['a0', 'b0', 'a1', 'a2', 'a3']);
  t.deepEqual(await inNextTurn(), ['a4', 'a5', 'a6', 'a7', 'a8']);
});

test('every task runs in the end, in its caller’s order, and none in the tick that adds it', async (t) => {
  const { add, run, inNextTurn } = aTurns();
  for (let i = 0; i < 100; i++) add('a', `a${i}`, 0);
  for (let i = 0; i < 50; i++) add('b', `b${i}`, 0);
  t.deepEqual(run, []);

  await inNextTurn();

  for (const [caller, count] of [
    ['a', 100],
    ['b', 50],
  ] as const)
    t.deepEqual(
      run.filter((name) => name.startsWith(caller)),
      Array.from({ length: count }, (_, i) => `${caller}${i}`),
    );
  add('a', 'later');
  t.deepEqual(await inNextTurn(), ['later']);
});

test('an expensive task ends its turn, and the callers that were not reached are first in the next', async (t) => {
  const { add, inNextTurn } = aTurns();
  add('a', 'a0', 40);
  add('b', 'b0', 4);
  add('c', 'c0', 40);
  add('a', 'a1');
  add('d', 'd0');

  t.deepEqual(await inNextTurn(), ['a0']);
  t.deepEqual(await inNextTurn(), ['b0', 'c0']);
  t.deepEqual(await inNextTurn(), ['d0', 'a1']);
});
