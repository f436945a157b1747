import { test } from '../support/test.js';
import type { Change, Commit } from '../../src/domain/change.js';
import { aBody, aKey, type Place } from '../support/objects.js';
import { StoreHistory } from './store-history.js';

function aPut(revision: number, place: Place, { created = false, content = revision, before = -1 } = {}): Change {
  const key = aKey(place);
  const object = (spec: number, at: number) => ({ key, revision: at, resourceVersion: `${at}`, body: aBody(key, { spec }) });
  const previous = before < 0 ? undefined : object(before, revision - 1);
  return { kind: 'put', key, revision, object: object(content, revision), created, previous: () => previous };
}

function aDelete(revision: number, place: Place): Change {
  return { kind: 'delete', key: aKey(place), revision, resourceVersion: `${revision}`, previous: () => undefined };
}

function problemsOf(...changes: readonly Change[]): readonly string[] {
  const problems: string[] = [];
  const history = new StoreHistory((problem) => problems.push(problem), 0);
  for (const change of changes) {
    const commit: Commit = { revision: change.revision, changes: [change], movedPaths: [], swept: new Set() };
    history.see(commit);
  }
  return problems;
}

test('a history has no fault if revisions rise and each object is created and deleted at most once in turn', (t) => {
  t.deepEqual(problemsOf(aPut(1, {}, { created: true }), aPut(2, {}, { before: 1 }), aDelete(3, {}), aPut(4, {}, { created: true })), []);
});

test('each kind of impossible history is found', (t) => {
  t.regex(problemsOf(aPut(2, {}), aPut(1, {})).join(), /came after 2/);
  t.regex(problemsOf(aDelete(1, {}), aDelete(2, {})).join(), /deleted twice/);
  t.regex(problemsOf(aPut(1, {}, { created: true }), aPut(2, {}, { created: true })).join(), /created twice/);
  t.regex(problemsOf(aPut(1, {}, { content: 5, before: 5 })).join(), /changed to what it was/);
});

test('a namesake that the store writes again after a delete does not count as a change', (t) => {
  t.deepEqual(problemsOf(aDelete(1, { shard: 'birch' }), aPut(2, {}, { content: 5, before: 5 })), []);
});
