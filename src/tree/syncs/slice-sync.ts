/**
 * One slice on its way over a link: its phase (sync-phase.ts), and what the sender remembers of it.
 */
import assert from 'node:assert/strict';
import type { BucketSet } from '../../domain/slices/buckets.js';
import { isDeclaring } from '../../domain/catalogue/declaration.js';
import type { Term } from '../../domain/push.js';
import type { Slice } from '../../domain/slice.js';
import type { ResyncPace } from '../../sender/resync-pace.js';
import { nextPhase, type SyncEvent, type SyncPhase } from './sync-phase.js';
import type { SliceComparison } from './slice-comparison.js';
import type { SliceWalk } from './slice-walk.js';

/**
 * Counts over all slices of one link. They are kept up to date, because status reports and scrapes
 * are frequent and must not visit each slice.
 */
export type SyncTally = { slices: number; current: number; refused: number };

export class SliceSync {
  readonly slice: Slice;
  readonly pace: ResyncPace;
  /** The hash of what the policies of both ends let through. */
  filterHash: string;
  /**
   * The term of the claim for which `end` was last sent. The other end may have refused an `end`
   * for an earlier term, and everything sent with it.
   */
  endedFor: Term = 0;
  /** The slice was found whole, and the changes that made it whole are being sent. */
  isEnding = false;
  /** The number of objects put since `begin`. */
  objects = 0;
  /** The text of the last report on its freshness. */
  freshness = '';
  /**
   * The slice does not cross this link any more. If it crosses again, another slice sync replaces
   * this one.
   */
  hasLeft = false;
  walk: SliceWalk | undefined;
  comparison: SliceComparison | undefined;
  /**
   * The buckets in which the other end differed at the begin. Only objects of these buckets are
   * sent. Undefined: the slice was not compared.
   */
  buckets: BucketSet | undefined;
  readonly #tally: SyncTally;
  #phase: SyncPhase;
  #isRefused = false;
  #cancelDelay: (() => void) | undefined;

  constructor(
    slice: Slice,
    { filterHash, phase, pace, tally }: Readonly<{ filterHash: string; phase: SyncPhase; pace: ResyncPace; tally: SyncTally }>,
  ) {
    this.slice = slice;
    this.filterHash = filterHash;
    this.pace = pace;
    this.#phase = phase;
    this.#tally = tally;
    this.#count(1);
  }

  get declaresTypes(): boolean {
    return isDeclaring(this.slice.resource);
  }

  get phase(): SyncPhase {
    return this.#phase;
  }

  get sendsChanges(): boolean {
    return this.#phase !== 'new';
  }

  get isToBeSynced(): boolean {
    return this.#phase === 'new' || this.#phase === 'waiting';
  }

  step(event: SyncEvent): void {
    const phase = nextPhase(this.#phase, event);
    assert(phase !== undefined, `a slice that is ${this.#phase} cannot be ${event}`);
    this.#count(-1);
    this.#phase = phase;
    this.#count(1);
  }

  /** Whether the other end refused something of the slice. If so, the digests cannot agree. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  set isRefused(isRefused: boolean) {
    this.#count(-1);
    this.#isRefused = isRefused;
    this.#count(1);
  }

  /** Keeps the cancellation of a timer, and cancels the previous timer. */
  setTimer(cancel: () => void): void {
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

  leave(): void {
    this.hasLeft = true;
    this.close();
    this.#count(-1);
  }

  #count(by: 1 | -1): void {
    this.#tally.slices += by;
    if (this.#phase === 'current') this.#tally.current += by;
    if (this.#isRefused) this.#tally.refused += by;
  }
}
