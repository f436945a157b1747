import { test } from '../../support/test.js';
import { ageOf, LastReports } from '../../../src/lookup/last-reports.js';
import type { FreshnessReport } from '../../../src/lookup/freshness-report.js';
import { deferred, type Deferred } from '../../../src/domain/base/promises.js';
import { ManualClock } from '../../support/store/manual-clock.js';

const report: FreshnessReport = { whole: true, newestChange: undefined, shards: [], shardsLeftOut: 0 };

test('the last reports of a thousand questions are kept; beyond that, the question unused for longest is forgotten', async (t) => {
  const asked: string[] = [];
  const reports = new LastReports({
    clock: new ManualClock(),
    ask: async (question) => {
      asked.push(question);
      return { ...report, shardsLeftOut: question.endsWith('1') ? 3 : 0 };
    },
  });
  const ask = (i: number) => reports.get(`question ${i}`, 1_000);

  for (let i = 0; i < 1_000; i++) await ask(i);
  await ask(0);
  t.is(asked.length, 1_000);
  t.deepEqual([reports.leavesShardsOut('question 0'), reports.leavesShardsOut('question 1')], [false, true]);

  await ask(1_000);
  await ask(0);
  t.is(asked.length, 1_001);
  await ask(2);
  t.is(asked.length, 1_001);
  t.false(reports.leavesShardsOut('question 1'), 'it is forgotten');
  await ask(1);
  t.deepEqual(asked.slice(1_000), ['question 1000', 'question 1']);
});

test('a report is used while it is young enough, counted from the time of its request', async (t) => {
  const clock = new ManualClock();
  let asked = 0;
  const last = new LastReports({
    clock,
    ask: async () => {
      asked += 1;
      clock.advance(400);
      return report;
    },
  });

  const reported = await last.get('a', 1_000);
  t.is(ageOf(reported, clock), 400);
  clock.advance(599);
  await last.get('a', 1_000);
  t.is(asked, 1);

  clock.advance(1);
  await last.get('a', 1_000);
  t.is(asked, 2);
});

test('callers that ask while a report is requested share the answer; one that gives up does not disturb the others', async (t) => {
  const answer = deferred<FreshnessReport>();
  let asked = 0;
  const last = new LastReports({ clock: new ManualClock(), ask: () => ((asked += 1), answer.promise) });
  const givingUp = new AbortController();

  const patient = last.get('a', 1_000);
  const impatient = last.get('a', 1_000, givingUp.signal);
  givingUp.abort(new Error('enough'));
  await t.throwsAsync(impatient, { message: 'enough' });
  answer.resolve(report);

  t.is((await patient).report, report);
  t.is(asked, 1);
});

test('a failure goes to all waiting callers and is not remembered; a clock that is set back makes nothing fresh', async (t) => {
  const clock = new ManualClock();
  const answers: (() => Promise<FreshnessReport>)[] = [
    () => Promise.reject(new Error('down')),
    () => Promise.resolve(report),
    () => Promise.resolve({ ...report, whole: false }),
  ];
  const last = new LastReports({ clock, ask: () => answers.shift()!() });

  const [one, two] = await Promise.allSettled([last.get('a', 1_000), last.get('a', 1_000)]);
  t.deepEqual([one?.status, two?.status], ['rejected', 'rejected']);
  t.true((await last.get('a', 1_000)).report.whole);

  clock.advance(-5_000);
  t.false((await last.get('a', 1_000)).report.whole);
});

test('a caller that accepts no age gets a newly requested report; if an older request fails late, the newer one stays', async (t) => {
  const clock = new ManualClock();
  const answers: Deferred<FreshnessReport>[] = [];
  const last = new LastReports({
    clock,
    ask: () => {
      const answer = deferred<FreshnessReport>();
      answers.push(answer);
      return answer.promise;
    },
  });
  const first = last.get('a', 0);
  clock.advance(7);
  const [second, patient] = [last.get('a', 0), last.get('a', 1_000)];
  t.is(answers.length, 2);

  answers[1]!.resolve(report);
  t.is((await patient).askedMs, (await second).askedMs);
  answers[0]!.reject(new Error('no'));
  await t.throwsAsync(first, { message: 'no' });
  t.is((await last.get('a', 1_000)).askedMs, (await second).askedMs);
  t.is(answers.length, 2);
});
