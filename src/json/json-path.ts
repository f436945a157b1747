/**
 * JSONPath for printer columns, in Kubernetes' dialect: names, `\.` for a dot in a name, indexes,
 * slices, wildcards and filters. https://kubernetes.io/docs/reference/kubectl/jsonpath/
 *
 * No maintained library reads this dialect. jsonpath-plus and jsonpath read Goessner's, lack `\.`,
 * and evaluate filters as JavaScript. Implementations of RFC 9535 refuse a path that does not begin
 * with `$`, and no column's path does. @kubernetes/client-node contains jsonpath-plus.
 *
 * `..`, unions and `range` are missing, because no column uses them. A step that does not fit the
 * value finds nothing, for example a name in a list, or an index beyond the end.
 */
import { unreachable } from '../domain/errors.js';
import { isObject } from '../domain/base/members.js';

export type JsonPath = readonly Step[];

type Step =
  | Readonly<{ kind: 'member'; name: string }>
  | Readonly<{ kind: 'wildcard' }>
  | Readonly<{ kind: 'index'; index: number }>
  | Readonly<{ kind: 'slice'; start: number; end: number | undefined; step: number }>
  | Readonly<{ kind: 'filter'; left: Operand; test: Test | undefined }>;

/** `test`: undefined if the filter only tests whether its path exists. */
type Test = Readonly<{ operator: Operator; right: Operand }>;
type Operand = Readonly<{ kind: 'literal'; value: string | number | boolean }> | Readonly<{ kind: 'path'; path: JsonPath }>;
type Operator = '==' | '!=' | '<' | '<=' | '>' | '>=';

const operators: ReadonlySet<string> = new Set<Operator>(['==', '!=', '<', '<=', '>', '>=']);

const namePattern = /\.((?:\\.|[^\s.,[\]$@{}\\])+)/y;
const keyPattern = /\['([^']*)'\]/y;
const wildcardPattern = /\[\*\]/y;
const indexPattern = /\[(-?\d+)\]/y;
const slicePattern = /\[(-?\d+)?:(-?\d+)?(?::(\d+))?\]/y;
const filterPattern = /\[\?\(((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^"')])*)\)\]/y;

/**
 * The steps of a path, or undefined if the text is not in this dialect. A leading `$` or `@` is the
 * value itself.
 */
export function parseJsonPath(text: string): JsonPath | undefined {
  const steps: Step[] = [];
  let at = /^[$@]/.test(text) ? 1 : 0;
  while (at < text.length) {
    const parsed = parseStep(text, at);
    if (parsed === undefined) return undefined;
    steps.push(...parsed.steps);
    at = parsed.end;
  }
  return steps;
}

export const nowhere: JsonPath = [{ kind: 'slice', start: 0, end: 0, step: 1 }];

export function find(path: JsonPath, value: unknown): readonly unknown[] {
  let found: readonly unknown[] = [value];
  for (const step of path) found = found.flatMap((each) => follow(step, each));
  return found;
}

type Parsed = Readonly<{ steps: JsonPath; end: number }> | undefined;

function parseStep(text: string, at: number): Parsed {
  const match = (pattern: RegExp): readonly (string | undefined)[] | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text) ?? undefined;
  };
  const parsed = (found: readonly (string | undefined)[], steps: JsonPath | undefined): Parsed =>
    steps && { steps, end: at + (found[0] ?? '').length };

  const name = match(namePattern);
  if (name) return parsed(name, [member(name[1] ?? '')]);
  const key = match(keyPattern);
  // Kubernetes reads ['a.b'] as .a.b: a dot within quotes needs its backslash too.
  if (key) return parsed(key, parseJsonPath(`.${key[1] ?? ''}`));
  const wildcard = match(wildcardPattern);
  if (wildcard) return parsed(wildcard, [{ kind: 'wildcard' }]);
  const index = match(indexPattern);
  if (index) return parsed(index, [{ kind: 'index', index: Number(index[1]) }]);
  const slice = match(slicePattern);
  if (slice) return parsed(slice, parseSlice(slice));
  const filter = match(filterPattern);
  return filter && parsed(filter, parseFilter(filter[1] ?? ''));
}

function member(name: string): Step {
  return name === '*' ? { kind: 'wildcard' } : { kind: 'member', name: name.replaceAll('\\', '') };
}

function parseSlice([, start, end, step]: readonly (string | undefined)[]): JsonPath | undefined {
  const every = Number(step ?? 1);
  if (every < 1) return undefined;
  return [{ kind: 'slice', start: Number(start ?? 0), end: end === undefined ? undefined : Number(end), step: every }];
}

function parseFilter(text: string): JsonPath | undefined {
  const [, leftText = text, operator, rightText = ''] = /^([^!<>=]+)([!<>=]{1,2})(.+)$/s.exec(text) ?? [];
  const left = parseOperand(leftText);
  if (left === undefined) return undefined;
  if (operator === undefined) return [{ kind: 'filter', left, test: undefined }];

  const right = parseOperand(rightText);
  if (right === undefined || !isOperator(operator)) return undefined;
  return [{ kind: 'filter', left, test: { operator, right } }];
}

function isOperator(text: string): text is Operator {
  return operators.has(text);
}

function parseOperand(untrimmed: string): Operand | undefined {
  const text = untrimmed.trim();
  const quoted = /^(["'])(.*)\1$/.exec(text);
  if (quoted) return { kind: 'literal', value: (quoted[2] ?? '').replace(/\\(.)/g, '$1') };
  if (/^[+-]?\d+(?:\.\d+)?$/.test(text)) return { kind: 'literal', value: Number(text) };
  if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true' };
  const path = text === '' ? undefined : parseJsonPath(text);
  return path && { kind: 'path', path };
}

function follow(step: Step, value: unknown): readonly unknown[] {
  switch (step.kind) {
    case 'member':
      return isObject(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : [];
    case 'wildcard':
      return Array.isArray(value) || isObject(value) ? Object.values(value) : [];
    case 'index':
      return Array.isArray(value) ? elementAt(value, step.index) : [];
    case 'slice':
      return Array.isArray(value) ? value.slice(step.start, step.end).filter((_, at) => at % step.step === 0) : [];
    case 'filter':
      return Array.isArray(value) ? value.filter((element) => passes(step, element)) : [];
    default:
      return unreachable(step);
  }
}

/** A negative index counts from the end, but does not wrap around. */
function elementAt(list: readonly unknown[], index: number): readonly unknown[] {
  const at = index < 0 ? index + list.length : index;
  return at >= 0 && at < list.length ? [list[at]] : [];
}

function passes({ left, test }: Extract<Step, { kind: 'filter' }>, element: unknown): boolean {
  const lefts = valuesOf(left, element);
  if (test === undefined) return lefts.length > 0;
  const rights = valuesOf(test.right, element);
  return lefts.length === 1 && rights.length === 1 && compare(test.operator, lefts[0], rights[0]);
}

function valuesOf(operand: Operand, element: unknown): readonly unknown[] {
  return operand.kind === 'literal' ? [operand.value] : find(operand.path, element);
}

/** Only values of the same basic type can be compared, and only texts and numbers have an order. */
function compare(operator: Operator, left: unknown, right: unknown): boolean {
  if (typeof left === 'boolean' && typeof right === 'boolean') {
    return operator === '==' ? left === right : operator === '!=' && left !== right;
  }
  if (typeof left === 'string' && typeof right === 'string') return inOrder(operator, left, right);
  if (typeof left === 'number' && typeof right === 'number') return inOrder(operator, left, right);
  return false;
}

function inOrder<Ordered extends string | number>(operator: Operator, left: Ordered, right: Ordered): boolean {
  switch (operator) {
    case '==':
      return left === right;
    case '!=':
      return left !== right;
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
    default:
      return unreachable(operator);
  }
}
