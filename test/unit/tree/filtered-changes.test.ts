import { test } from '../../support/test.js';
import { parseCanonicalPath, type CanonicalPath } from '../../../src/domain/cluster.js';
import type { CanonicalPaths } from '../../../src/domain/store-port.js';
import { filterChanges, filterObjects, pathMovesIn } from '../../../src/tree/filters/filtered-changes.js';
import { LinkFilter } from '../../../src/tree/filters/link-filter.js';
import { aPolicy, anObject, type WrittenRule } from '../../support/link-rules.js';
import { aSlice } from '../../support/pushes.js';
import { FakeHistory, type Written } from './some-changes.js';

const everything = aPolicy({ types: ['*'] });
const gold: WrittenRule = { labels: 'tier=gold' };
const inTenant: WrittenRule = { pathPrefix: 'root:tenant' };

function aFilter(...rules: readonly WrittenRule[]): LinkFilter {
  return new LinkFilter(aPolicy(...rules), everything);
}

function path(text: string): CanonicalPath {
  const parsed = parseCanonicalPath(text);
  if (parsed === undefined) throw new Error(`${text} is no canonical path`);
  return parsed;
}

/** The paths of logical clusters; records how many clusters each lookup asks for. */
function somePaths(known: Readonly<Record<string, string>> = {}): CanonicalPaths & { asked: number[] } {
  const asked: number[] = [];
  return {
    asked,
    clustersAt: async () => [],
    ownersOf: async () => [],
    pathsOf: async (places) => {
      asked.push(places.length);
      return places.map(({ cluster }) => (known[cluster] === undefined ? undefined : path(known[cluster])));
    },
  };
}

/** What the link sends to the other end for the last of these commits. */
async function received(
  filter: LinkFilter,
  paths: CanonicalPaths,
  ...commits: readonly (readonly Written[])[]
): Promise<readonly string[]> {
  const history = new FakeHistory();
  let before = 0;
  for (const commit of commits) {
    before = history.published;
    history.commit(...commit);
  }
  const changes = history.all.slice(before);
  const crossings = await filterChanges(changes, { filter, paths, moves: pathMovesIn(changes) });
  return crossings.map(({ change, after }) => `${after === undefined ? 'delete' : 'put'} ${change.key.name}`);
}

const one = { name: 'one' };
const asGold = { labels: { tier: 'gold' } };
const asTin = { labels: { tier: 'tin' } };

test('an object arrives and leaves with its content, whatever happens to it at its origin', async (t) => {
  const table: readonly (readonly [string, Written[][], string[]])[] = [
    ['created in view', [[{ place: one, content: asGold }]], ['put one']],
    ['created out of view', [[{ place: one, content: asTin }]], []],
    ['comes into view', [[{ place: one, content: asTin }], [{ place: one, content: asGold }]], ['put one']],
    ['leaves the view', [[{ place: one, content: asGold }], [{ place: one, content: asTin }]], ['delete one']],
    ['changes in view', [[{ place: one, content: asGold }], [{ place: one, content: { ...asGold, rest: { spec: 1 } } }]], ['put one']],
    ['changes out of view', [[{ place: one, content: asTin }], [{ place: one, content: { ...asTin, rest: { spec: 1 } } }]], []],
    ['deleted in view', [[{ place: one, content: asGold }], [{ place: one }]], ['delete one']],
    ['deleted out of view', [[{ place: one, content: asTin }], [{ place: one }]], []],
  ];
  for (const [what, commits, expected] of table) t.deepEqual(await received(aFilter(gold), somePaths(), ...commits), expected, what);
});

test('if a whole slice is let through, every change passes without reading the previous content', async (t) => {
  const history = new FakeHistory();
  history.commit({ place: one, content: asTin }, { place: { name: 'two' }, content: asTin });
  history.commit({ place: one });
  const unlooked = history.all.map((change) => ({ ...change, previous: () => t.fail('nobody needs it') as undefined }));

  const crossings = await filterChanges(unlooked, { filter: new LinkFilter(everything, everything), paths: somePaths() });

  t.deepEqual(
    crossings.map(({ after }) => after?.key.name),
    ['one', 'two', undefined],
  );
});

test('a delete passes if the previous content is compacted, because the object may have been let through', async (t) => {
  const history = new FakeHistory();
  history.commit({ place: one, content: asGold });
  history.commit({ place: one });
  const [, deleted] = history.all;
  const forgotten = deleted === undefined ? [] : [{ ...deleted, previous: () => undefined }];

  const crossings = await filterChanges(forgotten, { filter: aFilter(gold), paths: somePaths() });

  t.is(crossings.length, 1);
});

test('paths are looked up once for each logical cluster, and only if a rule names a path', async (t) => {
  const paths = somePaths({ acme: 'root:tenant:a', beta: 'root:other' });
  const objects = ['acme', 'beta', 'acme'].map((cluster, i) => anObject({ cluster, name: `o-${i}` }));

  const crossing = await filterObjects(objects, { slice: aSlice(), filter: aFilter(inTenant), paths });
  await filterObjects(objects, { slice: aSlice(), filter: aFilter(gold), paths });

  t.deepEqual(
    crossing.map(({ key }) => key.name),
    ['o-0', 'o-2'],
  );
  t.deepEqual(paths.asked, [2]);
});

test('the last object of a logical cluster, which takes the path with it, is deleted like any other', async (t) => {
  const moved = { before: path('root:tenant:a'), after: undefined };

  const last = await received(aFilter(inTenant), somePaths(), [{ place: one, content: asGold }], [{ place: one, movedPath: moved }]);
  const lastTwo = await received(
    aFilter(inTenant),
    somePaths(),
    [
      { place: one, content: asGold },
      { place: { name: 'two' }, content: asGold },
    ],
    [{ place: one }, { place: { name: 'two' }, movedPath: moved }],
  );

  t.deepEqual(last, ['delete one']);
  t.deepEqual(lastTwo, ['delete one', 'delete two']);
});

test('a change that precedes the move of its path is checked against the old path', async (t) => {
  const moved = { before: path('root:tenant:a'), after: path('root:other') };
  const both = aFilter({ ...inTenant, ...gold });

  const flipped = await received(
    both,
    somePaths({ acme: 'root:other' }),
    [{ place: one, content: asGold }],
    [
      { place: one, content: asTin },
      { place: { name: 'two' }, content: asTin, movedPath: moved },
    ],
  );

  t.deepEqual(flipped, ['delete one']);
});

test('an object that leaves with its cluster’s path at one revision is sent as gone, in whichever order the transaction has them', async (t) => {
  const moved = { before: path('root:tenant:a'), after: undefined };
  const stood = ['acme', 'beta'].flatMap((cluster) => [
    { place: { cluster, name: 'a' }, content: {} },
    { place: { cluster, name: 'z' }, content: {} },
  ]);
  const gone = ['acme', 'beta'].flatMap((cluster) => [
    { place: { cluster, name: 'a' } },
    { place: { cluster, name: 'moves' }, movedPath: moved },
    { place: { cluster, name: 'z' } },
  ]);

  for (const order of [gone, gone.toReversed(), [...gone.slice(3), ...gone.slice(0, 3)]]) {
    const history = new FakeHistory();
    history.commit(...stood, ...['acme', 'beta'].map((cluster) => ({ place: { cluster, name: 'moves' }, content: {} })));
    const { published } = history;
    history.commitAtOnce(...order);
    const changes = history.all.filter(({ revision }) => revision > published);

    const crossings = await filterChanges(changes, { filter: aFilter(inTenant), paths: somePaths(), moves: pathMovesIn(changes) });

    t.is(crossings.length, 6);
    t.true(crossings.every(({ after }) => after === undefined));
  }
});

test('if a path moves twice at one revision, the first and the last path count', (t) => {
  const [a, b, c] = [path('root:a'), path('root:b'), path('root:c')];
  const history = new FakeHistory();
  history.commit({ place: { name: 'x' }, content: {}, movedPath: { before: undefined, after: a } });
  history.commitAtOnce(
    { place: { name: 'x' }, content: {}, movedPath: { before: a, after: b } },
    { place: { name: 'y' }, content: {}, movedPath: { before: b, after: c } },
    { place: { name: 'x', cluster: 'beta' }, content: {}, movedPath: { before: undefined, after: a } },
  );

  const moves = [...pathMovesIn(history.all).byPlace.values()].map(({ key, before, after }) => [key.cluster, before, after]);

  t.deepEqual(moves.map((move) => move.join(' ')).toSorted(), ['acme root:a root:c', 'beta  root:a']);
});
