/**
 * Slices that are to be stated, in the order in which they may be: those that declare types first, those of declared types last, and
 * these not before everything is told that was published when they came, for their declaration may be a change.
 */
import type { Revision } from '../domain/revision.js';
import type { SliceCourse } from './slice-course.js';

export class WaitingCourses {
  readonly #declaring = new Set<SliceCourse>();
  readonly #builtIn = new Set<SliceCourse>();
  /** With what was published when it came. */
  readonly #declared = new Map<SliceCourse, Revision>();

  add(course: SliceCourse, published: Revision): void {
    if (course.declaresTypes) this.#declaring.add(course);
    else if (course.slice.resource.identity === '') this.#builtIn.add(course);
    else this.#declared.set(course, published);
  }

  /** The next one; undefined when none may be stated. `position`: up to where changes are told. `declaring`: of those alone. */
  take(position: Revision, of?: 'declaring'): SliceCourse | undefined {
    const [first] = of === 'declaring' ? this.#declaring : this.#inOrder();
    if (first === undefined || (this.#declared.get(first) ?? 0) > position) return undefined;
    this.delete(first);
    return first;
  }

  delete(course: SliceCourse): void {
    for (const waiting of [this.#declaring, this.#builtIn, this.#declared]) waiting.delete(course);
  }

  clear(): void {
    for (const waiting of [this.#declaring, this.#builtIn, this.#declared]) waiting.clear();
  }

  *#inOrder(): Iterable<SliceCourse> {
    yield* this.#declaring;
    yield* this.#builtIn;
    yield* this.#declared.keys();
  }
}
