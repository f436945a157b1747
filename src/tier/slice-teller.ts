/**
 * Tells slices as wholes: their statements, their ends, and their digests, a page at a time.
 *
 * S1 At most `statementsMax` are read side by side, a page each in turn, so that a large one does not hold up the others; a digest is
 *    read only when nothing else is to be done.
 * S2 What the other end may have all of is compared before it is stated, if it is many objects: most often it comes back to them.
 * S3 What declares types is told before what may be of them, which the other end would have to put aside.
 */
import { emptyDigest, formatDigest } from '../domain/digest.js';
import type { MovedPath } from '../domain/change.js';
import { Refused } from '../domain/errors.js';
import type { Key } from '../domain/key.js';
import type { CanonicalPaths, Objects, Revisions, Snapshot } from '../domain/ports.js';
import { scopeOfSlice } from '../domain/scope.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import type { Slice } from '../domain/slice.js';
import { Comparisons } from './comparisons.js';
import type { Courses } from './courses.js';
import { crossingObjects } from './crossing.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { OutflowQueue } from './outflow-queue.js';
import type { FrameOf } from '../frames/frame.js';
import type { SliceCourse } from './slice-course.js';
import { SliceWalk } from './slice-walk.js';
import type { Tail } from './tail.js';
import { toldChange, toldObject } from './told-change.js';

export type SliceTellerParts = Readonly<{
  store: Objects & Revisions & CanonicalPaths;
  known: KnownShards;
  queue: OutflowQueue;
  courses: Courses;
  tail: Tail;
  /** Tells the position, if it has moved. */
  progress: () => void;
  /** The slice is to be stated anew, after a while. */
  restate: (course: SliceCourse, afterMs: number, reason: string) => void;
}>;

const statementsMax = 4;
const doubtsPerTurn = 256;

export class SliceTeller {
  readonly #parts: SliceTellerParts;
  readonly #stating: SliceCourse[] = [];
  readonly #comparisons: Comparisons;
  readonly #digestsDue = new Set<SliceCourse>();
  readonly #doubtful = new Set<SliceCourse>();
  #checked: SliceCourse | undefined;

  constructor(parts: SliceTellerParts) {
    this.#parts = parts;
    this.#comparisons = new Comparisons(parts);
  }

  /** Ends a slice that is due for it. False: none is. */
  end(): boolean {
    const { courses, queue, store, tail, progress } = this.#parts;
    const due = courses.takeDue(tail.position);
    if (due === undefined) return false;
    // A slice in step goes on from the position, which must not lie before what its statement has told.
    progress();
    const { course, incarnation } = due;
    const { slice, edge } = course;
    const revision = store.format(tail.position);
    const isFirst = course.phase === 'told';
    const isSame = isFirst && course.isSame ? { isSame: true } : {};
    queue.frame(course, (sequence, count) => ({ kind: 'end', sequence, slice, revision, count, edge, ...isSame, incarnation }));
    course.step('ended');
    course.endedFor = incarnation;
    if (!isFirst) return true;
    course.pace.stated();
    this.#digestsDue.add(course);
    return true;
  }

  /** Tells of some slices that they are out of step; of all, before the position may pass them. False: none is. */
  doubt(max = doubtsPerTurn): boolean {
    const { courses, queue, store, tail } = this.#parts;
    const revision = store.format(tail.position);
    const doubted = courses.takeDoubts(max);
    for (const course of doubted) queue.frame(course, (sequence) => ({ kind: 'begin', sequence, slice: course.slice, revision }));
    return doubted.length > 0;
  }

  /** Reads on in what is to be stated. False: nothing is. */
  async walk(): Promise<boolean> {
    const { courses, tail } = this.#parts;
    if (this.#goOn()) return true;
    while (this.#stating.length < statementsMax) {
      const isDeclaring = this.#stating.some(({ declaresTypes }) => declaresTypes);
      const course = courses.takeWaiting(tail.position, isDeclaring ? 'declaring' : undefined);
      if (course === undefined) break;
      if (this.#comparisons.isFor(course)) {
        this.#comparisons.ask(course, this.#snapshot(course));
        this.#stating.push(course);
      } else this.#begin(course);
    }
    const course = this.#stating.shift();
    if (course !== undefined) {
      if (course.phase === 'stating' && (await this.#page(course))) this.#stating.push(course);
      if (course.phase === 'comparing' && (await this.#comparisons.page(course))) this.#stating.push(course);
      return true;
    }
    if (this.#checked === undefined) return false;
    if (!(await this.#page(this.#checked))) this.#checked = undefined;
    return true;
  }

  /** Tells the digest of a slice whose turn it is, or begins to read it. False: none is due. Asked when all changes are told. */
  digest(): boolean {
    const { courses, known, queue } = this.#parts;
    for (const course of this.#digestsDue) {
      const { slice } = course;
      // What is refused of it is not known before all of it is acknowledged.
      if (queue.isUnderWay(course)) continue;
      this.#digestsDue.delete(course);
      if (courses.of(slice) !== course || course.phase !== 'in step' || course === this.#checked) continue;
      const sum = course.walk?.sum;
      course.closeWalk();
      if (course.isRefused) continue;
      if (sum !== undefined) this.#tellDigest(course, formatDigest(sum));
      else if (courses.edge.isWhole(slice)) this.#tellDigest(course, known.slice(slice)?.digest ?? formatDigest(emptyDigest));
      else if (!courses.edge.covers(slice)) this.#tellDigest(course, formatDigest(emptyDigest));
      else this.#check(course);
      return true;
    }
    return false;
  }

  /** What the other end held of a slice at its begin. */
  learnSummary(summary: FrameOf<'summary'>): void {
    this.#comparisons.learn(summary);
  }

  /** All digests are due. */
  checkAll(): void {
    for (const course of this.#parts.courses.all) this.#digestsDue.add(course);
  }

  /**
   * Changes of the slice were judged behind what is published, by canonical paths as they are now: what was deleted before its path moved
   * may have crossed and not have been told. Where a path does move, the slice is stated anew.
   */
  doubtPaths(slice: Slice): void {
    const { courses } = this.#parts;
    const course = courses.of(slice);
    if (course === undefined || !courses.edge.asksPath(slice)) return;
    course.walk?.giveUpSum();
    this.#doubtful.add(course);
  }

  /** A logical cluster's canonical path has moved: what of it crosses now and did not, or the other way round, is told. */
  async movePath({ shard, cluster }: Key, { before, after }: MovedPath): Promise<void> {
    const { courses, queue, store, tail } = this.#parts;
    const { edge } = courses;
    for (const course of [...courses.ofShard(shard)].filter(({ isTold, slice }) => isTold && edge.asksPath(slice))) {
      if (this.#doubtful.delete(course) && !course.isToBeStated) {
        this.#parts.restate(course, course.pace.wantedMs(), 'a canonical path has moved');
        continue;
      }
      course.walk?.giveUpSum();
      const snapshot = store.snapshot({ ...scopeOfSlice(course.slice), cluster }, tail.position);
      for await (const objects of snapshotPages(snapshot)) {
        const flipped = objects.filter((object) => edge.lets(object, before) !== edge.lets(object, after));
        const told = flipped.map((object) => toldChange(object, edge.lets(object, after) ? object : undefined));
        if (course.isTold) queue.objects(course, told);
      }
    }
  }

  #begin(course: SliceCourse): void {
    const { courses, queue, store, tail } = this.#parts;
    const { slice } = course;
    const { edge } = courses;
    const isCovered = edge.covers(slice);
    const snapshot = isCovered ? this.#snapshot(course) : undefined;
    const revision = store.format(tail.position);
    queue.frame(
      course,
      (sequence) => ({ kind: 'begin', sequence, slice, revision }),
      () => (course.objects = 0),
    );
    course.closeComparison();
    course.isRefused = false;
    courses.marked.add(course);
    course.isSame = false;
    course.step('begun');
    if (snapshot !== undefined) {
      course.walk = new SliceWalk(snapshot, { sums: !edge.isWhole(slice) });
      this.#stating.push(course);
      return;
    }
    course.step('walked');
    courses.mayBeDue(course);
  }

  /** Goes on with what was compared. False: there is none, or no room for it. */
  #goOn(): boolean {
    const compared = this.#comparisons.take(this.#stating.length < statementsMax);
    if (compared === undefined) return false;
    const { course, isSame } = compared;
    course.closeComparison();
    if (!isSame) {
      this.#begin(course);
      return true;
    }
    course.isSame = true;
    course.step('walked');
    this.#parts.courses.mayBeDue(course);
    return true;
  }

  #snapshot(course: SliceCourse): Snapshot {
    const { courses, store, tail } = this.#parts;
    try {
      return store.snapshot(scopeOfSlice(course.slice), tail.position);
    } catch (error) {
      courses.want(course);
      throw error;
    }
  }

  #check(course: SliceCourse): void {
    const { store, tail } = this.#parts;
    course.walk = new SliceWalk(store.snapshot(scopeOfSlice(course.slice), tail.position), { sums: true });
    this.#checked = course;
  }

  /** One page. False: there is no further one. */
  async #page(course: SliceCourse): Promise<boolean> {
    const { courses, queue, store } = this.#parts;
    const { walk, slice } = course;
    if (walk === undefined) return false;
    const page = await this.#read(course, walk);
    if (page === undefined || course.walk !== walk) return false;
    const crossing = await crossingObjects(page, { slice, edge: courses.edge, paths: store });
    if (course.walk !== walk) return false;
    const untold = crossing.filter((object) => walk.take(object));
    const isStating = course.phase === 'stating';
    if (isStating) queue.objects(course, untold.map(toldObject));
    if (walk.isOverrun) {
      if (isStating) this.#parts.restate(course, course.pace.failedMs(), 'too many of its keys have changed meanwhile');
      else course.closeWalk();
      return false;
    }
    if (!walk.isThrough) return true;
    if (isStating) {
      course.step('walked');
      courses.mayBeDue(course);
      return false;
    }
    if (walk.sum !== undefined && !course.isRefused) this.#tellDigest(course, formatDigest(walk.sum));
    course.closeWalk();
    return false;
  }

  /** Undefined: the snapshot was held for too long, and what was to come of it has to wait. */
  async #read(course: SliceCourse, walk: SliceWalk) {
    try {
      return await walk.page();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (course.walk !== walk) return undefined;
      if (course.phase === 'stating') this.#parts.restate(course, course.pace.failedMs(), 'its snapshot is gone');
      else course.closeWalk();
      return undefined;
    }
  }

  #tellDigest(course: SliceCourse, value: string): void {
    const { slice } = course;
    this.#parts.queue.frame(course, (sequence) => ({ kind: 'digest', sequence, slice, value }));
  }
}
