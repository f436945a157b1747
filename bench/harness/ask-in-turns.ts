/**
 * Asks questions. First come those that are asked in rounds, one round of each in turn, then the
 * others. The speed of a machine drifts within minutes, by more than builds differ. Separate rounds
 * cover that drift, so their median is closer to that of another run.
 *
 *   get 1 ─ update 1 ─ list 1 │ get 2 ─ update 2 ─ list 2 │ … │ push ─ memory
 */
import { readProcessorMs } from './process-usage.js';
import { check, type Answer, type Bench, type Question, type Span } from './question.js';
import type { Asked } from './report.js';

type UnderWay = { question: Question; turns: AsyncGenerator<void, Answer, void>; spans: Span[]; serverProcessorMs: number };

/**
 * Returns the answers in the order of `questions`. Calls `afterTurn` when the server has finished
 * one round of a question.
 */
export async function askInTurns(
  questions: readonly Question[],
  surroundings: Omit<Bench, 'spans'>,
  afterTurn: () => void,
): Promise<readonly Asked[]> {
  const { progress, server } = surroundings;
  const spans = new Map(questions.map(({ name }): [string, Span[]] => [name, []]));
  const bench: Bench = { ...surroundings, spans };
  const answers = new Map<Question, Asked>();

  const countedTurn = async (one: UnderWay): Promise<IteratorResult<void, Answer>> => {
    const processorMs = await readProcessorMs(server.pid);
    const turn = await one.turns.next();
    one.serverProcessorMs += (await readProcessorMs(server.pid)) - processorMs;
    return turn;
  };
  const takeTurn = async (one: UnderWay): Promise<boolean> => {
    const { question } = one;
    const { name, family, asks } = question;
    progress.show(name);
    if (one.spans.length === 0) progress.say(`${name}: ${asks}`);
    const fromMs = performance.now();
    const turn = await countedTurn(one).catch(failed);
    one.spans.push({ fromMs, toMs: performance.now() });
    afterTurn();
    if (!turn.done) {
      progress.advance();
      return true;
    }
    const elapsedMs = one.spans.reduce((sum, span) => sum + span.toMs - span.fromMs, 0);
    answers.set(question, { name, family, asks, elapsedMs, serverProcessorMs: one.serverProcessorMs, ...turn.value });
    return false;
  };

  const begin = (question: Question): UnderWay => ({
    question,
    turns: turnsOf(question, bench),
    spans: spans.get(question.name)!,
    serverProcessorMs: 0,
  });
  let underWay = questions.filter(({ rounds }) => rounds !== undefined).map(begin);
  while (underWay.length > 0) {
    const goOn: UnderWay[] = [];
    for (const one of underWay) if (await takeTurn(one)) goOn.push(one);
    underWay = goOn;
  }
  for (const question of questions.filter(({ rounds }) => rounds === undefined)) {
    await takeTurn(begin(question));
    progress.advance();
  }
  return questions.map((question) => answers.get(question)!);
}

async function* turnsOf({ ask }: Question, bench: Bench): AsyncGenerator<void, Answer, void> {
  const asking = ask(bench);
  return Symbol.asyncIterator in asking ? yield* asking : await asking;
}

/** A question that fails does not stop the others. */
function failed(error: unknown): IteratorReturnResult<Answer> {
  console.error(error);
  const law = check('the question is answered', false, error instanceof Error ? error.message : String(error));
  return { done: true, value: { figures: [], checks: [law] } };
}
