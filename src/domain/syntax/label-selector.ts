/**
 * Kubernetes' label selector language, as apimachinery's labels.Parse reads it, with its messages.
 *
 * L1 `=` and `==` are `in` with one value, `!=` is `notin` with one; `notin` also matches objects
 *    without the key.
 * L2 The parser recognises keywords by position: where no operator is possible, `in` and `notin`
 *    are ordinary keys and values.
 *
 * The caller bounds the text; the parser reads each token once, from left to right.
 */
import { badRequest, Refused } from '../errors.js';
import { labelRules, meetsLabelRules, parseInt64, type LabelRules } from './label-rules.js';
import { labelKeyFlaws, labelValueFlaws } from './label-syntax.js';
import { compareTexts } from './version-order.js';
import { attempt } from '../parsed.js';
import type { Parsed } from '../parsed.js';

/** `values` are sorted and distinct. */
export type Requirement =
  | Readonly<{ kind: 'in' | 'notin'; key: string; values: readonly string[] }>
  | Readonly<{ kind: 'exists' | 'absent'; key: string }>
  | Readonly<{ kind: 'above' | 'below'; key: string; bound: bigint }>;

/** Returns the requirements sorted by key; an empty text has none. */
export function parseLabelSelector(text: string): Parsed<readonly Requirement[]> {
  return attempt(() => new LabelSelectorParser(text).parse());
}

/**
 * The rules of a selector, computed on first use and kept, because a watch needs them at every
 * change.
 */
const rulesOf = new WeakMap<readonly Requirement[], LabelRules>();

export function matchesLabels(requirements: readonly Requirement[], labels: ReadonlyMap<string, string>): boolean {
  const known = rulesOf.get(requirements);
  if (known !== undefined) return meetsLabelRules(known, labels);
  const rules = labelRules(requirements);
  rulesOf.set(requirements, rules);
  return meetsLabelRules(rules, labels);
}

export function formatRequirement(requirement: Requirement): string {
  switch (requirement.kind) {
    case 'exists':
      return requirement.key;
    case 'absent':
      return `!${requirement.key}`;
    case 'above':
      return `${requirement.key}>${requirement.bound}`;
    case 'below':
      return `${requirement.key}<${requirement.bound}`;
    default:
      return `${requirement.key} ${requirement.kind} (${requirement.values.join(',')})`;
  }
}

type Token = Readonly<{ kind: 'symbol' | 'word' | 'end'; text: string }>;
type Operator = 'in' | 'notin' | '=' | '==' | '!=' | '>' | '<';

const tokenPattern = /[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^ \t\r\n=!(),<>]+)|$)/y;
const operators: readonly string[] = ['in', 'notin', '=', '==', '!=', '>', '<'] satisfies Operator[];
const operatorsInMessages = 'in, notin, =, ==, !=, gt, lt';

class LabelSelectorParser {
  readonly #text: string;
  #at = 0;
  #next: Token;

  constructor(text: string) {
    this.#text = text;
    this.#next = this.#scan();
  }

  parse(): readonly Requirement[] {
    const requirements: Requirement[] = [];
    if (this.#ended()) return requirements;
    if (!this.#startsRequirement()) throw this.#found(`!, identifier, or 'end of string'`);

    for (;;) {
      requirements.push(this.#requirement());
      if (this.#ended()) break;
      if (!this.#takes(',')) throw this.#found(`',' or 'end of string'`);
      if (!this.#startsRequirement()) throw this.#found(`identifier after ','`);
    }
    return requirements.sort((left, right) => compareTexts(left.key, right.key));
  }

  #requirement(): Requirement {
    const negated = this.#takes('!');
    const key = this.#word('identifier');
    const flaws = labelKeyFlaws(key);
    if (flaws.length > 0) throw unable(`<nil>: Invalid value: ${JSON.stringify(key)}: ${flaws.join('; ')}`);

    // After a negated key only ',' or the end is valid; the caller checks that.
    if (negated) return { kind: 'absent', key };
    if (this.#ended() || this.#sees(',')) return { kind: 'exists', key };

    const operator = this.#operator();
    switch (operator) {
      case 'in':
      case 'notin':
        return { kind: operator, key, values: checked(key, this.#values()) };
      case '=':
      case '==':
        return { kind: 'in', key, values: checked(key, [this.#value()]) };
      case '!=':
        return { kind: 'notin', key, values: checked(key, [this.#value()]) };
      default:
        return bounded(operator === '>' ? 'above' : 'below', key, this.#value());
    }
  }

  #operator(): Operator {
    const { text } = this.#next;
    if (!operators.includes(text)) throw this.#found(operatorsInMessages, { unableToParse: true });
    this.#advance();
    return text as Operator;
  }

  /** One value, which may be empty: `a=` and `a=,b`. */
  #value(): string {
    if (this.#ended() || this.#sees(',')) return '';
    return this.#word('identifier');
  }

  /** `(a,b)`: a missing value between commas or parentheses is the empty value. */
  #values(): readonly string[] {
    if (!this.#takes('(')) throw unable(`found '${this.#next.text}' expected: '('`);
    if (this.#next.kind !== 'word' && !this.#sees(',') && !this.#sees(')'))
      throw this.#found(`',', ')' or identifier`, { unableToParse: true });

    const values = new Set<string>();
    for (;;) {
      const word = this.#next.kind === 'word';
      values.add(word ? this.#word('identifier') : '');
      if (this.#takes(')')) return [...values].sort(compareTexts);
      if (!this.#takes(',')) throw this.#found(word ? `',' or ')'` : `',', or identifier`, { unableToParse: true });
    }
  }

  #word(expected: string): string {
    const { kind, text } = this.#next;
    if (kind !== 'word') throw this.#found(expected, { unableToParse: true });
    this.#advance();
    return text;
  }

  #ended(): boolean {
    return this.#next.kind === 'end';
  }

  #startsRequirement(): boolean {
    return this.#next.kind === 'word' || this.#sees('!');
  }

  #sees(symbol: string): boolean {
    return this.#next.kind === 'symbol' && this.#next.text === symbol;
  }

  #takes(symbol: string): boolean {
    const found = this.#sees(symbol);
    if (found) this.#advance();
    return found;
  }

  #advance(): void {
    this.#next = this.#scan();
  }

  #scan(): Token {
    tokenPattern.lastIndex = this.#at;
    const [all = '', symbol, word] = tokenPattern.exec(this.#text) ?? [];
    this.#at += all.length;
    if (symbol !== undefined) return { kind: 'symbol', text: symbol };
    return word === undefined ? { kind: 'end', text: '' } : { kind: 'word', text: word };
  }

  #found(expected: string, { unableToParse = false } = {}): Refused {
    const message = `found '${this.#next.text}', expected: ${expected}`;
    return unableToParse ? unable(message) : new Refused(badRequest(message));
  }
}

function checked(key: string, values: readonly string[]): readonly string[] {
  const errors = values.flatMap((value, index) => valueErrors(key, value, index));
  if (errors.length > 0) throw unable(aggregate(errors));
  return values;
}

function bounded(kind: 'above' | 'below', key: string, value: string): Requirement {
  const bound = parseInt64(value);
  const errors = valueErrors(key, value, 0);
  if (bound === undefined) {
    errors.unshift(`values[0]: Invalid value: ${JSON.stringify(value)}: for 'Gt', 'Lt' operators, the value must be an integer`);
  }
  if (bound === undefined || errors.length > 0) throw unable(aggregate(errors));
  return { kind, key, bound };
}

function valueErrors(key: string, value: string, index: number): string[] {
  const flaws = labelValueFlaws(value);
  return flaws.length === 0 ? [] : [`values[${index}][${key}]: Invalid value: ${JSON.stringify(value)}: ${flaws.join('; ')}`];
}

/** Joins errors as apimachinery's aggregate does. */
function aggregate(errors: readonly string[]): string {
  return errors.length === 1 ? String(errors[0]) : `[${errors.join(', ')}]`;
}

function unable(message: string): Refused {
  return new Refused(badRequest(`unable to parse requirement: ${message}`));
}
