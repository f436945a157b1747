/** One slice on its way over a link: how far it is (course-phase.ts), and what is remembered of it meanwhile. */
import assert from 'node:assert/strict';
import { isDeclaring } from '../domain/declaration.js';
import type { Incarnation } from '../domain/push.js';
import type { Slice } from '../domain/slice.js';
import type { RestatePace } from '../sender/restate-pace.js';
import { nextPhase, type CourseEvent, type CoursePhase } from './course-phase.js';
import type { SliceComparison } from './slice-comparison.js';
import type { SliceWalk } from './slice-walk.js';

export class SliceCourse {
  readonly slice: Slice;
  readonly pace: RestatePace;
  /** What both ends' policies come to for it. */
  edge: string;
  /** The claim that `end` was last given for: the other end may have refused an earlier one, and all that came with it. */
  endedFor: Incarnation = 0;
  /** It was whole, and what made it so is being told. */
  isRipening = false;
  /** Put since `begin`. */
  objects = 0;
  /** Something of it was not taken, so that the digests cannot agree. */
  isRefused = false;
  /** Its freshness as it was told last. */
  freshness = '';
  /** Of its statement, or of its digest. */
  walk: SliceWalk | undefined;
  comparison: SliceComparison | undefined;
  /** The other end was found to have all of it at its begin. */
  isSame = false;
  #phase: CoursePhase;
  #cancelDelay: (() => void) | undefined;

  constructor(slice: Slice, { edge, phase, pace }: Readonly<{ edge: string; phase: CoursePhase; pace: RestatePace }>) {
    this.slice = slice;
    this.edge = edge;
    this.pace = pace;
    this.#phase = phase;
  }

  /** Its objects declare the types of others. */
  get declaresTypes(): boolean {
    return isDeclaring(this.slice.resource);
  }

  get phase(): CoursePhase {
    return this.#phase;
  }

  /** Whether changes of it are told. */
  get isTold(): boolean {
    return this.#phase !== 'new';
  }

  get isToBeStated(): boolean {
    return this.#phase === 'new' || this.#phase === 'waiting';
  }

  step(event: CourseEvent): void {
    const phase = nextPhase(this.#phase, event);
    assert(phase !== undefined, `a slice that is ${this.#phase} cannot be ${event}`);
    this.#phase = phase;
  }

  /** What is to come after a while; it takes the place of what was to come before. */
  delay(cancel: () => void): void {
    this.#cancelDelay?.();
    this.#cancelDelay = cancel;
  }

  closeWalk(): void {
    this.walk?.close();
    this.walk = undefined;
  }

  closeComparison(): void {
    this.comparison?.close();
    this.comparison = undefined;
  }

  close(): void {
    this.closeWalk();
    this.closeComparison();
    this.#cancelDelay?.();
    this.#cancelDelay = undefined;
  }
}
