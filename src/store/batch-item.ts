/** The items that the committers of both engines receive, and their decisions. */
import type { Mutation } from '../domain/mutation.js';
import type { Push, PushOutcome } from '../domain/push.js';

/** Pushes that may take several commits. */
export type Sweeping = Extract<Push, { kind: 'end' | 'clear' | 'drop' }>;

/** `resume`: continues a sweep whose walk an earlier commit did not finish. */
export type BatchItem = Mutation | Push | Readonly<{ kind: 'resume'; push: Sweeping; walk: number }>;

/** The sweep is not done; walk number `walk` will continue it. */
export type SweepProgress = Readonly<{ kind: 'partial'; removed: number; walk: number }>;

export type PushDecision = PushOutcome | SweepProgress;

/** The most objects that one step of a sweep deletes. */
export const sweepDeletesMax = 256;
/**
 * The `end` of a slice that holds at most this many objects is decided in one commit. The bound is
 * low because one commit may contain the ends of some hundred slices.
 */
export const oneStepObjectsMax = 64;
