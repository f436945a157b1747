import { test } from '../../../support/test.js';
import { parseCanonicalPath } from '../../../../src/domain/cluster.js';
import { PublishedPaths, sinceOf, type PathBearer } from '../../../../src/store/etcd/published-paths.js';
import { aKey } from '../../../support/objects.js';

const place = aKey();
const [x, y] = [parseCanonicalPath('root:x'), parseCanonicalPath('root:y')];

test('the newest object that names a path decides the path, in whatever order a listing returns objects', (t) => {
  for (const order of [
    [2, 5, 9],
    [9, 2, 5],
    [5, 9, 2],
  ]) {
    const paths = new PublishedPaths(() => []);
    for (const revision of order) paths.changed(place, { before: undefined, after: revision === 9 ? x : y, revision });
    t.is(paths.pathOf(place), x, String(order));
  }
});

test('of several objects written in one transaction the same one decides the path, in whatever order they arrive', (t) => {
  for (const order of [
    [x, y],
    [y, x],
  ]) {
    const paths = new PublishedPaths(() => []);
    for (const path of order) paths.changed(place, { before: undefined, after: path, revision: 7 });
    t.is(paths.pathOf(place), x);
  }
});

test('when the newest object goes, the newest of the others decides the path', (t) => {
  const left: PathBearer[] = [
    { path: y, revision: 3 },
    { path: x, revision: 2 },
  ];
  const paths = new PublishedPaths(() => left);
  for (const [revision, after] of [
    [2, x],
    [3, y],
    [4, x],
  ] as const)
    paths.changed(place, { before: undefined, after, revision });
  t.deepEqual(paths.changed(place, { before: x, after: undefined, revision: 5 }), { before: x, after: y });
  t.deepEqual(paths.clustersAt(y!), [place.cluster]);
  t.deepEqual(paths.changed(place, { before: y, after: x, revision: 6 }), { before: y, after: x });
});

test('an object that the store rewrote counts from its last write by a writer, in whatever order a listing returns it', (t) => {
  const again: PathBearer = { path: x, revision: 8, writtenAt: 2 };
  for (const isFirst of [true, false]) {
    const paths = new PublishedPaths(() => [again, { path: y, revision: 4 }]);
    const listed: readonly PathBearer[] = [
      { path: y, revision: 4 },
      { path: y, revision: 6 },
    ];
    for (const each of isFirst ? [again, ...listed] : [...listed, again])
      paths.changed(place, { before: undefined, after: each.path, revision: sinceOf(each) });

    t.is(paths.pathOf(place), y);
    t.true(paths.isContested(place));
    paths.changed(place, { before: y, after: undefined, revision: 9 });
    t.is(paths.pathOf(place), y);
  }
});
