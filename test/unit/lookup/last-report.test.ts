import { test } from '../../support/test.js';
import { ageOf, LastReport } from '../../../src/lookup/last-report.js';
import type { FreshnessReport } from '../../../src/lookup/freshness-report.js';
import { deferred, type Deferred } from '../../../src/domain/deferred.js';
import { ManualClock } from '../../support/store/manual-clock.js';

const report: FreshnessReport = { whole: true, newestChange: undefined, shards: [], shardsLeftOut: 0 };

test('a report is used while it is young enough, counted from when it was asked for', async (t) => {
  const clock = new ManualClock();
  let asked = 0;
  const last = new LastReport({
    clock,
    ask: async () => {
      asked += 1;
      clock.advance(400);
      return report;
    },
  });

  const reported = await last.within(1_000);
  t.is(ageOf(reported, clock), 400);
  clock.advance(599);
  await last.within(1_000);
  t.is(asked, 1);

  clock.advance(1);
  await last.within(1_000);
  t.is(asked, 2);
});

test('callers that come while a report is asked for wait for the same answer; one that gives up does not disturb the others', async (t) => {
  const answer = deferred<FreshnessReport>();
  let asked = 0;
  const last = new LastReport({ clock: new ManualClock(), ask: () => ((asked += 1), answer.promise) });
  const givingUp = new AbortController();

  const patient = last.within(1_000);
  const impatient = last.within(1_000, givingUp.signal);
  givingUp.abort(new Error('enough'));
  await t.throwsAsync(impatient, { message: 'enough' });
  answer.resolve(report);

  t.is((await patient).report, report);
  t.is(asked, 1);
});

test('a failure goes to all who wait and is not remembered; a clock that was set back makes nothing fresh', async (t) => {
  const clock = new ManualClock();
  const answers: (() => Promise<FreshnessReport>)[] = [
    () => Promise.reject(new Error('down')),
    () => Promise.resolve(report),
    () => Promise.resolve({ ...report, whole: false }),
  ];
  const last = new LastReport({
    clock: { now: () => clock.now(), wallMs: () => clock.wallMs(), after: () => () => {} },
    ask: () => answers.shift()!(),
  });

  const [one, two] = await Promise.allSettled([last.within(1_000), last.within(1_000)]);
  t.deepEqual([one?.status, two?.status], ['rejected', 'rejected']);
  t.true((await last.within(1_000)).report.whole);

  clock.advance(-5_000);
  t.false((await last.within(1_000)).report.whole);
});

test('who comes while one is asked for that is too old already gets the next one, and shares it with others', async (t) => {
  const clock = new ManualClock();
  const answers: Deferred<FreshnessReport>[] = [];
  const last = new LastReport({
    clock,
    ask: () => {
      const answer = deferred<FreshnessReport>();
      answers.push(answer);
      return answer.promise;
    },
  });
  const first = last.within(0);
  const [second, third, patient] = [last.within(0), last.within(0), last.within(1_000)];
  t.is(answers.length, 1);

  clock.advance(7);
  answers[0]!.resolve(report);
  t.is((await first).askedMs, (await patient).askedMs);
  await Promise.resolve();
  t.is(answers.length, 2);
  answers[1]!.resolve(report);

  t.is((await second).askedMs - (await first).askedMs, 7);
  t.is(await third, await second);
  t.is(answers.length, 2);
  const [failing, behind] = [last.within(0), last.within(0)];
  answers[2]!.reject(new Error('no'));
  await t.throwsAsync(failing, { message: 'no' });
  answers[3]!.resolve(report);
  t.is((await behind).report, report);
});
