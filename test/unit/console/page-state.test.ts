import { test } from '../../support/test.js';
import { formatBytes, formatDuration } from '../../../src/console/page/format.js';
import { formatRoute, parseRoute, type ObjectsRoute } from '../../../src/console/page/route.js';
import { after, begin, typesListed, type State } from '../../../src/console/page/state.js';

const objects: ObjectsRoute = {
  kind: 'objects',
  type: 'apiexports.apis.kcp.io',
  shard: 'amber',
  cluster: 'root:org',
  name: '',
  open: undefined,
};
const page = { type: objects.type, columns: [], rows: [], continueWith: 'next' };

test('parsing the address of a route gives the same route', (t) => {
  const open = { shard: 'amber', cluster: '1xq9', namespace: '', name: 'edge.example.io' };
  for (const route of [objects, { ...objects, name: 'x', open }, { ...objects, shard: '*', cluster: '*' }, { kind: 'overview' } as const])
    t.deepEqual(parseRoute(formatRoute(route)), route);
});

test('an empty or senseless address leads to the overview, or to no open object', (t) => {
  t.deepEqual(parseRoute(''), { kind: 'overview' });
  t.deepEqual(parseRoute('#/nowhere?x=1'), { kind: 'overview' });
  t.like(parseRoute('#/objects?open=a/b'), { kind: 'objects', type: '', shard: '*', cluster: '*', open: undefined });
});

test('opening an object keeps the list, and another filter begins a new list', (t) => {
  const listed = happened(begin(objects), { kind: 'listing' }, { kind: 'page', page, isLast: true });
  const opened = after(listed, { kind: 'went', route: { ...objects, open: { shard: 'amber', cluster: 'c', namespace: '', name: 'one' } } });

  t.deepEqual(opened.list.pages, [page]);
  t.deepEqual(after(opened, { kind: 'went', route: { ...objects, name: 'other' } }).list.pages, []);
});

test('pages are appended, and a failed page keeps the earlier ones', (t) => {
  const state = happened(begin(objects), { kind: 'page', page, isLast: true }, { kind: 'listing' }, { kind: 'unlisted', why: 'no answer' });

  t.deepEqual(state.list, { pages: [page], isAsking: false, failure: 'no answer' });
  t.is(after(state, { kind: 'page', page, isLast: true }).list.pages.length, 2);
});

test('a name without a type is looked up in every type that has objects, one page after the other', (t) => {
  const type = (resource: string, count: number) => ({ resource, group: 'g', identity: '', objects: count });
  const overview = { types: [type('a', 2), type('none', 0), type('b', 1)] } as unknown as NonNullable<State['overview']>;
  const state = after(begin(objects), { kind: 'overview', overview });
  const listed = (route: Partial<ObjectsRoute>) => typesListed(state, { ...objects, ...route }).map(({ resource }) => resource);

  t.deepEqual(listed({ type: '', name: 'one' }), ['a', 'b']);
  t.deepEqual(listed({ type: 'b.g', name: 'one' }), ['b']);
  t.deepEqual(listed({ type: '' }), []);
  t.deepEqual(listed({ type: 'unknown.g', name: 'one' }), []);
  t.true(happened(state, { kind: 'listing' }, { kind: 'page', page, isLast: false }).list.isAsking);
});

test('the last overview of a cache stays while the cache does not answer', (t) => {
  const overview = { cache: { id: 'c-1' } } as unknown as NonNullable<State['overview']>;
  const state = happened(
    begin({ kind: 'overview' }),
    { kind: 'overview', overview },
    { kind: 'unanswered', why: 'the cache does not answer' },
  );

  t.is(state.overview, overview);
  t.is(state.failure, 'the cache does not answer');
  t.is(after(state, { kind: 'overview', overview }).failure, undefined);
});

test('durations and amounts of bytes are printed short', (t) => {
  t.deepEqual([0, 999, 1_000, 61_000, 3_600_000, 90_061_000].map(formatDuration), ['0ms', '999ms', '1s', '1m 1s', '1h', '1d 1h']);
  t.deepEqual([0, 1_023, 1_536, 200 * 1_024, 3 * 1_024 ** 3].map(formatBytes), ['0 B', '1023 B', '1.5 KiB', '200 KiB', '3.0 GiB']);
});

function happened(state: State, ...events: Parameters<typeof after>[1][]): State {
  return events.reduce(after, state);
}
