/**
 * The committer's decisions as they cross to the serving thread: three numbers each, `kind value
 * value`, in one buffer. Rare decisions, and decisions that numbers cannot express, are cloned into
 * a list beside the buffer. The first `value` is then the index in it.
 */
import assert from 'node:assert/strict';
import { unreachable } from '../../domain/errors.js';
import type { Decided } from './committer-messages.js';

type Rare = Extract<Decided, { kind: 'acquired' | 'fenced' | 'differs' | 'bound' | 'full' }>;

export type WireDecisions = Readonly<{ numbers: Float64Array; rare: readonly Rare[] }>;

const numbersEach = 3;

const kinds = ['written', 'exists', 'absent', 'changed', 'elsewhere', 'unchanged', 'unbegun', 'swept', 'partial', 'rare'] as const;
const unchanged: Decided = { kind: 'unchanged' };

export function packDecisions(decided: readonly Decided[]): WireDecisions {
  const numbers = new Float64Array(decided.length * numbersEach);
  const rare: Rare[] = [];
  decided.forEach((decision, i) => {
    const at = i * numbersEach;
    const [kind, value, other] = numbersOf(decision, rare);
    numbers[at] = kinds.indexOf(kind);
    numbers[at + 1] = value;
    numbers[at + 2] = other;
  });
  return { numbers, rare };
}

export function unpackDecisions({ numbers, rare }: WireDecisions): readonly Decided[] {
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
      case 'elsewhere':
        return { kind: 'refused', why: kind };
      case 'unchanged':
        return unchanged;
      case 'unbegun':
        return { kind };
      case 'swept':
        return { kind, removed: value };
      case 'partial':
        return { kind, removed: value, walk: other };
      case 'rare':
        return rareAt(rare, value);
      default:
        assert.fail('decisions are of known kinds');
    }
  });
}

function numbersOf(decision: Decided, rare: Rare[]): [kind: (typeof kinds)[number], value: number, other: number] {
  switch (decision.kind) {
    case 'written':
      return [decision.kind, decision.revision, decision.replaced];
    case 'swept':
      return [decision.kind, decision.removed, 0];
    case 'partial':
      return [decision.kind, decision.removed, decision.walk];
    case 'refused':
      return [decision.why, 0, 0];
    case 'unchanged':
    case 'unbegun':
      return [decision.kind, 0, 0];
    case 'acquired':
    case 'fenced':
    case 'differs':
    case 'bound':
    case 'full':
      return ['rare', rare.push(decision) - 1, 0];
    default:
      return unreachable(decision);
  }
}

function rareAt(rare: readonly Rare[], at: number): Rare {
  const decision = rare[at];
  assert(decision !== undefined, 'what is rare stands beside');
  return decision;
}
