/**
 * Slices that are compared before they are stated: the other end may have all of them already, as when a cache comes back to a parent.
 *
 *   begin, compares ──▶ own snapshot, page by page ──┐
 *                  └──▶ summary of the other end ────┴▶ the same: told · otherwise: stated, from a begin of its own
 *
 * D1 The snapshot stands where the tail does when the begin is queued. The other end may have put what the tail told since before it sums up: if
 *    that is the same as the snapshot, putting it again leaves it so.
 * D2 Not compared: what has less than `comparedMin` objects, what declares types, and where paths decide what crosses, for they may move.
 */
import { Refused } from '../domain/errors.js';
import type { CanonicalPaths, Revisions, Snapshot } from '../domain/ports.js';
import type { FrameOf } from '../frames/frame.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { Courses } from './courses.js';
import { crossingObjects } from './crossing.js';
import type { OutflowQueue } from './outflow-queue.js';
import { SliceComparison } from './slice-comparison.js';
import type { SliceCourse } from './slice-course.js';
import type { Tail } from './tail.js';

export type ComparisonsParts = Readonly<{
  store: Revisions & CanonicalPaths;
  known: Pick<KnownShards, 'slice'>;
  queue: OutflowQueue;
  courses: Courses;
  tail: Tail;
}>;

/** Less than a few pages are sent as soon as they are compared. */
const comparedMin = 128;

export class Comparisons {
  readonly #parts: ComparisonsParts;
  /** Of which both summaries are known, or one will not come. */
  readonly #compared = new Set<SliceCourse>();

  constructor(parts: ComparisonsParts) {
    this.#parts = parts;
  }

  isFor({ slice, phase, declaresTypes }: SliceCourse): boolean {
    const { known, courses } = this.#parts;
    const { edge } = courses;
    const isMuch = (known.slice(slice)?.objects ?? 0) >= comparedMin;
    return phase === 'waiting' && isMuch && !declaresTypes && edge.covers(slice) && !edge.asksPath(slice);
  }

  /** `snapshot`: at the position of the tail. */
  ask(course: SliceCourse, snapshot: Snapshot): void {
    const { courses, queue, store, tail } = this.#parts;
    const { slice } = course;
    const comparison = new SliceComparison(snapshot);
    const revision = store.format(tail.position);
    queue.frame(
      course,
      (sequence) => {
        comparison.sequence = sequence;
        return { kind: 'begin', sequence, slice, revision, compares: true };
      },
      () => (course.objects = 0),
    );
    course.comparison = comparison;
    course.isRefused = false;
    courses.marked.add(course);
    course.step('asked');
  }

  /** Reads one page. False: there is no further one. */
  async page(course: SliceCourse): Promise<boolean> {
    const { courses, store } = this.#parts;
    const { comparison, slice } = course;
    if (comparison === undefined || comparison.isRead) return false;
    try {
      const isMore = await comparison.page((objects) => crossingObjects(objects, { slice, edge: courses.edge, paths: store }));
      if (!isMore) this.#compared.add(course);
      return isMore;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      comparison.learn('');
      this.#compared.add(course);
      return false;
    }
  }

  /** The other end has summed up what it held of the slice at that begin. */
  learn({ slice, sequence, value }: FrameOf<'summary'>): void {
    const course = this.#parts.courses.of(slice);
    if (course?.comparison?.sequence !== sequence) return;
    course.comparison.learn(value);
    this.#compared.add(course);
  }

  /** One of which it is known whether the other end has it, which is taken; `mayDiffer`: also one that differs. */
  take(mayDiffer: boolean): Readonly<{ course: SliceCourse; isSame: boolean }> | undefined {
    for (const course of this.#compared) {
      const isSame = course.phase === 'comparing' ? course.comparison?.isSame : undefined;
      if (isSame === false && !mayDiffer) continue;
      this.#compared.delete(course);
      if (isSame !== undefined) return { course, isSame };
    }
    return undefined;
  }
}
