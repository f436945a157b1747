/** What the committer has decided, as it crosses to the serving thread: three numbers each, `kind value value`, in one buffer. */
import assert from 'node:assert/strict';
import { unreachable } from '../../domain/errors.js';
import type { Decided } from './committer-messages.js';

const numbersEach = 3;

const kinds = ['written', 'exists', 'absent', 'changed', 'unchanged', 'fenced', 'unbegun', 'swept', 'partial'] as const;
const unchanged: Decided = { kind: 'unchanged' };

export function packDecisions(decided: readonly Decided[]): Float64Array {
  const numbers = new Float64Array(decided.length * numbersEach);
  decided.forEach((decision, i) => {
    const at = i * numbersEach;
    numbers[at] = kinds.indexOf(decision.kind === 'refused' ? decision.why : decision.kind);
    [numbers[at + 1], numbers[at + 2]] = valuesOf(decision);
  });
  return numbers;
}

export function unpackDecisions(numbers: Float64Array): readonly Decided[] {
  return Array.from({ length: numbers.length / numbersEach }, (_, i): Decided => {
    const at = i * numbersEach;
    const [value, other] = [numbers[at + 1] ?? 0, numbers[at + 2] ?? 0];
    const kind = kinds[numbers[at] ?? 0];
    switch (kind) {
      case 'written':
        return { kind, revision: value, replaced: other };
      case 'exists':
      case 'absent':
      case 'changed':
        return { kind: 'refused', why: kind };
      case 'unchanged':
        return unchanged;
      case 'fenced':
        return { kind, holder: value, removed: other === 1 };
      case 'unbegun':
        return { kind };
      case 'swept':
        return { kind, removed: value };
      case 'partial':
        return { kind, removed: value, walk: other };
      default:
        assert.fail('decisions are of known kinds');
    }
  });
}

function valuesOf(decision: Decided): [number, number] {
  switch (decision.kind) {
    case 'written':
      return [decision.revision, decision.replaced];
    case 'fenced':
      return [decision.holder, decision.removed ? 1 : 0];
    case 'swept':
      return [decision.removed, 0];
    case 'partial':
      return [decision.removed, decision.walk];
    case 'refused':
    case 'unchanged':
    case 'unbegun':
      return [0, 0];
    default:
      return unreachable(decision);
  }
}
