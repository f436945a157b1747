/** What the decider decides: an answer, a write, or one more step of a walk. */
import type { Outcome } from '../../domain/mutation.js';
import type { Push, Speaker } from '../../domain/push.js';
import type { Revision } from '../../domain/revision.js';
import type { PushDecision } from '../batch-item.js';
import type { Walk } from '../syncs.js';
import type { Compare, Operation } from './rpc.js';

export type Decision = PushDecision | Extract<Outcome, { kind: 'refused' }>;

export type Plan = Readonly<
  | { kind: 'decided'; decision: Decision }
  /**
   * `next`: the plan once this server has applied and published the write. `otherwise`: the plan
   * if a comparison fails, once this server has published the change; if undefined, the server
   * decides the whole request again. `deletes`: the client key of the deleted object, because the
   * store then writes a surviving namesake again.
   */
  | {
      kind: 'write';
      compare: readonly Compare[];
      operations: readonly Operation[];
      next: (revision: Revision) => Plan;
      otherwise?: () => Plan;
      deletes?: string;
    }
  /**
   * Takes the walk one step further, and passes the number of removed objects to `next`. `by`: the
   * pusher or link that began the walk. `isFenced`: it no longer holds the shard.
   */
  | { kind: 'sweep'; walk: Walk; by: Speaker | undefined; next: (removed: number, isFenced: boolean) => Plan }
>;

/** `operations` are done if all comparisons hold. */
export type TransactionParts = Readonly<{ compare: Compare[]; operations: Operation[] }>;

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

/** Writes more records than fit into one transaction: `next` decides again after each step. */
export function writeInSteps(written: TransactionParts, next: () => Plan): Plan {
  return { ...write(written, next), otherwise: next };
}
