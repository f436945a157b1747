/**
 * The rules of a label selector: one for each key, which merges all requirements on that key. A
 * check costs one look-up for each label or for each rule, whichever are fewer, even with thousands
 * of values or requirements.
 */
import type { Requirement } from './label-selector.js';

export type LabelRules = Readonly<{ byKey: ReadonlyMap<string, LabelRule>; neededKeys: number }>;

/** `needed`: the label must exist; `absent`: it must not. A rule with both matches nothing. */
type LabelRule = ValueRule & Readonly<{ needed: boolean; absent: boolean; above: bigint | undefined; below: bigint | undefined }>;

const anything: LabelRule = { allowed: undefined, banned: new Set(), needed: false, absent: false, above: undefined, below: undefined };

export function labelRules(requirements: readonly Requirement[]): LabelRules {
  const byKey = new Map<string, LabelRule>();
  for (const [key, ofKey] of grouped(requirements)) byKey.set(key, merged(ofKey));
  return { byKey, neededKeys: [...byKey.values()].filter(({ needed }) => needed).length };
}

export function meetsLabelRules({ byKey, neededKeys }: LabelRules, labels: ReadonlyMap<string, string>): boolean {
  if (labels.size >= byKey.size) {
    for (const [key, rule] of byKey) if (!meets(rule, labels.get(key))) return false;
    return true;
  }
  let found = 0;
  for (const [key, value] of labels) {
    const rule = byKey.get(key);
    if (rule === undefined) continue;
    if (!meets(rule, value)) return false;
    if (rule.needed) found += 1;
  }
  return found === neededKeys;
}

const int64Pattern = /^([-+]?)0*([0-9]{1,19})$/;

/** Parses like Go's ParseInt(text, 10, 64). */
export function parseInt64(text: string): bigint | undefined {
  const [, sign, digits] = int64Pattern.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const number = sign === '-' ? -BigInt(digits) : BigInt(digits);
  return number === BigInt.asIntN(64, number) ? number : undefined;
}

function grouped(requirements: readonly Requirement[]): ReadonlyMap<string, readonly Requirement[]> {
  const byKey = new Map<string, Requirement[]>();
  for (const requirement of requirements) {
    const before = byKey.get(requirement.key);
    if (before === undefined) byKey.set(requirement.key, [requirement]);
    else before.push(requirement);
  }
  return byKey;
}

function merged(requirements: readonly Requirement[]): LabelRule {
  const banned = new Set<string>();
  let rule: LabelRule = { ...anything, banned };
  for (const requirement of requirements) {
    switch (requirement.kind) {
      case 'exists':
        rule = { ...rule, needed: true };
        break;
      case 'absent':
        rule = { ...rule, absent: true };
        break;
      case 'in': {
        const { allowed } = rule;
        const values = allowed === undefined ? requirement.values : requirement.values.filter((value) => allowed.has(value));
        rule = { ...rule, needed: true, allowed: new Set(values) };
        break;
      }
      case 'notin':
        for (const value of requirement.values) banned.add(value);
        break;
      case 'above':
        rule = { ...rule, needed: true, above: larger(rule.above, requirement.bound) };
        break;
      default:
        rule = { ...rule, needed: true, below: smaller(rule.below, requirement.bound) };
    }
  }
  return rule;
}

function meets(rule: LabelRule, value: string | undefined): boolean {
  if (value === undefined) return !rule.needed;
  if (rule.absent || !meetsValueRule(rule, value)) return false;
  if (rule.above === undefined && rule.below === undefined) return true;
  const number = parseInt64(value);
  if (number === undefined) return false;
  return (rule.above === undefined || number > rule.above) && (rule.below === undefined || number < rule.below);
}

function larger(a: bigint | undefined, b: bigint): bigint {
  return a !== undefined && a > b ? a : b;
}

function smaller(a: bigint | undefined, b: bigint): bigint {
  return a !== undefined && a < b ? a : b;
}

/** Matches a value that is in `allowed`, if that is given, and not in `banned`. */
export type ValueRule = Readonly<{ allowed: ReadonlySet<string> | undefined; banned: ReadonlySet<string> }>;

export function meetsValueRule({ allowed, banned }: ValueRule, value: string): boolean {
  return (allowed === undefined || allowed.has(value)) && !banned.has(value);
}
