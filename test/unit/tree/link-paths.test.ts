import { test } from '../../support/test.js';
import type { CanonicalPath, ClusterName } from '../../../src/domain/cluster.js';
import type { Neighbour } from '../../../src/domain/via.js';
import { LinkFilters } from '../../../src/tree/filters/link-filters.js';
import { LinkPaths } from '../../../src/tree/links/link-paths.js';
import { anObject, aPolicy, type WrittenRule } from '../../support/link-rules.js';
import { aSlice } from '../../support/pushes.js';
import { put } from '../../support/intake/a-receiver.js';

const everything = { up: aPolicy({ types: ['*'] }), down: aPolicy({ types: ['*'] }) };
const exports = aSlice();
const isNever = (): boolean => false;
const isAlways = (): boolean => true;

/** `stored`: the paths that the store has, by logical cluster. */
function somePaths(
  rule: WrittenRule,
  { from = 'child/east', stored = new Map<string, string>() }: { from?: Neighbour; stored?: Map<string, string> } = {},
) {
  const asked: (readonly ClusterName[])[] = [];
  const paths = {
    clustersAt: async () => [],
    ownersOf: async () => [],
    pathsOf: async (places: readonly Readonly<{ cluster: ClusterName }>[]) => {
      asked.push(places.map(({ cluster }) => cluster));
      return places.map(({ cluster }) => stored.get(cluster) as CanonicalPath | undefined);
    },
  };
  const own = aPolicy({ shards: ['*'], ...rule });
  const filters = new LinkFilters({ up: own, down: own }, everything, from);
  return { paths: new LinkPaths({ store: { paths }, from, filters: () => filters }), asked, stored };
}

/** A frame with objects of these logical clusters. */
function aFrame(sequence: number, ...clusters: readonly string[]) {
  return put(
    sequence,
    clusters.map((cluster, i) => ({ cluster, namespace: '', name: `object-${i}`, sourceVersion: '1', body: undefined })),
  );
}

function saying(path: string, cluster = 'acme') {
  return anObject({ cluster }, { annotations: { 'kcp.io/path': path } });
}

for (const from of ['child/east', 'parent'] as const)
  test(`the store is asked once a frame for the paths of all logical clusters in what ${from} sends`, async (t) => {
    const { paths, asked } = somePaths({ pathPrefix: 'root:a' }, { from, stored: new Map([['acme', 'root:a:team']]) });

    await paths.read(aFrame(1, 'acme', 'beta', 'acme', 'root:no:cluster'));

    t.deepEqual(asked as readonly unknown[], [['acme', 'beta']]);
    t.true(paths.accepts(anObject({ cluster: 'acme' })));
    t.false(paths.accepts(anObject({ cluster: 'beta' })));
    t.is(asked.length, 1);
  });

test('a policy without a path for the slice asks the store for none', async (t) => {
  const { paths, asked } = somePaths({ pathPrefix: 'root:a', types: ['secrets'] });

  await paths.read(aFrame(1, 'acme'));

  t.deepEqual(asked, []);
});

test('a path that a link brought counts until the store has committed it, and not longer', async (t) => {
  const { paths, stored } = somePaths({ pathPrefix: 'root:a' });
  const isIn = async (sequence: number): Promise<boolean> => {
    await paths.read(aFrame(sequence, 'acme'));
    return paths.accepts(anObject());
  };

  await paths.read(aFrame(1, 'acme'));
  paths.accepts(saying('root:a'));
  t.true(await isIn(2), 'the path is still in the queue');
  paths.decidedUpTo(2);
  t.false(await isIn(3), 'the store has another path by now, or none');
  stored.set('acme', 'root:a');
  t.true(await isIn(4));
});

test('a path that is committed while a frame is read still counts for the rest of that frame', async (t) => {
  const { paths } = somePaths({ pathPrefix: 'root:a' });
  await paths.read(aFrame(1, 'acme'));
  paths.accepts(saying('root:a'));

  await paths.read(aFrame(2, 'acme', 'acme'));
  paths.decidedUpTo(1);

  t.true(paths.accepts(anObject()));
});

test('a slice with refused objects is resynced once their path has arrived, and after the sync under way', async (t) => {
  const { paths } = somePaths({ pathPrefix: 'root:a' });
  await paths.read(aFrame(1, 'acme', 'beta'));
  paths.accepts(anObject());
  t.deepEqual(paths.takeDue(isAlways), []);
  t.deepEqual(paths.takeDue(isNever), []);

  paths.accepts(saying('root:a', 'beta'));
  t.deepEqual(paths.takeDue(isNever), [], 'another logical cluster');
  paths.accepts(saying('root:a'));
  t.deepEqual(paths.takeDue(isAlways), []);
  t.deepEqual(paths.takeDue(isNever), [exports]);
  t.deepEqual(paths.takeDue(isNever), []);
});

test('beyond the bound of remembered slices, those remembered are resynced and the others wait for the next connection', async (t) => {
  const { paths } = somePaths({ pathPrefix: 'root:a' });
  await paths.read(aFrame(1, 'acme'));

  for (let i = 0; i < 10_001; i++) paths.accepts(anObject({ shard: 'amber', cluster: `c-${i}` }));

  paths.accepts(saying('root:a', 'c-10000'));
  t.deepEqual(paths.takeDue(isNever), []);
  paths.accepts(saying('root:a', 'c-0'));
  t.deepEqual(paths.takeDue(isNever), [exports]);
});
