/** What the engine decides on what is published here: to answer, to write, or to take a walk a step further. */
import type { Outcome } from '../../domain/mutation.js';
import type { Push, Speaker } from '../../domain/push.js';
import type { Revision } from '../../domain/revision.js';
import type { PushDecision } from '../asked.js';
import type { Walk } from '../syncs.js';
import type { Compare, Operation } from './rpc.js';

/** What became of what was asked. */
export type Decision = PushDecision | Extract<Outcome, { kind: 'refused' }>;

export type Plan = Readonly<
  | { kind: 'decided'; decision: Decision }
  /**
   * `next`: once it is written and published here. `otherwise`: where what it was decided on did not hold any more, and what has changed is published; undefined:
   * decide all that was asked again. `deletes`: what a mark of its namesakes stands for, if it deletes: where one is left, that is written again behind it.
   */
  | {
      kind: 'write';
      compare: readonly Compare[];
      operations: readonly Operation[];
      next: (revision: Revision) => Plan;
      otherwise?: () => Plan;
      deletes?: string;
    }
  /** Takes the walk a step further, then `next`, with how many it has removed; `isFenced`: `by`, who has asked for it, does not speak for the shard any more. */
  | { kind: 'sweep'; walk: Walk; by: Speaker | undefined; next: (removed: number, isFenced: boolean) => Plan }
>;

/** What a transaction compares, and what it does if all of it holds. */
export type Written = Readonly<{ compare: Compare[]; operations: Operation[] }>;

export type PushOf<Kind extends Push['kind']> = Extract<Push, { kind: Kind }>;

export const unchanged: Plan = decided({ kind: 'unchanged' });

export function decided(decision: Decision): Plan {
  return { kind: 'decided', decision };
}

export function write(
  { compare, operations }: Readonly<{ compare: readonly Compare[]; operations: readonly Operation[] }>,
  next: (revision: Revision) => Plan = () => decided({ kind: 'unchanged' }),
): Extract<Plan, { kind: 'write' }> {
  return { kind: 'write', compare, operations, next };
}

/** More records than one transaction takes, so each step is decided anew. */
export function writeInSteps(written: Written, next: () => Plan): Plan {
  return { ...write(written, next), otherwise: next };
}
