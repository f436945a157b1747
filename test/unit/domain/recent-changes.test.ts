import { test } from '../../support/test.js';
import { RecentChanges } from '../../../src/domain/recent-changes.js';

test('a name has changed since a revision if its last change has a higher revision', (t) => {
  const changes = new RecentChanges(5);
  changes.record('a', 7);
  changes.record('b', 8);
  t.is(changes.latest, 8);
  changes.record('a', 9);
  t.is(changes.latest, 9);

  t.deepEqual(
    [8, 9].map((revision) => changes.hasChangedSince('a', revision)),
    [true, false],
  );
  t.deepEqual(
    [7, 8].map((revision) => changes.hasChangedSince('b', revision)),
    [true, false],
  );
  t.deepEqual(
    [4, 5].map((revision) => changes.hasChangedSince('never named', revision)),
    [true, false],
  );
});

test('beyond 10,000 names the one that changed longest ago is forgotten, and its revision counts for all unknown names', (t) => {
  const changes = new RecentChanges(0);
  for (let revision = 1; revision <= 10_000; revision += 1) changes.record(`n${revision}`, revision);
  changes.record('n1', 10_001);
  t.false(changes.hasChangedSince('never named', 0));

  changes.record('one more', 10_002);

  for (const name of ['n2', 'never named'])
    t.deepEqual(
      [1, 2].map((revision) => changes.hasChangedSince(name, revision)),
      [true, false],
    );
  t.false(changes.hasChangedSince('n1', 10_001));
});
