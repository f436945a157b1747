import test from 'ava';
import type { ShardState } from '../../src/domain/claim.js';
import type { SliceState } from '../../src/domain/push.js';
import { flows, type LinkSide } from '../../src/domain/side.js';
import { formatSlice, type Slice } from '../../src/domain/slice.js';
import type { HeldSlice } from '../../src/frames/frame.js';
import { KnownShards } from '../../src/intake/known-shards.js';
import { Courses } from '../../src/tier/courses.js';
import { Edge } from '../../src/tier/edge.js';
import type { SliceCourse } from '../../src/tier/slice-course.js';
import { aShardState, FakePushes } from '../intake/fake-pushes.js';
import { ManualClock } from '../store/manual-clock.js';
import { aPolicy, type WrittenRule } from '../support/edge-policies.js';
import { shardName } from '../support/objects.js';
import { aSlice } from '../support/pushes.js';
import { aClaimFrame } from './a-claim-frame.js';

const amber = shardName('amber');
const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });
const declarations = aSlice({ group: 'cache.kcp.io', resource: 'clustercachedresources' });
const everything: WrittenRule = { types: ['*'] };
const noSchemas: WrittenRule = { types: ['apiexports.apis.kcp.io'] };

function anEdge(...rules: readonly WrittenRule[]): Edge {
  return new Edge(aPolicy(...rules), aPolicy(everything));
}

function heldAt(edge: Edge, slice: Slice, stated = 5): HeldSlice {
  return { slice, edge: edge.hashOf(slice), stated };
}

type RigOptions = Readonly<{
  shard?: ShardState;
  slices?: readonly Slice[];
  held?: readonly HeldSlice[];
  edge?: Edge;
  to?: LinkSide;
  canResume?: boolean;
}>;

/** Courses, and the store they follow. */
async function someCourses({ shard, slices = [], held = [], edge = anEdge(everything), to = 'parent', canResume = true }: RigOptions = {}) {
  const clock = new ManualClock();
  const pushes = new FakePushes();
  pushes.shardStates.push(shard ?? aShardState(amber, 5));
  for (const slice of slices) pushes.hold(slice, { stated: 5 });
  const known = await KnownShards.open(pushes);
  const rung = { times: 0 };
  const store = { published: 0 };
  const rang = (): void => void (rung.times += 1);
  const courses = new Courses(
    { known, isSynced: (slice) => known.isSynced(slice), published: () => store.published, clock, random: () => 0, rang },
    { to, edge, held, canResume },
  );
  /** The other end has it from here, if it can. */
  const hear = (state: ShardState): number => courses.learnChoice(aClaimFrame({ ...state, isYours: flows(state.side, to) }));
  hear(shard ?? aShardState(amber, 5));
  await courses.open(async () => {});
  const tell = (shards: readonly ShardState[], states: readonly Partial<SliceState>[] = []): void => {
    const full = states.map((state) => {
      pushes.hold(state.slice ?? exports, state);
      return pushes.sliceStates.find(({ slice }) => formatSlice(slice) === formatSlice(state.slice ?? exports));
    });
    const told = full.filter((state) => state !== undefined);
    for (const listener of pushes.listeners) listener({ shards, slices: told });
    for (const state of shards) courses.followShard(state.shard);
    for (const state of shards) hear(state);
    for (const { slice } of told) courses.followSlice(slice);
  };
  const phases = (): Readonly<Record<string, string>> =>
    Object.fromEntries([...courses.all].map(({ slice, phase }) => [slice.resource.resource, phase]));
  return { courses, clock, tell, phases, rung, edge, store };
}

/** Until nothing waits; each is stated at once, and told to be ended when it is due. */
function stateAll(courses: Courses): readonly string[] {
  const stated: string[] = [];
  for (let course = courses.takeWaiting(0); course !== undefined; course = courses.takeWaiting(0)) {
    stated.push(course.slice.resource.resource);
    course.step('begun');
    course.step('walked');
    courses.mayBeDue(course);
  }
  return stated;
}

function endAll(courses: Courses): readonly string[] {
  const ended: string[] = [];
  for (let due = courses.takeDue(0); due !== undefined; due = courses.takeDue(0)) {
    ended.push(`${due.course.slice.resource.resource} for ${due.incarnation}`);
    due.course.step('ended');
    due.course.endedFor = due.incarnation;
  }
  return ended;
}

function only(courses: Courses): SliceCourse {
  const [course] = courses.all;
  if (course === undefined) throw new Error('there is no course');
  return course;
}

test('a slice is told wherever its shard’s side lets it flow, if the edge covers it or the other end holds it', async (t) => {
  const narrow = anEdge(noSchemas);
  const table: readonly (readonly [string, RigOptions, Readonly<Record<string, string>>])[] = [
    ['local, up', { slices: [exports] }, { apiexports: 'new' }],
    ['of a child, up', { slices: [exports], shard: aShardState(amber, 5, { side: 'child/c' }) }, { apiexports: 'new' }],
    ['of the parent, up', { slices: [exports], shard: aShardState(amber, 5, { side: 'parent' }) }, {}],
    ['of the parent, down', { slices: [exports], shard: aShardState(amber, 5, { side: 'parent' }), to: 'child/c' }, { apiexports: 'new' }],
    ['of that very child', { slices: [exports], shard: aShardState(amber, 5, { side: 'child/c' }), to: 'child/c' }, {}],
    ['of nobody', { slices: [exports], shard: aShardState(amber, 5, { removed: true }), held: [heldAt(narrow, exports)] }, {}],
    ['not covered', { slices: [schemas], edge: narrow }, {}],
    [
      'not covered, but held',
      { slices: [schemas], edge: narrow, held: [heldAt(anEdge(everything), schemas)] },
      { apiresourceschemas: 'waiting' },
    ],
    ['not known, but held', { held: [{ slice: exports, edge: '', stated: 0 }] }, { apiexports: 'waiting' }],
    ['held, of a shard that is not known', { held: [{ slice: aSlice({ shard: 'birch' }), edge: '', stated: 0 }] }, {}],
  ];
  for (const [what, options, expected] of table) {
    const { phases } = await someCourses(options);

    t.deepEqual(phases(), expected, what);
  }
});

test('a slice goes on by changes where the other end is in step with the same edge, and the log reaches back', async (t) => {
  const edge = anEdge(everything);
  const table: readonly (readonly [string, RigOptions, string])[] = [
    ['in step', { held: [heldAt(edge, exports)] }, 'in step'],
    ['another edge', { held: [heldAt(anEdge({ labels: 'tier' }), exports)] }, 'waiting'],
    ['out of step', { held: [{ slice: exports, edge: '', stated: 0 }] }, 'waiting'],
    ['not held', {}, 'new'],
    ['behind the log', { held: [heldAt(edge, exports)], canResume: false }, 'waiting'],
  ];
  for (const [what, options, expected] of table) {
    const { phases } = await someCourses({ slices: [exports], edge, ...options });

    t.deepEqual(phases(), { apiexports: expected }, what);
  }
});

test('changes of a slice that waits to be stated are told if the other end may have something of it', async (t) => {
  const { courses } = await someCourses({ slices: [exports, schemas], held: [{ slice: exports, edge: '', stated: 0 }] });
  const [held, fresh] = [courses.of(exports), courses.of(schemas)];
  t.deepEqual([held?.isTold, fresh?.isTold], [true, false]);

  stateAll(courses);
  courses.wantAll();

  t.deepEqual([held?.phase, fresh?.phase], ['waiting', 'waiting']);
  t.deepEqual([held?.isTold, fresh?.isTold], [true, true]);
});

test('what comes to be held, or known, once the link has moved on is stated', async (t) => {
  const { courses, phases, tell, edge } = await someCourses({ slices: [] });

  courses.hold([heldAt(edge, exports)]);
  tell([], [{ slice: schemas }]);

  t.deepEqual(phases(), { apiexports: 'waiting', apiresourceschemas: 'new' });
});

test('an end is given while the slice is synced here, again for each incarnation, and never twice for one', async (t) => {
  const { courses, tell } = await someCourses({ slices: [exports] });
  stateAll(courses);

  t.deepEqual(endAll(courses), ['apiexports for 5']);
  tell([], [{ slice: exports, stated: 5, objects: 9 }]);
  t.deepEqual(endAll(courses), []);
  tell([aShardState(amber, 6)]);
  t.deepEqual(endAll(courses), []);
  tell([], [{ slice: exports, stated: 6 }]);
  t.deepEqual(endAll(courses), ['apiexports for 6']);
});

test('a slice that goes on by changes is ended for a newer incarnation alone', async (t) => {
  const edge = anEdge(everything);
  const same = await someCourses({ slices: [exports], edge, held: [heldAt(edge, exports, 5)] });
  const newer = await someCourses({ slices: [exports], edge, held: [heldAt(edge, exports, 4)] });

  t.deepEqual(endAll(same.courses), []);
  t.deepEqual(endAll(newer.courses), ['apiexports for 5']);
});

test('a slice that is not synced is told, and ended once it is', async (t) => {
  const { courses, tell, phases } = await someCourses({ slices: [] });
  tell([], [{ slice: exports, stated: 0 }]);

  t.deepEqual(stateAll(courses), ['apiexports']);
  t.deepEqual(endAll(courses), []);
  t.deepEqual(phases(), { apiexports: 'told' });
  tell([], [{ slice: exports, stated: 5 }]);
  t.deepEqual(endAll(courses), ['apiexports for 5']);
});

test('what a plain writer wrote ends, once it counts as stated, also the slices of which it wrote nothing', async (t) => {
  const shard = aShardState(amber, 5, { plain: true });
  const { courses, tell } = await someCourses({ shard, held: [{ slice: schemas, edge: '', stated: 0 }] });
  tell([], [{ slice: exports, stated: 0 }]);
  stateAll(courses);
  t.deepEqual(endAll(courses), []);

  tell([], [{ slice: exports, stated: 5 }]);

  t.deepEqual([...endAll(courses)].toSorted(), ['apiexports for 5', 'apiresourceschemas for 5']);
});

test('an end is given behind everything that was published when the slice was found to be whole', async (t) => {
  const { courses, store } = await someCourses({ slices: [exports] });
  store.published = 10;
  stateAll(courses);

  t.is(courses.takeDue(9), undefined);
  store.published = 20;
  t.is(courses.takeDue(9), undefined);
  t.is(courses.takeDue(10)?.course.slice.resource.resource, 'apiexports');
});

test('what was in step and is to be stated is doubted first, once; so is what the other end takes to be in step with another edge', async (t) => {
  const { courses } = await someCourses({ slices: [exports], held: [{ slice: exports, edge: 'another', stated: 5 }] });
  t.deepEqual(
    courses.takeDoubts(2).map(({ slice }) => slice.resource.resource),
    ['apiexports'],
  );
  t.deepEqual(courses.takeDoubts(1), []);
  stateAll(courses);
  endAll(courses);
  t.deepEqual(courses.takeDoubts(1), []);

  courses.want(only(courses), 1_000);

  t.deepEqual(courses.takeDoubts(1), [only(courses)]);
  t.deepEqual(courses.takeDoubts(1), []);
  t.is(courses.takeWaiting(0), undefined);
});

test('Y1: a slice that the edge does not cover any more is stated as empty; one that changes how it is covered is stated anew', async (t) => {
  const { courses, phases } = await someCourses({ slices: [exports, schemas] });
  stateAll(courses);
  endAll(courses);

  await courses.changeEdge(anEdge(noSchemas), async () => {});

  t.deepEqual(phases(), { apiexports: 'in step', apiresourceschemas: 'waiting' });
  t.false(courses.edge.covers(schemas));
  await courses.changeEdge(anEdge({ ...noSchemas, labels: 'tier' }), async () => {});
  t.deepEqual(phases(), { apiexports: 'waiting', apiresourceschemas: 'waiting' });
});

test('an edge that comes to cover a slice brings it along', async (t) => {
  const { courses, phases } = await someCourses({ slices: [exports, schemas], edge: anEdge(noSchemas) });
  t.deepEqual(phases(), { apiexports: 'new' });

  await courses.changeEdge(anEdge(everything), async () => {});

  t.deepEqual(phases(), { apiexports: 'new', apiresourceschemas: 'new' });
});

test('a shard that moves to the link’s own side is told no more; when it comes back, all of it is stated', async (t) => {
  const edge = anEdge(everything);
  const { courses, tell, phases } = await someCourses({ slices: [exports], edge, held: [heldAt(edge, exports), heldAt(edge, schemas)] });

  tell([aShardState(amber, 6, { side: 'parent' })]);

  t.deepEqual(phases(), {});
  t.is(courses.takeWaiting(0), undefined);
  t.is(courses.takeDue(0), undefined);
  tell([aShardState(amber, 7)]);
  t.deepEqual(phases(), { apiexports: 'new' });
});

test('those that declare types are stated first, the others in the order they came', async (t) => {
  const { courses } = await someCourses({ slices: [exports, schemas, declarations] });

  t.deepEqual(stateAll(courses), ['clustercachedresources', 'apiexports', 'apiresourceschemas']);
});

test('what is of a declared type is stated once all is told that was published when it came: its declaration may be a change', async (t) => {
  const ofDeclared = aSlice({ group: 'machines.svm.io', resource: 'instances', identity: 'A1' });
  const { courses, store, tell } = await someCourses();
  store.published = 7;

  tell([], [{ slice: ofDeclared }, { slice: exports }]);

  t.is(courses.takeWaiting(6)?.slice.resource.resource, 'apiexports');
  t.is(courses.takeWaiting(6), undefined);
  t.is(courses.takeWaiting(7)?.slice.resource.resource, 'instances');
  t.is(courses.takeWaiting(7), undefined);
});

test('what is wanted after a while waits until then, and rings; what is wanted at once does not wait for it', async (t) => {
  const { courses, clock, rung, phases } = await someCourses({ slices: [exports] });
  stateAll(courses);
  const course = only(courses);

  courses.want(course, 1_000);
  t.is(courses.takeWaiting(0), undefined);
  t.deepEqual(phases(), { apiexports: 'waiting' });
  clock.advance(1_000);
  t.is(rung.times, 1);
  t.is(courses.takeWaiting(0), course);

  courses.want(course, 1_000);
  courses.want(course);
  t.is(courses.takeWaiting(0), course);
  clock.advance(1_000);
  t.is(courses.takeWaiting(0), undefined);
});

test('a shard that the other end takes from here again and again is stated after a while, and it is known how long that is', async (t) => {
  const { courses, clock } = await someCourses({ slices: [exports], canResume: false });
  const choose = (isYours: boolean): number => courses.learnChoice(aClaimFrame({ ...aShardState(amber, 5), isYours }));

  const waits = [1, 2, 3].map(() => (choose(false), choose(true)));

  t.deepEqual(waits, [500, 1_000, 2_000]);
  t.is(courses.takeWaiting(0), undefined);
  clock.advance(2_000);
  t.is(courses.takeWaiting(0)?.slice.resource.resource, 'apiexports');
});

test('behind the log, all that are told are wanted', async (t) => {
  const edge = anEdge(everything);
  const { courses } = await someCourses({ slices: [exports, schemas], edge, held: [heldAt(edge, exports)] });
  courses.wantAll();

  t.deepEqual([...stateAll(courses)].toSorted(), ['apiexports', 'apiresourceschemas']);
});

test('closed, nothing of it is left to come', async (t) => {
  const { courses, clock } = await someCourses({ slices: [exports] });
  stateAll(courses);
  courses.want(only(courses), 1_000);

  courses.close();

  t.is(clock.pending, 0);
  t.deepEqual([...courses.all], []);
});

test('slices are counted as they move, are refused, are stated anew and leave', async (t) => {
  const { courses, tell } = await someCourses({ slices: [exports, schemas] });
  t.deepEqual(courses.tally, { slices: 2, inStep: 0, refused: 0 });
  stateAll(courses);
  endAll(courses);
  t.deepEqual(courses.tally, { slices: 2, inStep: 2, refused: 0 });

  const course = courses.of(exports);
  if (course === undefined) throw new Error('there is no course');
  course.isRefused = true;
  course.isRefused = true;
  courses.want(course);
  t.deepEqual(courses.tally, { slices: 2, inStep: 1, refused: 1 });
  tell([aShardState(amber, 6, { side: 'parent' })]);
  t.deepEqual(courses.tally, { slices: 0, inStep: 0, refused: 0 });
});

test('a slice that was asked for last and has left is not found any more', async (t) => {
  const { courses, tell } = await someCourses({ slices: [exports] });
  t.truthy(courses.of(exports));

  tell([aShardState(amber, 6, { side: 'parent' })]);
  t.is(courses.of(exports), undefined);
});
