import { test } from '../../support/test.js';
import { LastReports } from '../../../src/lookup/last-reports.js';
import { ManualClock } from '../../support/store/manual-clock.js';

test('of a thousand questions each has its last report; of more, the one is forgotten that nobody has asked for longest', async (t) => {
  const asked: string[] = [];
  const reports = new LastReports({
    clock: new ManualClock(),
    ask: async (question) => {
      asked.push(question);
      return { whole: true, newestChange: undefined, shards: [], shardsLeftOut: 0 };
    },
  });
  const ask = (i: number) => reports.to(`question ${i}`).within(1_000);

  for (let i = 0; i < 1_000; i++) await ask(i);
  await ask(0);
  t.is(asked.length, 1_000);

  await ask(1_000);
  await ask(0);
  t.is(asked.length, 1_001);
  await ask(1);
  t.deepEqual(asked.slice(1_000), ['question 1000', 'question 1']);
});
