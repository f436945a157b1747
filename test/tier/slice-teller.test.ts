import { setImmediate } from 'node:timers';
import test from 'ava';
import type { Frame } from '../../src/frames/frame.js';
import { KnownShards } from '../../src/intake/known-shards.js';
import { Courses } from '../../src/tier/courses.js';
import { Edge } from '../../src/tier/edge.js';
import { OutflowQueue } from '../../src/tier/outflow-queue.js';
import type { SliceCourse } from '../../src/tier/slice-course.js';
import { SliceTeller } from '../../src/tier/slice-teller.js';
import { snapshotPages } from '../../src/domain/snapshot-pages.js';
import { Summary } from '../../src/domain/summary.js';
import { Tail } from '../../src/tier/tail.js';
import { ManualClock } from '../store/manual-clock.js';
import { aPolicy } from '../support/edge-policies.js';
import { MemoryDisk } from '../support/memory-disk.js';
import { MemoryStore } from '../support/memory-store.js';
import { aClaim, aStatement, aSlice, mustPush, firstIncarnation } from '../support/pushes.js';
import { aClaimFrame } from './a-claim-frame.js';
import { aKey, aScope } from '../support/objects.js';
import { aState } from './a-state.js';

const everything = aPolicy({ types: ['*'] });
const page = { rowsMax: 1, bytesMax: 1_000_000 };

/** A teller of a store that holds these objects of one slice, a page each. */
async function aTeller(...names: readonly string[]) {
  const clock = new ManualClock();
  const parts = { clock, soon: (task: () => void) => void setImmediate(task), random: () => 0.5 };
  const store = new MemoryStore(
    MemoryDisk.blank(() => 0.5),
    parts,
    { page },
  );
  await mustPush(store.lane(), [
    aClaim(),
    ...aStatement(
      {},
      names.map((name) => aState(name)),
    ),
  ]);
  const known = await KnownShards.open(store);
  const credit = { mutations: 10_000, bytes: 10_000_000 };
  const limits = { frameBytesMax: 1_000_000, frameMutationsMax: 100, bodyBytesMax: 100_000 };
  const queue = new OutflowQueue({ clock, tooLarge: () => {} }, { credit, limits }, { batchMutationsMax: 100, batchBytesMax: 1_000_000 });
  const rang = (): void => {};
  const courses = new Courses(
    { known, isSynced: (slice) => known.isSynced(slice), published: () => store.published, clock, random: () => 0, rang },
    { to: 'parent', edge: new Edge(everything, everything), held: [], canResume: false },
  );
  const tail = new Tail({ history: store, revisions: store, commits: store, isWanted: () => true, rang }, store.published);
  courses.learnChoice(aClaimFrame({ incarnation: firstIncarnation, origin: store.cacheId, isYours: true }));
  await courses.open(async () => {});
  const restated: string[] = [];
  const restate = (course: SliceCourse, afterMs: number, reason: string): void => {
    restated.push(reason);
    courses.want(course, afterMs);
  };
  const teller = new SliceTeller({ store, known, queue, courses, tail, progress: () => {}, restate });
  const sent = (): readonly string[] => {
    const frames: Frame[] = [];
    for (let frame = queue.take(); frame !== undefined; frame = queue.take()) frames.push(frame);
    return frames.map((frame) => (frame.kind === 'put' ? `put ${frame.objects.map(({ name }) => name).join()}` : frame.kind));
  };
  const acknowledge = (sequence: number): boolean => queue.acknowledge(sequence, credit);
  return { teller, courses, clock, sent, acknowledge, queue, store, restated };
}

test('a slice is told from its begin to its end, a page in turn, and its digest once all of it is acknowledged', async (t) => {
  const { teller, sent, acknowledge } = await aTeller('one', 'two');

  t.true(await teller.walk());
  t.deepEqual(sent(), ['begin', 'put one']);
  t.false(teller.end());
  t.true(await teller.walk());
  t.deepEqual(sent(), ['put two']);
  t.true(teller.end());
  t.deepEqual(sent(), ['end']);
  t.false(teller.digest());
  acknowledge(4);
  t.true(teller.digest());
  t.deepEqual(sent(), ['digest']);
  t.false(await teller.walk());
  t.false(teller.digest());
});

test('a slice of which too many keys have changed before its last page is begun again, after a while', async (t) => {
  const { teller, courses, clock, sent, restated } = await aTeller('one', 'two');
  await teller.walk();
  const course = courses.of(aSlice());

  for (let i = 0; i <= 200_000; i++) course?.walk?.note({ key: { ...aKey(), name: `o-${i}` } }, undefined, undefined);
  await teller.walk();

  t.is(course?.phase, 'waiting');
  t.is(course?.walk, undefined);
  t.deepEqual(restated, ['too many of its keys have changed meanwhile']);
  sent();
  t.false(await teller.walk());
  clock.advance(60_000);
  t.true(await teller.walk());
  t.deepEqual(sent(), ['begin', 'put one']);
});

test('a slice of many objects that is stated anew is compared first: nothing of it is sent if the other end has it, all of it otherwise', async (t) => {
  const names = Array.from({ length: 128 }, (_, i) => `n${i}`);
  const { teller, courses, sent, queue, store } = await aTeller(...names);
  const course = courses.of(aSlice());
  if (course === undefined) throw new Error('there is no course');
  const walk = async (): Promise<void> => {
    while (await teller.walk()) sent();
  };
  await walk();
  const own = new Summary();
  for await (const objects of snapshotPages(store.snapshot(aScope(), store.published))) own.add(objects);
  const value = own.format();

  for (const [summary, phase, isSame] of [
    [value, 'told', true],
    ['128:another', 'stating', false],
    ['', 'stating', false],
  ] as const) {
    sent();
    courses.want(course);
    await teller.walk();
    const begin = queue.take();
    if (begin?.kind !== 'begin') throw new Error('it is to begin');
    t.true(begin.compares);
    teller.learnSummary({ kind: 'summary', slice: aSlice(), sequence: begin.sequence + 1, value });
    while (course.phase === 'comparing' && course.comparison?.isRead === false) await teller.walk();
    t.is(course.phase, 'comparing', 'another begin is meant');

    teller.learnSummary({ kind: 'summary', slice: aSlice(), sequence: begin.sequence, value: summary });
    await teller.walk();

    t.like(course, { phase, isSame });
  }
});
