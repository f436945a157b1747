import test from 'ava';
import { Survey } from '../../src/store/sqlite/survey.js';

test('what is unstated: a table', (t) => {
  const cases: [title: string, tell: (survey: Survey) => void, revision: number, isUnstated: boolean][] = [
    ['nobody spoke of it', () => {}, 17, true],
    ['written at the very start', () => {}, 20, true],
    ['written since', () => {}, 21, false],
    ['confirmed', (survey) => survey.confirm(17), 17, false],
    ['another one confirmed', (survey) => survey.confirm(12), 17, true],
    ['stated again unasked', (survey) => survey.restate(17, 24), 24, true],
    ['stated again unasked, twice', (survey) => (survey.restate(17, 24), survey.restate(24, 31)), 31, true],
    ['stated again unasked, then confirmed', (survey) => (survey.restate(17, 24), survey.confirm(24)), 24, false],
    ['confirmed, then stated again unasked', (survey) => (survey.confirm(17), survey.restate(17, 24)), 24, false],
    [
      'stated again unasked, then confirmed, then stated again',
      (survey) => (survey.restate(17, 24), survey.confirm(24), survey.restate(24, 31)),
      31,
      false,
    ],
    ['stated again unasked by a commit that failed', (survey) => (survey.restate(17, 24), survey.undo(23)), 24, false],
    ['the same object behind that', (survey) => (survey.restate(17, 24), survey.undo(23)), 17, true],
    [
      'confirmed by a commit that failed, and its revision is another one stated again unasked',
      (survey) => (survey.restate(17, 24), survey.confirm(24), survey.undo(23), survey.restate(16, 24)),
      24,
      true,
    ],
    ['written since, then stated again unasked', (survey) => survey.restate(23, 24), 24, false],
  ];

  for (const [title, tell, revision, isUnstated] of cases) {
    const survey = new Survey(20);
    tell(survey);
    t.is(survey.isUnstated(revision), isUnstated, title);
  }
});
