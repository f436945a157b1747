/** Whether what was acknowledged is what the store's own history tells (G1, G9). Answers every violation it finds. */
import type { Change, ObjectKey, Position } from '../support/watch-history.js';
import type { Acknowledged } from './writers.js';

/**
 * Each key's acknowledged writes must stand in its history in that order, and nothing else may stand there but what was
 * under way when the server was killed: one write for each kill at most.
 */
export function unacknowledgedOrLost(truth: readonly Change[], acknowledged: readonly Acknowledged[], kills: number): readonly string[] {
  const violations: string[] = [];
  const histories = byKey(truth);
  for (const [key, writes] of byKey(acknowledged)) {
    const history = histories.get(key) ?? [];
    let at = 0;
    let extra = 0;
    for (const write of writes) {
      const found = history.findIndex((change, i) => i >= at && isThe(change, write));
      if (found < 0) {
        violations.push(`lost: ${describe(write)}`);
        continue;
      }
      extra += found - at;
      at = found + 1;
    }
    extra += history.length - at;
    if (extra > kills) violations.push(`${key} has ${extra} changes that nobody was told of, with ${kills} kills`);
  }
  for (const key of histories.keys())
    if (!acknowledged.some((write) => write.key === key) && histories.get(key)!.length > kills)
      violations.push(`${key} was never acknowledged`);
  return violations;
}

/** A revision names one change for ever: whoever saw it, in whichever life of the process, saw the same. */
export function reused(seen: readonly Readonly<{ position: Position; what: string }>[]): readonly string[] {
  const first = new Map<Position, string>();
  return seen.flatMap(({ position, what }) => {
    const known = first.get(position);
    first.set(position, known ?? what);
    return known === undefined || known === what ? [] : [`${position} was ${known} and then ${what}`];
  });
}

function isThe(change: Change, write: Acknowledged): boolean {
  if (write.kind === 'delete') return change.kind === 'delete' && change.position > write.behind;
  return change.kind === 'put' && change.position === write.position && change.labels['turn'] === write.turn;
}

function byKey<T extends { readonly key: ObjectKey }>(all: readonly T[]): Map<ObjectKey, T[]> {
  const groups = new Map<ObjectKey, T[]>();
  for (const each of all) groups.set(each.key, [...(groups.get(each.key) ?? []), each]);
  return groups;
}

function describe(write: Acknowledged): string {
  return write.kind === 'put'
    ? `${write.turn} of ${write.key} at ${write.position}`
    : `the deletion of ${write.key} behind ${write.behind}`;
}
