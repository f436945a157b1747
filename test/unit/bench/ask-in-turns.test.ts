import { once as onceEvent } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { test } from '../../support/test.js';
import { askInTurns } from '../../../bench/harness/ask-in-turns.js';
import { readProcessorMs } from '../../../bench/harness/process-usage.js';
import type { Answer, Bench, Question } from '../../../bench/harness/question.js';

const nothing: Answer = { figures: [], checks: [] };

test('questions in rounds are asked in turns, and all other questions afterwards, whatever their order', async (t) => {
  const { asked, bench, said } = aRun();
  const answers = await askInTurns([once('push', asked), inRounds('get', 2, asked), inRounds('list', 3, asked)], bench, () => {});

  t.deepEqual(asked, ['get 1', 'list 1', 'get 2', 'list 2', 'list 3', 'push']);
  t.deepEqual(
    answers.map(({ name }) => name),
    ['push', 'get', 'list'],
  );
  t.deepEqual(said, ['get: ?', 'list: ?', 'push: ?']);
});

test('a question sees when each round of earlier questions ran', async (t) => {
  const { asked, bench } = aRun();
  const lengths: number[] = [];
  const looking = once('loop', asked, ({ spans }) => lengths.push(spans.get('get')!.filter(({ fromMs, toMs }) => toMs >= fromMs).length));
  await askInTurns([inRounds('get', 2, asked), looking], bench, () => {});

  // The last span is the turn that merges the rounds.
  t.deepEqual(lengths, [3]);
});

test('a question that fails in a round counts as broken, and the other questions are still asked', async (t) => {
  const { asked, bench } = aRun();
  const failing: Question = {
    ...inRounds('get', 2, asked),
    async *ask() {
      yield;
      throw new Error('it broke');
    },
  };
  const [get, list] = await askInTurns([failing, inRounds('list', 2, asked)], bench, () => {});

  t.deepEqual(get!.checks, [{ law: 'the question is answered', holds: false, detail: 'it broke' }]);
  t.deepEqual(asked, ['list 1', 'list 2']);
  t.is(list!.name, 'list');
});

test('if the server has died, its question counts as broken, and earlier answers are kept', async (t) => {
  const { asked, bench, dies } = aRun();
  const [get, list] = await askInTurns(
    [inRounds('get', 1, asked), { ...once('list', asked), ask: async () => (dies(), nothing) }],
    bench,
    () => {},
  );

  t.deepEqual(get!.checks, []);
  t.is(list!.checks[0]!.holds, false);
});

test('the processor time of a thread that has ended still counts', async (t) => {
  const before = await readProcessorMs(process.pid);
  const worker = new Worker(
    'const until = Date.now() + 300; while (Date.now() < until); require("worker_threads").parentPort.once("message", () => process.exit())',
    {
      eval: true,
    },
  );
  await onceEvent(worker, 'online');
  await sleep(500);
  const during = await readProcessorMs(process.pid);
  worker.postMessage('end');
  await onceEvent(worker, 'exit');

  t.true(during - before > 100, `${during - before} ms`);
  t.true((await readProcessorMs(process.pid)) >= during);
});

function aRun() {
  const said: string[] = [];
  const progress = { say: (text: string) => said.push(text), show: () => {}, advance: () => {} };
  // Only the parts of a bench that turns need. The server is this process, or one that does not
  // exist.
  const server = { pid: process.pid };
  return { said, asked: [] as string[], bench: { progress, server } as unknown as Bench, dies: () => void (server.pid = 2 ** 22 + 1) };
}

function inRounds(name: string, rounds: number, asked: string[]): Question {
  return {
    name,
    family: 'requests',
    asks: '?',
    rounds: () => rounds,
    async *ask() {
      for (let round = 1; round <= rounds; round++) {
        asked.push(`${name} ${round}`);
        yield;
      }
      return nothing;
    },
  };
}

function once(name: string, asked: string[], look: (bench: Bench) => void = () => {}): Question {
  return {
    name,
    family: 'process',
    asks: '?',
    async ask(bench) {
      asked.push(name);
      look(bench);
      return nothing;
    },
  };
}
