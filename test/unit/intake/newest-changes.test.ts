import { test } from '../../support/test.js';
import type { Change, Commit } from '../../../src/domain/change.js';
import type { Resource } from '../../../src/domain/resource.js';
import { NewestChanges } from '../../../src/intake/shards/newest-changes.js';
import { aKey } from '../../support/objects.js';

const exports: Resource = { group: 'apis.kcp.io', resource: 'apiexports', identity: '' };

function instances(identity: string): Resource {
  return { group: 'machines.svm.io', resource: 'instances', identity };
}

function setUp(published = 100) {
  const revisions = { published };
  const listeners = new Set<(commit: Commit) => void>();
  const commits = {
    subscribe: (listener: (commit: Commit) => void) => (listeners.add(listener), { cancel: () => void listeners.delete(listener) }),
  };
  const newest = new NewestChanges({ commits, revisions });
  const commit = (...resources: readonly Resource[]): void => {
    const changes = resources.map((resource): Change => {
      revisions.published += 1;
      const { published: revision } = revisions;
      return {
        kind: 'delete',
        key: aKey({ ...resource, name: 'one' }),
        revision,
        resourceVersion: String(revision),
        previous: () => undefined,
      };
    });
    for (const listener of listeners) listener({ revision: revisions.published, changes, movedPaths: [], swept: new Set() });
  };
  return { newest, commit, listeners };
}

test('a type that has not changed since the start counts as changed at the start, any other at its last change', (t) => {
  const { newest, commit } = setUp();
  t.is(newest.of(exports), 100);

  commit(exports, exports, instances('a'), exports, instances('b'), instances('b'));

  t.is(newest.of(exports), 104);
  t.is(newest.of(instances('a')), 103);
  t.is(newest.of(instances('b')), 106);
  t.is(newest.of({ ...instances('b'), identity: undefined }), 106);
  t.is(newest.of({ ...exports, identity: undefined }), 104);
  t.is(newest.of(instances('c')), 100);
  commit(instances('a'));
  t.is(newest.of({ ...instances('a'), identity: undefined }), 107);
});

test('at most 50,000 types are remembered, and beyond that all count as changed just now', (t) => {
  const { newest, commit, listeners } = setUp();
  commit(exports);
  for (let i = 0; i < 49_999; i += 1) commit(instances(`of-${i}`));
  t.is(newest.of(exports), 101);

  commit(instances('one more'));

  t.is(newest.of(exports), 50_101);
  t.is(newest.of(instances('of-7')), 50_101);
  commit(exports);
  t.is(newest.of(exports), 50_102);
  t.is(newest.of(instances('of-7')), 50_101);
  newest.close();
  t.is(listeners.size, 0);
});
