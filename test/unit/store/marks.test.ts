import { test } from '../../support/test.js';
import { Marks } from '../../../src/store/marks.js';

test('an object is swept if it has no mark and is older than the begin, as the table says', (t) => {
  const cases: [title: string, mark: (marks: Marks) => void, revision: number, isUnmarked: boolean][] = [
    ['no push named it', () => {}, 17, true],
    ['written at the very start', () => {}, 20, true],
    ['written since', () => {}, 21, false],
    ['confirmed', (marks) => marks.confirm(17), 17, false],
    ['another one confirmed', (marks) => marks.confirm(12), 17, true],
    ['rewritten', (marks) => marks.rewrite(17, 24), 24, true],
    ['rewritten twice', (marks) => (marks.rewrite(17, 24), marks.rewrite(24, 31)), 31, true],
    ['rewritten, then confirmed', (marks) => (marks.rewrite(17, 24), marks.confirm(24)), 24, false],
    ['confirmed, then rewritten', (marks) => (marks.confirm(17), marks.rewrite(17, 24)), 24, false],
    [
      'rewritten without a push, then confirmed, then rewritten without a push',
      (marks) => (marks.rewrite(17, 24), marks.confirm(24), marks.rewrite(24, 31)),
      31,
      false,
    ],
    ['rewritten by a commit that failed', (marks) => (marks.rewrite(17, 24), marks.undo(23)), 24, false],
    ['the same object after that', (marks) => (marks.rewrite(17, 24), marks.undo(23)), 17, true],
    [
      'confirmed by a commit that failed, and its revision is then another rewritten one',
      (marks) => (marks.rewrite(17, 24), marks.confirm(24), marks.undo(23), marks.rewrite(16, 24)),
      24,
      true,
    ],
    ['written since, then rewritten', (marks) => marks.rewrite(23, 24), 24, false],
  ];

  for (const [title, mark, revision, isUnmarked] of cases) {
    const marks = new Marks(20);
    mark(marks);
    t.is(marks.isUnmarked(revision), isUnmarked, title);
  }
});
