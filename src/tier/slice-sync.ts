/** One slice on its way over a link: how far it is (sync-phase.ts), and what is remembered of it meanwhile. */
import assert from 'node:assert/strict';
import type { BucketSet } from '../domain/buckets.js';
import { isDeclaring } from '../domain/declaration.js';
import type { Term } from '../domain/push.js';
import type { Slice } from '../domain/slice.js';
import type { ResyncPace } from '../sender/resync-pace.js';
import { nextPhase, type SyncEvent, type SyncPhase } from './sync-phase.js';
import type { SliceComparison } from './slice-comparison.js';
import type { SliceWalk } from './slice-walk.js';

/** Counts over all slices of one link, kept because status reports and scrapes are frequent and must not look at each slice. */
export type SyncTally = { slices: number; current: number; refused: number };

export class SliceSync {
  readonly slice: Slice;
  readonly pace: ResyncPace;
  /** The hash of what both ends' policies let through of it. */
  filterHash: string;
  /** The term of the claim for which `end` was last sent: the other end may have refused an earlier one, and all that came with it. */
  endedFor: Term = 0;
  /** It is whole, and what made it so is being sent. */
  isEnding = false;
  /** How many were put since `begin`. */
  objects = 0;
  /** Its freshness as it was sent last. */
  freshness = '';
  /** It crosses this link no longer, and another slice sync takes its place should it do so again. */
  hasLeft = false;
  /** The walk of its sync, or of its digest. */
  walk: SliceWalk | undefined;
  comparison: SliceComparison | undefined;
  /** Where the other end was found to differ at its begin: nothing else of it is sent. Undefined: it was not compared. */
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

  /** Its objects declare the types of others. */
  get declaresTypes(): boolean {
    return isDeclaring(this.slice.resource);
  }

  get phase(): SyncPhase {
    return this.#phase;
  }

  /** Whether changes of it are sent. */
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

  /** The other end refused something of it, so the digests cannot agree. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  set isRefused(isRefused: boolean) {
    this.#count(-1);
    this.#isRefused = isRefused;
    this.#count(1);
  }

  /** Something that happens after a while; it replaces what was to happen before. */
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

  /** It does not cross this link any more. */
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
